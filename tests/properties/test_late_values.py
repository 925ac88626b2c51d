"""Histories in which a value is late, each of which ended with another value once."""

from __future__ import annotations

import pytest

from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.origin import NO_ORIGIN, Origin
from shardmerge.schemas.model.policies import ExistingRows, Mode, RenamePolicy
from shardmerge.schemas.records.decisions import FixupKind
from shardmerge.schemas.records.operator_commands import CommandKind
from tests.properties.barrier_world import SHARDS, number_of
from tests.properties.existing_rows_machine import ORIGINS
from tests.properties.late_values_machine import LateValuesMachine
from tests.toy_target import BIG

FIRST, SECOND, LAST = SHARDS[:3]


def _machine(
    mode: Mode = Mode.OPTIMISTIC,
    renames: RenamePolicy = RenamePolicy.MAP,
    origin: Origin = NO_ORIGIN,
    partitions: int = 2,
    existing_rows: ExistingRows = ExistingRows.REREAD,
) -> LateValuesMachine:
    machine = LateValuesMachine()
    machine.start(partitions, 100, mode, 3, renames, origin, existing_rows=existing_rows)
    machine.let_everything_arrive()
    return machine


def _put(machine: LateValuesMachine, shard: ShardId, key: int, **values: object) -> None:
    schema = machine.schema_of(shard)
    assert schema is not None
    image = {c.name: values.get(c.name) for c in schema.columns}
    machine._send_row(shard, key, schema, image | {"id": number_of(shard, key)})


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("between", ["nothing", "row", "new row"])
@pytest.mark.parametrize("partitions", [1, 3])
def test_what_is_read_again_does_not_pass_the_statement_that_it_is_read_for(
    held: bool, between: str, partitions: int
) -> None:
    """No gate of the statement's stands in the shard's rows: another shard changed.

    A row that the binlog has newer than what was read does not come by the snapshot, and a new one
    neither: they must not be written into the old column either.
    """
    machine = _machine(partitions=partitions)
    machine.make_a_column_anew_while_others_wait(
        [FIRST, SECOND, LAST], "b", held, between, rests=True, arrives=True
    )
    assert all(machine.target.cells[key]["b"] == "x" for key in (1, 2))


def test_a_row_that_is_read_again_waits_for_the_column_that_an_operator_kept_back() -> None:
    machine = _machine()
    for shard in (FIRST, SECOND, LAST):
        machine.alter_as(shard, "ADD b INT, DROP a")
    machine.let_everything_arrive()
    machine._command(CommandKind.DISABLE, None)
    machine.alter_as(FIRST, "ADD a INT DEFAULT 5")
    _put(machine, FIRST, 1, a=7)
    machine._let_the_sources_settle()
    machine.run_the_sink(60)
    machine.let_everything_arrive()
    assert machine.target.cells[1]["a"] == 7


@pytest.mark.parametrize("existing_rows", ExistingRows)
def test_a_row_behind_a_decision_waits_for_the_column_that_an_operator_kept_back(
    existing_rows: ExistingRows,
) -> None:
    """Whatever becomes of the rows before it; an older column of that name is still there."""
    machine = _machine(existing_rows=existing_rows)
    machine.pause_or_resume(LAST, "pause")
    _put(machine, LAST, 1)
    for shard in (FIRST, SECOND, LAST):
        machine.alter_as(shard, "ADD b INT, DROP a")
    machine._let_the_sources_settle()
    machine._command(CommandKind.DISABLE, None)
    machine.alter_as(FIRST, "ADD a INT DEFAULT 5")
    machine._let_the_sources_settle()
    machine._command(CommandKind.ENABLE, None)
    machine._decide_all()
    _put(machine, FIRST, 1, a=7)
    machine.pause_or_resume(FIRST, "resume")
    machine._let_the_sources_settle()
    machine._let_the_sink_rest()
    machine.let_everything_arrive()
    assert machine.target.cells[1]["a"] == 7


