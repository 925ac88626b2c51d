"""Which rows that are read again a debt waits for, and when they have come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.records.decisions import (
    Binding,
    Decision,
    Fixup,
    FixupKind,
    TargetStatement,
)
from shardmerge.spark_sink.barrier.applied import Applied, Reached, RowProgress, is_applied_up_to
from shardmerge.spark_sink.barrier.decisions import StatementKey
from shardmerge.spark_sink.barrier.read_again import awaited_rereads, takes_fewer_values
from shardmerge.spark_sink.barrier.statements import Refused, StatementState, open_statements
from tests.target_statements import rewritten
from tests.unit.spark_sink.decided import (
    A_ROWS,
    B_ROWS,
    CONTRACTING,
    EXPANDING,
    SWITCHING,
    TARGET,
    A,
    B,
    decision,
    folded,
    key,
    rows,
    statement,
)

MADE = statement(EXPANDING, "table", binds=(Binding("c#1", "c"), Binding("d#1", "d")))
DEBT = rewritten(statement(CONTRACTING, "column:c"), "ALTER TABLE t MODIFY COLUMN c int NOT NULL")


def asking(
    version: int,
    shard: ShardId,
    *statements: TargetStatement,
    columns: Sequence[str] = ("c",),
    kind: FixupKind = FixupKind.SNAPSHOT,
    hold: bool = False,
) -> Decision:
    """A decision that has the shard read again for these columns."""
    made = decision(version, shard, 10 * version, *statements, columns=("id", "c", "d"), hold=hold)
    return replace(made, fixups=(Fixup(shard, kind, tuple(columns), ""),))


def told(progress: RowProgress, **tables: Sequence[int]) -> RowProgress:
    scans = {("s1", f"app.{name}"): readings for name, readings in tables.items()}
    return replace(progress, scans=scans)


def states(
    *records: Decision,
    progress: RowProgress | None = None,
    executed: Sequence[StatementKey] = (),
    refused: Sequence[StatementKey] = (),
) -> dict[StatementKey, tuple[StatementState, str]]:
    target = folded(*records).targets[TARGET]
    errors = {each: Refused("Invalid use of NULL value", resting=True) for each in refused}
    found = open_statements(target, (key(1), *executed), errors, progress or rows())
    return {s.key: (s.state, s.detail) for s in found}


HISTORY = (decision(1, B, 5, MADE), asking(2, A), asking(3, B, DEBT))
WAITS = (StatementState.DEBT, f"waits for rows of {A} and 1 more shards that are read again")


def test_a_debt_waits_until_every_shard_is_read_again_and_applied() -> None:
    assert states(*HISTORY)[key(3)] == WAITS
    one = told(rows(), a=[0])
    assert states(*HISTORY, progress=one)[key(3)][1] == f"waits for rows of {B} that are read again"
    assert states(*HISTORY, progress=told(rows(), a=[0], b=[0]))[key(3)][0] is StatementState.READY
    late = told(rows({B_ROWS: Applied(4)}), a=[0], b=[0])
    assert states(*HISTORY, progress=late)[key(3)][0] is StatementState.DEBT


def test_watermarks_that_were_read_before_the_notice_prove_nothing() -> None:
    assert states(*HISTORY, progress=told(rows(), a=[0], b=[1]))[key(3)][0] is StatementState.DEBT


def test_a_kept_reading_proves_it_while_more_rows_come() -> None:
    behind = rows({A_ROWS: Applied(4)})
    assert not is_applied_up_to(A, 0, behind)
    kept = replace(behind, caught_up={A_ROWS: Reached(1, 5)})
    assert is_applied_up_to(A, 5, kept)
    assert not is_applied_up_to(A, 6, kept)


def test_only_what_is_asked_by_its_own_version_or_before_counts() -> None:
    history = (decision(1, B, 5, MADE), decision(2, A, 20, DEBT), asking(3, A))
    assert states(*history)[key(2)][0] is StatementState.READY


def test_only_what_is_asked_for_its_columns_counts() -> None:
    other = (decision(1, B, 5, MADE), asking(2, A, DEBT, columns=["d"]))
    assert states(*other)[key(2)][0] is StatementState.READY
    renamed = statement(EXPANDING, "column:c", "column:e", binds=(Binding("c#1", "e"),))
    debt = replace(DEBT, subjects=("column:e",))
    history = (decision(1, B, 5, MADE), asking(2, A, renamed, debt))
    assert states(*history, executed=[key(2)])[key(2, 1)][0] is StatementState.DEBT


def test_the_requests_of_a_table_are_answered_in_their_order() -> None:
    history = (decision(1, B, 5, MADE), asking(2, A, columns=["d"]), asking(3, A, DEBT))
    assert states(*history, progress=told(rows(), a=[0]))[key(3)][0] is StatementState.DEBT
    assert states(*history, progress=told(rows(), a=[0, 0]))[key(3)][0] is StatementState.READY


@pytest.mark.parametrize("kind", [FixupKind.ACCEPT, FixupKind.UPDATE, FixupKind.HOLD])
def test_other_fixups_bring_no_rows(kind: FixupKind) -> None:
    history = (decision(1, B, 5, MADE), asking(2, A, DEBT, kind=kind))
    assert states(*history)[key(2)][0] is StatementState.READY


def test_a_shard_that_is_gone_or_has_come_again_is_not_waited_for() -> None:
    gone = (*HISTORY[:2], decision(3, A, 30, live=False), decision(4, B, 40, DEBT))
    assert states(*gone)[key(4)][0] is StatementState.READY
    again = (*gone[:3], decision(4, A, 40), decision(5, B, 50, DEBT))
    assert states(*again)[key(5)][0] is StatementState.READY


def test_what_stands_behind_a_held_gate_is_not_waited_for() -> None:
    held = decision(3, A, 30, hold=True)
    history = (*HISTORY[:2], held, decision(4, B, 40, DEBT))
    assert states(*history)[key(4)][0] is StatementState.READY
    before = states(*history, progress=rows({A_ROWS: Applied(4)}))[key(4)]
    assert before[0] is StatementState.DEBT
    state, detail = states(*history, refused=[key(4)])[key(4)]
    assert state is StatementState.REFUSED
    assert detail.startswith("Invalid use of NULL value; it is tried again: ")
    assert detail.endswith(
        f"rows of {A} that are read again stand behind the gate at which it is held"
    )


@pytest.mark.parametrize("kind", [EXPANDING, SWITCHING])
def test_it_is_tried_at_once_where_rows_wait_for_what_waits_for_it(kind: object) -> None:
    later = statement(kind, "column:c")  # type: ignore[arg-type]
    assert states(*HISTORY, decision(4, A, 40, later))[key(3)][0] is StatementState.READY
    between = statement(CONTRACTING, "column:d", "column:c")
    chain = (*HISTORY, decision(4, A, 40, between), decision(5, A, 50, replace(
        later, subjects=("column:d",))))  # fmt: skip
    assert states(*chain)[key(3)][0] is StatementState.READY
    other = replace(later, subjects=("column:d",))
    assert states(*HISTORY, decision(4, A, 40, other))[key(3)] == WAITS


def test_a_refused_one_says_what_it_waits_for_and_why() -> None:
    later = statement(EXPANDING, "column:c")
    found = states(*HISTORY, decision(4, A, 40, later), refused=[key(3)])
    assert found[key(3)] == (
        StatementState.DEBT,
        f"{WAITS[1]}; the target refused it before: Invalid use of NULL value",
    )
    assert found[key(4)][0] is StatementState.READY


@pytest.mark.parametrize(
    ("sql", "subject", "fewer"),
    [
        ("ALTER TABLE t MODIFY COLUMN c int NOT NULL", "column:c", True),
        ("ALTER TABLE t ALTER COLUMN c DROP DEFAULT", "column:c", False),
        ("ALTER TABLE t ALTER COLUMN c SET DEFAULT '5'", "column:c", False),
        ("ALTER TABLE t ADD UNIQUE INDEX k (c)", "index:k", True),
        ("ALTER TABLE t ADD INDEX k (c)", "index:k", False),
        ("ALTER TABLE t ADD CONSTRAINT k CHECK (c > 1)", "check:k", True),
    ],
)
def test_only_what_the_target_can_refuse_for_values_waits(
    sql: str, subject: str, fewer: bool
) -> None:
    debt = rewritten(statement(CONTRACTING, subject), sql)
    assert takes_fewer_values(debt) == fewer
    assert not takes_fewer_values(replace(debt, binds=(Binding("c#1", ""),)))
    assert not takes_fewer_values(replace(debt, kind=SWITCHING))


def test_without_requests_nobody_is_waited_for() -> None:
    target = folded(decision(1, B, 5, MADE), decision(2, A, 10, DEBT)).targets[TARGET]
    assert awaited_rereads(target, key(2), DEBT, rows()) == ()
