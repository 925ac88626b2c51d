"""The decisions of a table that is made anew, beside those of its target."""

from __future__ import annotations

from dataclasses import replace

from shardmerge.agents.coordination.decision_records import Step
from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.agents.handling.store import TargetStates
from shardmerge.cli.rebuild.shadow_fold import ShadowFold
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.origin import Origin, OriginColumn, OriginPart
from shardmerge.schemas.model.policies import ExistingRows, Mode
from shardmerge.schemas.records.decisions import Decision, Outcome
from shardmerge.schemas.records.operator_commands import OperatorCommand
from shardmerge.schemas.records.schema_changes import SchemaChange
from shardmerge.spark_sink.barrier.decisions import Decisions
from shardmerge.spark_sink.rebuilding.rebuild_rules import held_shards
from shardmerge.spark_sink.rebuilding.shadow import Shadow, for_shadow
from tests.example_pages import pipeline
from tests.unit.agents.sql_line import TARGET, SqlLine

TABLE = TargetTable("shardmerge_new_1", TARGET.table)
IN_KEYS = Origin((OriginColumn(OriginPart.SHARD, "_shard"),), in_keys=True)
ADD = "ADD COLUMN a INT NOT NULL DEFAULT 5"


class Line(SqlLine):
    """Two shards, and the records of their target's log."""

    def __init__(self) -> None:
        self.log: list[SchemaChange | OperatorCommand] = []
        super().__init__(
            Mode.OPTIMISTIC, "s0", "s1", create="id INT PRIMARY KEY, v INT, UNIQUE u (v)"
        )

    def _taken(
        self,
        states: TargetStates,
        before: TargetState,
        step: Step,
        change: SchemaChange | OperatorCommand,
    ) -> Decision:
        self.log.append(change)
        return super()._taken(states, before, step, change)

    def all_alter(self, action: str) -> None:
        for source in ("s0", "s1"):
            self.alter(source, action)

    def fold(self, version: int) -> ShadowFold:
        fold = ShadowFold(pipeline(), TARGET, version, IN_KEYS)
        for record in self.log:
            fold.take(record)
        return fold


def read(line: Line, fold: ShadowFold, shadow: Shadow) -> Decisions:
    decisions = Decisions()
    for each in line.decisions:
        found = fold.as_read(each, shadow)
        assert found is not None
        decisions.add(found)
    return decisions


def test_the_table_has_its_own_statements_columns_and_keys() -> None:
    line = Line()
    line.alter("s0", ADD)
    begun = len(line.log)
    line.alter("s1", ADD)
    line.all_alter("ADD UNIQUE w (a, v)")
    fold = line.fold(begun)
    assert fold.beginning is not None and fold.origin == IN_KEYS
    bare = Shadow(TARGET, TABLE, begun, ())
    shadow = replace(bare, creation=tuple(for_shadow(s, bare) for s in fold.beginning.statements))
    known = read(line, fold, shadow).targets[TABLE]
    texts = [statement.sql for statement in known.statements.values()]
    assert texts[0].startswith(f"CREATE TABLE {TABLE.sql}")
    assert "PRIMARY KEY (`id`, `_shard`)" in texts[0]
    assert texts[-1].endswith("ADD UNIQUE INDEX `w` (`a`, `v`, `_shard`)")
    assert not any(TARGET.sql in text for text in texts)
    assert known.version == len(line.log)
    for gates in known.shards.values():
        for gate in gates.gates:
            assert gate.columns[-1].id == "@shard"
            assert gate.key == ("id", "_shard")
        assert gates.key_changes == []
    assert fold.difference() == ""
    assert fold.joined_schema(TABLE).version == len(line.log)


def test_what_is_held_for_its_rows_goes_on_in_the_table() -> None:
    line = Line()
    line.existing_rows = ExistingRows.HOLD
    line.all_alter("DROP PRIMARY KEY, ADD COLUMN k INT NOT NULL AUTO_INCREMENT PRIMARY KEY")
    assert line.held == ["s0", "s1"]
    early = line.fold(len(line.log) - 1)
    # One shard with the new key contradicts the other: no table takes both.
    assert (early.of_table, early.difference()) == (None, "the table has not begun")
    assert early.beginning is not None
    assert early.beginning.outcome is Outcome.REFUSED
    fold = line.fold(len(line.log))
    known = read(line, fold, Shadow(TARGET, TABLE, len(line.log), ())).targets[TABLE]
    assert not held_shards(known)
    assert {gates.gates[-1].key for gates in known.shards.values()} == {("k", "_shard")}
    begun = len(line.log)
    line.all_alter(ADD)
    assert (line.held, line.fold(begun).difference()) == (["s0", "s1"], "")


def test_a_column_that_came_back_while_its_shard_was_held_is_another_one_for_the_table() -> None:
    line = Line()
    line.existing_rows = ExistingRows.HOLD
    line.alter("s0", ADD)  # no other shard keeps the column
    line.all_alter("DROP PRIMARY KEY, ADD COLUMN k INT NOT NULL AUTO_INCREMENT PRIMARY KEY")
    begun = len(line.log)
    for action in ("DROP COLUMN a", ADD):
        line.alter("s0", action)
    assert "would be others" in line.fold(begun).difference()


def test_a_decision_is_not_known_before_its_record_is_folded() -> None:
    line = Line()
    begun = len(line.log)
    fold = line.fold(begun)
    shadow = Shadow(TARGET, TABLE, begun, ())
    line.alter("s0", ADD)
    last = line.decisions[-1]
    assert fold.as_read(last, shadow) is None
    for record in line.log:  # those from before change nothing
        fold.take(record)
    assert fold.as_read(last, shadow) is not None
    other = replace(last, target=TargetTable("merged", "other"))
    ignored = fold.as_read(other, shadow)
    assert ignored is not None and ignored.outcome is Outcome.IGNORED


def test_the_target_would_not_become_another_table() -> None:
    line = Line()
    fold = line.fold(len(line.log))
    assert fold.of_table is not None
    fold.of_table = replace(fold.of_table, columns=fold.of_table.columns[:-1])
    assert "its columns would be others" in fold.difference()
    assert "has not begun" in line.fold(99).difference()