def test_a_held_shard_gets_the_values_of_a_column_that_an_operator_kept_back() -> None:
    machine = _machine()
    machine.alter_as(SECOND, "ADD x DATE")
    machine.let_everything_arrive()
    machine._command(CommandKind.DISABLE, None)
    machine.alter_as(FIRST, "ADD b INT DEFAULT 5")
    _put(machine, FIRST, 1, b=7)
    machine.alter_as(FIRST, "ADD x INT")
    machine._let_the_sources_settle()
    machine._let_the_sink_rest()
    machine.let_everything_arrive()
    assert FIRST in machine.state.held
    assert "b" in {c.column.name for c in machine.state.columns}
    machine.alter_as(FIRST, "DROP x")
    machine.let_everything_arrive()
    assert machine.target.cells[1]["b"] == 7


@pytest.mark.parametrize("origin", ORIGINS[:2])
@pytest.mark.parametrize("mode", Mode)
def test_rows_between_held_gates_get_what_the_column_was_added_with(
    mode: Mode, origin: Origin
) -> None:
    """Not what the shard's definition says when it is held no longer."""
    machine = _machine(mode, origin=origin)
    if mode is Mode.OPTIMISTIC:
        machine.alter_as(SECOND, "ADD x DATE")
        machine.let_everything_arrive()
    _put(machine, FIRST, 0, a=1)
    machine.alter_as(FIRST, "ADD x INT")
    _put(machine, FIRST, 1, a=1)
    machine.alter_as(FIRST, "ADD c INT NOT NULL DEFAULT 5")
    _put(machine, FIRST, 2, c=9)
    machine.alter_as(FIRST, "ALTER c DROP DEFAULT")
    machine._let_the_sources_settle()
    if mode is Mode.OPTIMISTIC:
        machine.alter_as(FIRST, "DROP x")
    else:
        for shard in (SECOND, LAST):
            machine.alter_as(shard, "ADD x INT, ADD c INT NOT NULL")
    machine.let_everything_arrive()
    assert not machine.state.held
    assert [machine.target.cells[key]["c"] for key in (0, 1, 2)] == [5, 5, 9]
    kinds = {f.kind for d in machine.ddl if d for f in d.fixups if f.shard == FIRST}
    assert kinds == {FixupKind.UPDATE if origin.columns else FixupKind.SNAPSHOT}


def test_a_row_of_before_the_column_gets_its_default_while_another_shard_renames_it() -> None:
    machine = _machine(renames=RenamePolicy.COPY)
    machine.alter_as(SECOND, "ADD y INT")
    _put(machine, FIRST, 1, a=7)
    machine.alter_as(FIRST, "ADD b INT DEFAULT 5")
    machine.alter_as(SECOND, "ADD b INT DEFAULT 5, DROP y")
    machine.alter_as(SECOND, "RENAME COLUMN b TO c")
    machine.let_everything_arrive()
    assert (machine.target.cells[1]["b"], machine.target.cells[1]["c"]) == (None, 5)
    for shard in (FIRST, LAST):
        machine.alter_as(shard, "ADD c INT" if shard == LAST else "RENAME COLUMN b TO c")
    machine.let_everything_arrive()
    assert machine.target.cells[1]["c"] == 5


@pytest.mark.parametrize("origin", ORIGINS[:2])
@pytest.mark.parametrize("gives_up", ["DROP a", "RENAME COLUMN a TO b"])
def test_values_of_a_shard_that_gave_a_column_up_do_not_keep_it_from_getting_narrower(
    origin: Origin, gives_up: str
) -> None:
    machine = _machine(origin=origin)
    machine.alter_as(FIRST, "ADD b INT")
    machine.alter_as(SECOND, "MODIFY a BIGINT")
    _put(machine, SECOND, 1, a=BIG)
    machine.let_everything_arrive()
    machine.target.orphans.clear()
    machine.alter_as(SECOND, gives_up)
    machine.target.orphans.clear()  # Nobody mends what the target refuses.
    machine.let_everything_arrive()
    assert machine.target.schema is not None
    column = machine.target.schema.column("a")
    assert column is not None
    assert column.type.name == "int"
    assert machine.target.cells[number_of(SECOND, 1)]["a"] is None
