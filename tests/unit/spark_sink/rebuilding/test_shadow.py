from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.schemas.model.actions import Adoption, ColumnRemoval
from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.tables import Column, TableSchema
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.records.decisions import (
    Binding,
    Decision,
    Fixup,
    FixupKind,
    Outcome,
    StatementKind,
    TargetStatement,
)
from shardmerge.schemas.target.dialects.dialect import CannotRender
from shardmerge.schemas.target.dialects.dialects import dialect_of
from shardmerge.spark_sink.barrier.statements import bindings, frontier
from shardmerge.spark_sink.rebuilding.merge import Merge
from shardmerge.spark_sink.rebuilding.shadow import Shadow, creation_of, shadow_decision
from tests.unit.spark_sink.decided import (
    CONTRACTING,
    EXPANDING,
    TARGET,
    A,
    B,
    decision,
    folded,
    ignored,
    key,
    statement,
)

TABLE = TargetTable("shardmerge_new_1", "t")
MADE = TargetStatement("CREATE TABLE x", EXPANDING, "", ("table",), (Binding("id#1", "id"),))
SHADOW = Shadow(TARGET, TABLE, 2, (MADE,))


def altered(text: str, *actions: ColumnRemoval | Adoption) -> TargetStatement:
    return TargetStatement(text, CONTRACTING, "", ("column:a",), actions=actions)


def test_up_to_its_version_a_shadow_has_the_gates_and_one_creation() -> None:
    first = decision(1, A, 10, statement(EXPANDING, "table"), snapshot=True)
    second = replace(
        decision(2, B, 20, statement(EXPANDING, "column:a")),
        fixups=(Fixup(A, FixupKind.SNAPSHOT, ("a",), "of old rows"),),
    )
    known = folded(*(shadow_decision(each, SHADOW) for each in (first, second))).targets[TABLE]
    assert dict(known.statements) == {key(1): MADE}
    assert [gate.version for gate in known.shards[A].gates] == [1]
    assert [gate.position for gate in known.shards[B].gates] == [second.position]
    assert known.rereads == {}, "the shards are loaded, so nothing is read again"
    assert frontier(known, {key(1)}) == 3


def test_later_decisions_are_the_target_s_own_under_the_shadow_s_name() -> None:
    third = decision(
        3, A, 30,
        altered("ALTER TABLE `merged`.`t` DROP COLUMN `a`", ColumnRemoval("a")),
        altered("UPDATE `merged`.`t` SET `b` = '`merged`.`t`'"),
    )  # fmt: skip
    found = shadow_decision(third, SHADOW)
    assert found.target == TABLE
    assert [each.sql for each in found.statements] == [
        "ALTER TABLE `shardmerge_new_1`.`t` DROP COLUMN `a`",
        "UPDATE `shardmerge_new_1`.`t` SET `b` = '`merged`.`t`'",
    ]
    assert found.statements[0].actions == (ColumnRemoval("a"),)
    assert replace(found, target=TARGET, statements=third.statements) == third


def test_an_adoption_is_not_executed_so_its_text_stays() -> None:
    kept = altered("adopt index:x", Adoption("index:x", ""))
    assert shadow_decision(decision(3, A, 30, kept), SHADOW).statements == (kept,)


@pytest.mark.parametrize("text", ["OPTIMIZE TABLE `merged`.`t`", "ALTER TABLE `other`.`t` ADD a"])
def test_a_text_that_cannot_be_told_of_the_shadow_is_refused(text: str) -> None:
    with pytest.raises(ContractError) as found:
        shadow_decision(decision(3, A, 30, altered(text)), SHADOW)
    assert (found.value.code, text in found.value.message) == ("SM-6512", True)


def test_other_targets_are_decided_and_concern_nothing() -> None:
    other = Shadow(TargetTable("merged", "other"), TABLE, 2, (MADE,))
    found = shadow_decision(decision(7, A, 70, statement(EXPANDING, "column:a")), other)
    assert (found.target, found.outcome, found.statements) == (None, Outcome.IGNORED, ())
    decisions = folded(found)
    assert decisions.is_decided("s1", 7)
    assert decisions.targets == {}
    assert shadow_decision(ignored("s1", 5), SHADOW).target is None


@pytest.mark.parametrize(("kind", "version"), [("mysql", "8.0.15"), ("mariadb", "10.11")])
def test_the_creation_binds_what_is_bound_on_the_target(kind: str, version: str) -> None:
    bound = (Binding("id#1", "id"), Binding("a#1", "a"))
    known = folded(
        decision(1, A, 10, statement(EXPANDING, "table", binds=bound)),
        decision(2, A, 20, statement(CONTRACTING, "column:a", binds=(Binding("a#1", ""),))),
    ).targets[TARGET]
    schema = TableSchema((Column("id", ColumnType("int")),))
    made = dialect_of(kind, version).create_table(TABLE, schema)
    assert not isinstance(made, CannotRender)
    statements = creation_of(known, {key(1), key(2)}, made)
    assert [each.sql.split(" (")[0] for each in statements] == [f"CREATE TABLE {TABLE.sql}"]
    assert {each.kind for each in statements} == {StatementKind.EXPANDING}
    shadow = Shadow(TARGET, TABLE, 2, statements)
    read = [shadow_decision(each, shadow) for each in (decision(1, A, 10), decision(2, A, 20))]
    assert bindings(folded(*read).targets[TABLE], {key(1)}) == {"id#1": Binding("id#1", "id")}


def test_a_merge_without_a_shadow_reads_decisions_as_they_are() -> None:
    told: Decision = decision(3, A, 30)
    pipeline: object = None
    assert Merge(pipeline, "p").as_read(told) is told  # type: ignore[arg-type]
    assert Merge(pipeline, "p~1", SHADOW).as_read(told).target == TABLE  # type: ignore[arg-type]
