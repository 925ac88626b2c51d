"""TRUNCATE, fix-ups and re-reads under random histories.

See ``existing_rows_machine`` and ``late_values_machine``.
"""

from __future__ import annotations

from hypothesis import settings

from shardmerge.schemas.model.policies import Mode, RowsPolicy
from tests.properties.barrier_machine import SETTINGS
from tests.properties.barrier_world import SHARDS, number_of
from tests.properties.existing_rows_machine import ORIGINS, ExistingRowsMachine
from tests.properties.late_values_machine import LateValuesMachine
from tests.toy_sink import StaleSink

TestExistingRows = LateValuesMachine.TestCase
TestExistingRows.settings = settings(SETTINGS, max_examples=6 * SETTINGS.max_examples)


class StaleExistingRowsMachine(LateValuesMachine):
    """The same with watermarks that are older than the decisions."""

    sink_class = StaleSink


TestStaleExistingRows = StaleExistingRowsMachine.TestCase
TestStaleExistingRows.settings = SETTINGS


def test_a_row_between_two_gates_keeps_its_value_when_the_second_one_is_skipped() -> None:
    """The first skip let it pass; what the column was filled with must not be written over it."""
    shard = SHARDS[1]
    machine = ExistingRowsMachine()
    machine.start(1, 2, Mode.PESSIMISTIC, origin=ORIGINS[1])
    machine.let_everything_arrive()
    machine.roll_out([*SHARDS], ["a", "b", "c"], "INT", 0)
    machine.add_to_rows(shard, "b", "INT DEFAULT 7", {0}, None, arrives=False)
    machine.alter(shard, "a", "INT", "a", "DROP", both=False)
    machine.leave_every_conflict_by_commands(leaves=False)
    assert machine.target.cells[number_of(shard, 1)]["b"] is None


def test_a_row_behind_a_truncate_comes_again_when_the_sink_keeps_rows_from_then_on() -> None:
    """It was applied, and deleted with the shard's others, when the sink was stopped."""
    machine = ExistingRowsMachine()
    machine.start(2, 100, Mode.OPTIMISTIC, origin=ORIGINS[1])
    shard, source = SHARDS[0], machine.sources[SHARDS[0].source]
    for key in range(4):
        machine._put(shard, key, 7)
    machine.let_everything_arrive()
    machine.truncate(shard, 0)
    machine._put(shard, 1, 7)
    source.commit()
    source.land_marker(which=-1)  # the row behind it
    source.land_marker(which=-1)
    machine._decide_all()
    machine.run_the_sink(60)
    source.finish()
    while machine.target.cells:
        machine.run_the_sink(1)

    machine.start_the_sink_with_another_policy(RowsPolicy.KEEP)

    machine.let_everything_arrive()
    assert set(machine.target.cells) == {1}
