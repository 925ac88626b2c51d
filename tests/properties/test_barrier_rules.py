"""Each rule of the barrier has a history that ends well with it and is refused without it.

The control of ``barrier_machine``: a check that cannot fail proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

import shardmerge.spark_sink.barrier.applied as applied_module
import shardmerge.spark_sink.barrier.barrier as barrier_module
import shardmerge.spark_sink.barrier.statement_limits as limits_module
import shardmerge.spark_sink.barrier.statements as statements_module
import shardmerge.spark_sink.planning.plan as plan_module
from shardmerge.schemas.model.errors import SourceError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.origin import NO_ORIGIN
from shardmerge.schemas.model.policies import Mode, RenamePolicy
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.spark_sink.barrier.applied import CatchUp, Reached, RowProgress
from shardmerge.spark_sink.barrier.shard_gates import Gate, ShardGates
from tests.properties.barrier_machine import BarrierMachine
from tests.properties.barrier_world import SHARDS
from tests.properties.late_values_machine import LateValuesMachine
from tests.properties.test_barrier_machine import PartialBarrierMachine, StaleBarrierMachine
from tests.toy_kafka import Place
from tests.toy_sink import ToySink

FIRST, SECOND, OTHER = SHARDS[:3]


def _machine(kind: type[BarrierMachine] = BarrierMachine) -> BarrierMachine:
    machine = kind()
    machine.start(partitions=1, batch=100, mode=Mode.OPTIMISTIC)
    machine.let_everything_arrive()
    return machine


def _write(machine: BarrierMachine, shard: ShardId, key: int, **values: object) -> None:
    schema: TableSchema = machine.sources[shard.source].schemas[shard]
    image = {c.name: values.get(c.name) for c in schema.columns}
    image["id"] = SHARDS.index(shard) * 100 + key
    machine._send_row(shard, key, schema, image)


def _alter(machine: BarrierMachine, shard: ShardId, column: str, definition: str) -> None:
    verb = "DROP" if definition == "DROP" else "MODIFY"
    machine.alter(shard, column, definition, column, verb, both=False)


def _forbid_a_null_that_is_gone(machine: BarrierMachine) -> None:
    _write(machine, FIRST, 1, a=None)
    _write(machine, FIRST, 1, a=7)
    for shard in (FIRST, SECOND, OTHER):
        _alter(machine, shard, "a", "INT NOT NULL")
    machine.let_everything_arrive()


def a_null_before_not_null() -> None:
    machine = _machine()
    _forbid_a_null_that_is_gone(machine)


def a_null_after_the_watermarks_were_read() -> None:
    machine = _machine(StaleBarrierMachine)
    read = machine.sink.watermarks
    while machine.sink.watermarks is read:
        next(machine.steps)
    _forbid_a_null_that_is_gone(machine)


def a_null_in_a_partition_that_is_not_asked_for() -> None:
    for passes in range(8):
        machine = _machine(PartialBarrierMachine)
        _write(machine, FIRST, 0, a=1)
        machine.let_everything_arrive()
        before = machine.sink.passes
        while machine.sink.passes < before + passes:
            next(machine.steps)
        _forbid_a_null_that_is_gone(machine)


def a_row_between_two_gates_of_a_hold() -> None:
    machine = _machine()
    _alter(machine, OTHER, "a", "DATE")
    machine.let_everything_arrive()
    _write(machine, OTHER, 1, a="2020-02-02")
    _alter(machine, OTHER, "b", "INT")
    machine.let_everything_arrive()
    for shard in (FIRST, SECOND):
        _alter(machine, shard, "a", "DATE")
    machine.let_everything_arrive()
    assert machine.target.cells


def a_null_that_is_replaced_behind_a_held_gate() -> None:
    machine = _machine()
    for shard in (FIRST, SECOND):
        _alter(machine, shard, "b", "INT")
    _write(machine, OTHER, 1, a=None)
    machine.let_everything_arrive()
    _alter(machine, OTHER, "b", "DATE")
    _write(machine, OTHER, 1, a=7, b=None)
    _alter(machine, OTHER, "a", "INT NOT NULL")
    for shard in (FIRST, SECOND):
        _alter(machine, shard, "a", "INT NOT NULL")
    machine.let_everything_arrive()
    assert OTHER in machine.state.held
    for shard in (FIRST, SECOND):
        _alter(machine, shard, "b", "DATE")
    machine.let_everything_arrive()
    assert not machine.state.held
    assert machine.target.schema is not None
    column = machine.target.schema.column("a")
    assert column is not None and not column.nullable


def a_column_that_comes_back_while_its_debt_is_open() -> None:
    machine = _machine()
    _alter(machine, FIRST, "c", "INT")
    machine.let_everything_arrive()
    _write(machine, FIRST, 1, c=7)
    _alter(machine, FIRST, "c", "DROP")
    source = machine.sources["s1"]
    source.commit()
    source.land_marker(1)  # the change can be read, the row before it cannot
    machine._decide("s1")
    _alter(machine, OTHER, "c", "INT NOT NULL")
    _write(machine, OTHER, 1, c=7)
    machine.sources["s2"].settle()
    machine._decide("s2")
    while machine.outbox:
        machine.send_a_decision()
    machine.run_the_sink(60)
    machine.let_everything_arrive()


def a_row_that_is_readable_before_its_change() -> None:
    machine = _machine()
    machine.write_right_after_a_change(FIRST, "c", 60)
    machine.let_everything_arrive()


def a_row_whose_change_is_not_decided() -> None:
    machine = _machine()
    _alter(machine, FIRST, "c", "INT")
    _write(machine, FIRST, 1, c=7)
    machine.sources["s1"].settle()
    machine.run_the_sink(60)
    machine.let_everything_arrive()


def _late_machine() -> LateValuesMachine:
    machine = LateValuesMachine()
    machine.start(1, 100, Mode.OPTIMISTIC, 3, RenamePolicy.MAP, NO_ORIGIN)
    return machine


def a_row_that_is_read_again_before_the_column_is_made_anew() -> None:
    machine = _late_machine()
    machine.make_a_column_anew_while_others_wait(
        [FIRST, SECOND, OTHER], "b", held=False, between="nothing", rests=True, arrives=True
    )


def a_row_that_is_read_again_for_a_change_of_another_source() -> None:
    """That changes after the decisions were read, and before the ends are."""
    machine = _late_machine()
    machine.alter_as(FIRST, "ADD b ENUM('x')")
    machine.alter_as(OTHER, "ADD b ENUM('x', 'y')")
    _write(machine, FIRST, 1, b="x")
    machine.let_everything_arrive()
    _write(machine, FIRST, 2, b="x")
    machine.sources["s1"].settle()
    read = machine.sink.watermarks
    while machine.sink.watermarks is read:
        next(machine.steps)
    machine.alter_as(OTHER, "DROP b, ADD b ENUM('x', 'z')")
    machine.sources["s2"].settle()
    machine._decide_all()
    machine.read_a_chunk("s1", 2)
    machine.send_a_chunk("s1")
    machine.sources["s1"].settle()
    machine.run_the_sink(60)
    machine.let_everything_arrive()


def a_null_that_is_read_again() -> None:
    machine = _late_machine()
    machine.let_everything_arrive()
    order = [FIRST, SECOND, OTHER]
    machine.forbid_nulls_without_strict_mode(order, "a", set(), 60, another=False, arrives=True)


def a_null_that_is_read_again_behind_a_change_that_waits_for_the_debt() -> None:
    machine = _late_machine()
    machine.let_everything_arrive()
    order = [FIRST, SECOND, OTHER]
    machine.forbid_nulls_without_strict_mode(order, "a", set(), 0, another=False, arrives=False)
    machine.alter_as(FIRST, "MODIFY a INT")
    machine.let_everything_arrive()


def a_null_that_is_read_again_behind_a_change_of_its_column() -> None:
    machine = _late_machine()
    machine.let_everything_arrive()
    order = [FIRST, SECOND, OTHER]
    machine.forbid_nulls_without_strict_mode(order, "a", set(), 0, another=False, arrives=False)
    machine.alter_as(FIRST, "MODIFY a BIGINT NOT NULL")
    machine.alter_as(SECOND, "MODIFY a INT NOT NULL DEFAULT 5")
    machine.let_everything_arrive()
    assert machine.target.schema is not None
    column = machine.target.schema.column("a")
    assert column is not None
    assert (column.type.name, column.nullable) == ("bigint", False)
    assert column.default is not None and column.default.text == "5"


def _debts_do_not_wait_for_what_is_read_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(statements_module, "awaited_rereads", lambda *arguments: ())


def _debts_wait_for_what_is_read_again_whoever_waits_for_them(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(statements_module, "holds_rows_up", lambda *arguments: False)


def _what_passes_a_debt_brings_its_not_null(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(statements_module, "without_not_null", lambda statement: statement)


def _a_debt_that_was_passed_is_void(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(statements_module, "carried_debts", lambda *arguments: {})


def _contractions_do_not_wait(patch: pytest.MonkeyPatch) -> None:
    _debts_do_not_wait_for_what_is_read_again(patch)
    patch.setattr(statements_module, "limit_of", lambda shard, version: None)
    patch.setattr(statements_module, "debt_limit_of", lambda shard, version: None)


def _rows_do_not_wait(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(plan_module, "frontier", lambda target, executed: 1 << 40)


def _subjects_do_not_order(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(statements_module, "_earlier", lambda statement, earlier: None)


def _any_watermark_is_a_proof(patch: pytest.MonkeyPatch) -> None:
    real = applied_module.unapplied_before_gate

    def careless(shard: ShardGates, gate: Gate, rows: RowProgress) -> str:
        late = replace(rows.watermarks, seen=1 << 40)
        return real(shard, gate, replace(rows, watermarks=late))

    _debts_do_not_wait_for_what_is_read_again(patch)
    patch.setattr(limits_module, "unapplied_before_gate", careless)


def _some_ends_prove_as_much_as_all(patch: pytest.MonkeyPatch) -> None:
    _debts_do_not_wait_for_what_is_read_again(patch)
    patch.setattr(
        ToySink, "proven_by_some", lambda sink, known: replace(known, seen=sink.decisions.seen)
    )


def _any_offset_is_caught_up(patch: pytest.MonkeyPatch) -> None:
    def look(self: CatchUp, partitions: Iterable[Place], *rest: object) -> None:
        self.caught_up = dict.fromkeys(partitions, Reached(1 << 40, 1 << 40))

    patch.setattr(CatchUp, "look", look)


def _held_gates_count_like_others(patch: pytest.MonkeyPatch) -> None:
    def last_gate(shard: ShardGates, version: int) -> Gate | None:
        count = shard.upto(version)
        return shard.gates[count - 1] if count else None

    patch.setattr(statements_module, "limit_of", last_gate)


def _debts_do_not_wait_for_what_their_version_lets_through(patch: pytest.MonkeyPatch) -> None:
    _debts_do_not_wait_for_what_is_read_again(patch)
    patch.setattr(statements_module, "debt_limit_of", limits_module.limit_of)


def _every_debt_waits_for_what_its_version_lets_through(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(statements_module, "is_waited_for", lambda target, key, statement: False)


def _the_barrier_is_the_last_stable_offset(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        ToySink, "barrier_of", lambda sink, source: sink.kafka.logs[Place(source, 0)].stable_end
    )


def _undecided_changes_are_not_missed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(barrier_module, "is_settled", lambda *arguments: True)


def _decisions_of_other_sources_are_not_missed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ToySink, "ddl_watermark", lambda sink: 0)


def _rows_that_are_read_again_do_not_wait(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(plan_module, "fixup_stops", lambda target, open_now: {})


RULES = [
    (
        _what_passes_a_debt_brings_its_not_null,
        a_null_that_is_read_again_behind_a_change_of_its_column,
    ),
    (_a_debt_that_was_passed_is_void, a_null_that_is_read_again_behind_a_change_of_its_column),
    (_debts_do_not_wait_for_what_is_read_again, a_null_that_is_read_again),
    (
        _debts_wait_for_what_is_read_again_whoever_waits_for_them,
        a_null_that_is_read_again_behind_a_change_that_waits_for_the_debt,
    ),
    (_contractions_do_not_wait, a_null_before_not_null),
    (_any_watermark_is_a_proof, a_null_after_the_watermarks_were_read),
    (_some_ends_prove_as_much_as_all, a_null_in_a_partition_that_is_not_asked_for),
    (_any_offset_is_caught_up, a_null_before_not_null),
    (_held_gates_count_like_others, a_row_between_two_gates_of_a_hold),
    (
        _debts_do_not_wait_for_what_their_version_lets_through,
        a_null_that_is_replaced_behind_a_held_gate,
    ),
    (_every_debt_waits_for_what_its_version_lets_through, a_row_between_two_gates_of_a_hold),
    (_subjects_do_not_order, a_column_that_comes_back_while_its_debt_is_open),
    (_rows_do_not_wait, a_column_that_comes_back_while_its_debt_is_open),
    (_the_barrier_is_the_last_stable_offset, a_row_that_is_readable_before_its_change),
    (_undecided_changes_are_not_missed, a_row_whose_change_is_not_decided),
    (
        _decisions_of_other_sources_are_not_missed,
        a_row_that_is_read_again_for_a_change_of_another_source,
    ),
    (
        _rows_that_are_read_again_do_not_wait,
        a_row_that_is_read_again_before_the_column_is_made_anew,
    ),
]


@pytest.mark.parametrize(
    ("broken", "history"), RULES, ids=[broken.__name__.strip("_") for broken, _ in RULES]
)
def test_a_broken_rule_is_noticed(
    broken: Callable[[pytest.MonkeyPatch], None],
    history: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    history()
    broken(monkeypatch)
    with pytest.raises((AssertionError, SourceError)):
        history()
