"""NOT NULL that is refused, and statements about its column that do not wait for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.schemas.records.decisions import Binding, StatementKind, TargetStatement
from shardmerge.schemas.records.earlier_statements import actions_of
from shardmerge.spark_sink.barrier.passed_debts import carried_debts, forbids_null, without_not_null
from shardmerge.spark_sink.barrier.statements import Refused, StatementState, open_statements
from tests.target_statements import rewritten
from tests.unit.spark_sink.decided import (
    CONTRACTING,
    EXPANDING,
    TARGET,
    A,
    decision,
    folded,
    key,
    rows,
    statement,
)


def about(kind: StatementKind, clause: str, *, name: str = "") -> TargetStatement:
    """A statement about column a; ``name`` is what it calls it from then on."""
    binds = (Binding("a#1", name),) if name else ()
    return rewritten(statement(kind, "column:a", binds=binds), f"ALTER TABLE `m`.`t` {clause}")


DEBT = about(CONTRACTING, "MODIFY COLUMN `a` int NOT NULL")
WIDER = about(EXPANDING, "MODIFY COLUMN `a` bigint NOT NULL DEFAULT '3' COMMENT 'x NOT NULL'")


def carried(*later: TargetStatement) -> str | None:
    """The debt's text when all these, which came later, are executed."""
    statements = {key(1): DEBT} | {key(2 + n): each for n, each in enumerate(later)}
    found = carried_debts(statements, statements.keys() - {key(1)})
    assert found.keys() <= {key(1)}
    return found[key(1)].sql.partition("`m`.`t` ")[2] if found else None


def test_a_definition_loses_its_not_null_and_nothing_else() -> None:
    relaxed = without_not_null(WIDER)
    assert relaxed.sql == (
        "ALTER TABLE `m`.`t` MODIFY COLUMN `a` bigint DEFAULT '3' COMMENT 'x NOT NULL'"
    )
    assert relaxed.actions == actions_of(relaxed.sql)
    assert replace(relaxed, sql=WIDER.sql, actions=WIDER.actions) == WIDER
    time = about(EXPANDING, "MODIFY COLUMN `a` timestamp(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)")
    assert without_not_null(time).sql.endswith("timestamp(6) NULL DEFAULT CURRENT_TIMESTAMP(6)")


@pytest.mark.parametrize(
    "clause",
    [
        "MODIFY COLUMN `a` bigint",
        "ALTER COLUMN `a` SET DEFAULT '5'",
        "ADD COLUMN `a` int NOT NULL",
        "MODIFY COLUMN a BIGINT NOT NULL",
        "MODIFY COLUMN `a` int GENERATED ALWAYS AS (`b`) STORED NOT NULL",
        "ALTER COLUMN `a` SET NOT NULL",
    ],
)
def test_other_statements_stay_as_they_are(clause: str) -> None:
    assert without_not_null(about(EXPANDING, clause)).sql.endswith(clause)
    assert not forbids_null(about(CONTRACTING, clause))


def test_the_debt_has_the_definition_that_the_column_has_by_then() -> None:
    assert carried(WIDER) == WIDER.sql.partition("`m`.`t` ")[2]
    set_default = about(EXPANDING, "ALTER COLUMN `a` SET DEFAULT '5'")
    assert carried(set_default) == "MODIFY COLUMN `a` int NOT NULL DEFAULT '5'"
    drop_default = about(CONTRACTING, "ALTER COLUMN `a` DROP DEFAULT")
    assert carried(WIDER, drop_default) == (
        "MODIFY COLUMN `a` bigint NOT NULL COMMENT 'x NOT NULL'"
    )


def test_a_definition_keeps_the_old_name_of_a_character_set() -> None:
    """TiDB is told ``utf8``; the actions say ``utf8mb3``."""
    old = about(EXPANDING, "MODIFY COLUMN `a` varchar(9) CHARACTER SET utf8 NOT NULL")
    assert without_not_null(old).sql.endswith("MODIFY COLUMN `a` varchar(9) CHARACTER SET utf8")
    assert forbids_null(replace(old, kind=CONTRACTING))


@pytest.mark.parametrize(
    "later",
    [
        about(EXPANDING, "MODIFY COLUMN `a` int"),
        about(EXPANDING, "RENAME COLUMN `a` TO `b`", name="b"),
        about(CONTRACTING, "DROP COLUMN `a`"),
        replace(about(EXPANDING, "RENAME COLUMN `b` TO `a`", name="a"), subjects=("column:b",)),
    ],
)
def test_it_is_void_when_its_not_null_is_taken_back_or_its_column_is_another(
    later: TargetStatement,
) -> None:
    assert carried(later) is None
    assert carried(WIDER, later) is None


def test_what_passes_a_refused_debt_runs_without_not_null_and_the_debt_follows() -> None:
    target = folded(decision(1, A, 10, DEBT), decision(2, A, 20, WIDER)).targets[TARGET]
    refused = {key(1): Refused("Invalid use of NULL value", resting=True)}
    debt, passing = open_statements(target, (), refused, rows())
    assert (debt.state, passing.state) == (StatementState.REFUSED, StatementState.READY)
    assert passing.statement == without_not_null(WIDER)
    (debt,) = open_statements(target, {key(2)}, refused, rows())
    assert (debt.key, debt.statement.sql) == (key(1), WIDER.sql)
    assert debt.statement.kind is CONTRACTING


def test_nothing_passes_a_debt_that_the_target_was_too_busy_to_judge() -> None:
    target = folded(decision(1, A, 10, DEBT), decision(2, A, 20, WIDER)).targets[TARGET]
    busy = {key(1): Refused("Lock wait timeout exceeded", resting=True, judged=False)}
    debt, later = open_statements(target, (), busy, rows())
    assert (debt.state, later.state) == (StatementState.REFUSED, StatementState.WAITING)
    assert later.statement == WIDER
