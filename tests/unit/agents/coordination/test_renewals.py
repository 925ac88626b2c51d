"""The command ``renew``: a table that was made anew takes a target's place."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.agents.coordination import coordinator
from shardmerge.agents.coordination.decision_records import Step
from shardmerge.schemas.model.actions import TableCreation
from shardmerge.schemas.model.origin import NO_ORIGIN, Origin
from shardmerge.schemas.model.policies import ExistingRows, Mode
from shardmerge.schemas.records.decisions import Decision, Outcome
from shardmerge.schemas.records.operator_commands import CommandKind, OperatorCommand, Renewal
from shardmerge.schemas.records.schema_changes import ChangeId
from tests.unit.agents.sql_line import BASE, SHARD_COLUMN, TARGET, SqlLine, in_conflict, shard_of

IN_KEYS = Origin(SHARD_COLUMN.columns, in_keys=True)
NEW_KEY = "DROP PRIMARY KEY, ADD COLUMN k INT NOT NULL AUTO_INCREMENT PRIMARY KEY"


def renewed(line: SqlLine, origin: Origin, *, behind: int = 0) -> Step:
    argument = str(Renewal(7, line.state.version - behind, origin))
    change_id = ChangeId("p.commands", 1_000)
    said = OperatorCommand(change_id, TARGET, CommandKind.RENEW, None, argument)
    return coordinator.obey(line.state, said)


def decided(step: Step) -> Decision:
    assert step.decision is not None
    return step.decision


def line_with(*actions: str, existing_rows: ExistingRows = ExistingRows.REREAD) -> SqlLine:
    line = SqlLine(Mode.OPTIMISTIC, "s0", "s1", create=f"{BASE}, UNIQUE u (a)")
    line.existing_rows = existing_rows
    for action in actions:
        for source in ("s0", "s1"):
            line.alter(source, action)
    return line


def test_the_table_has_other_origin_columns_and_so_have_later_decisions() -> None:
    line = line_with()
    step = renewed(line, IN_KEYS)
    answer = decided(step)
    assert (answer.outcome, answer.origin, answer.code) == (Outcome.EMIT, IN_KEYS, "")
    [created] = answer.statements
    assert created.sql.startswith("CREATE TABLE `merged`.`t`")
    assert "PRIMARY KEY (`id`, `_shard`)" in created.sql
    assert "UNIQUE INDEX `u` (`a`, `_shard`)" in created.sql
    [action] = created.actions
    assert isinstance(action, TableCreation)
    assert (created.code, "rebuild 7" in created.reason) == ("SM-6511", True)
    assert [bound.column_id for bound in created.binds] == ["id#1", "a#1", "@shard"]
    assert step.state.policies.origin == IN_KEYS
    shard = step.state.shards[shard_of("s0")]
    assert shard.effective is not None
    assert shard.effective.ids == ("id#1", "a#1", "@shard")


def test_origin_columns_can_go() -> None:
    line = SqlLine(Mode.OPTIMISTIC, "s0", "s1", create=BASE, origin=IN_KEYS)
    step = renewed(line, NO_ORIGIN)
    [created] = decided(step).statements
    assert "_shard" not in created.sql
    assert step.state.schema is not None
    assert [column.name for column in step.state.schema.columns] == ["id", "a"]


def test_shards_that_only_the_old_rows_hold_are_released() -> None:
    line = line_with(NEW_KEY, existing_rows=ExistingRows.HOLD)
    assert line.held == ["s0", "s1"]
    step = renewed(line, NO_ORIGIN)
    answer = decided(step)
    assert [release.shard.source for release in answer.releases] == ["s0", "s1"]
    assert (answer.fixups, answer.reloads, len(step.state.held)) == ((), (), 0)
    assert "PRIMARY KEY (`k`)" in answer.statements[0].sql


def test_schemas_that_no_table_can_take_are_refused() -> None:
    answer = decided(renewed(in_conflict(), NO_ORIGIN))
    assert (answer.outcome, answer.origin) == (Outcome.REFUSED, None)
    assert "would be held in a new table, too" in answer.reason
    assert answer.code == in_conflict().decisions[-1].code


def test_a_column_with_the_name_of_an_origin_column_is_refused() -> None:
    line = line_with("ADD COLUMN _shard INT")
    answer = decided(renewed(line, IN_KEYS))
    assert (answer.outcome, answer.code) == (Outcome.REFUSED, "SM-1209")


@pytest.mark.parametrize("behind", [1, -1])
def test_a_table_that_follows_another_decision_is_refused(behind: int) -> None:
    line = line_with()
    step = renewed(line, IN_KEYS, behind=behind)
    assert (decided(step).outcome, decided(step).code) == (Outcome.REFUSED, "SM-6525")
    assert replace(step.state, version=0, seen=line.state.seen) == replace(line.state, version=0)


def test_a_target_that_does_not_follow_its_shards_is_not_renewed() -> None:
    line = line_with()
    line.command(CommandKind.DISABLE)
    assert decided(renewed(line, IN_KEYS)).code == "SM-6524"


def test_without_a_shard_there_is_nothing_to_renew() -> None:
    line = line_with()
    line.drop("s0")
    line.drop("s1")
    assert decided(renewed(line, IN_KEYS)).code == "SM-6502"


def test_a_damaged_argument_is_refused() -> None:
    line = line_with()
    answer = line.command(CommandKind.RENEW, argument="{}")
    assert (answer.outcome, answer.code) == (Outcome.REFUSED, "SM-6524")
