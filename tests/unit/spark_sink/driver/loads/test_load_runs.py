"""What a driver does with the loads of its shards; sources and target are played."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.schemas.model.errors import ContractError, StackError, TargetError
from shardmerge.spark_sink.driver.loads.load_jobs import PlannedPart
from shardmerge.spark_sink.loading.load_state import ChunkState
from shardmerge.spark_sink.planning.chunk_orders import ChunkEnd
from tests.unit.spark_sink.decided import TARGET, A, B, decision
from tests.unit.spark_sink.driver.loads.played_loads import Driver


def test_a_shards_rows_wait_for_its_load_and_then_flow(driver: Driver) -> None:
    batch = driver.round()
    (target,) = batch.targets
    assert {name: stop.code for name, stop in target.stops.items()} == {
        A: "SM-1615",
        B: "SM-1615",
    }
    batch = driver.rounds()
    assert driver.runs.latest[A].is_complete and driver.runs.latest[B].is_complete
    assert not batch.targets[0].stops
    assert len(driver.store.orders) == 4
    assert all(load.is_complete for load in driver.store.kept.values())


def test_nothing_is_read_before_the_source_has_committed_what_it_has_shown(driver: Driver) -> None:
    driver.jobs.errors["commit"] = [StackError("no server", code="SM-4401")] * 2
    driver.rounds(3)
    assert driver.jobs.calls.count("commit") >= 2
    assert "plan" not in driver.jobs.calls
    assert driver.runs.troubles[A][0] == "no server"
    driver.rounds()
    assert driver.runs.latest[A].is_complete
    assert driver.runs.troubles == {}


def test_nothing_is_read_before_the_target_has_its_table(driver: Driver) -> None:
    driver.executed = set()
    driver.rounds(3)
    assert driver.store.orders == []


def test_nothing_is_given_out_while_a_statement_runs(driver: Driver) -> None:
    driver.busy = {TARGET}
    driver.rounds(4)
    assert driver.store.orders == []


def test_a_schema_change_moves_the_load_and_what_was_read_before_stays(driver: Driver) -> None:
    driver.store.answers = [ChunkEnd.DONE, *[ChunkEnd.OTHER_TABLE] * 20]
    driver.rounds(5)
    driver.settle()
    driver.decide(decision(3, A, 60, columns=("id", "c")), decision(4, B, 60, columns=("id", "c")))
    driver.store.answers = []
    driver.rounds()
    loads = driver.runs.latest.values()
    assert [(load.base, load.is_complete) for load in loads] == [(3, True), (4, True)]
    # Read before 50, and the change stands at 60.
    assert sorted(c.base for load in loads for c in load.chunks) in ([1, 3, 4, 4], [1, 3, 3, 4])


def test_a_schema_change_behind_all_that_was_read_completes_the_load(driver: Driver) -> None:
    driver.intake.settled = False
    driver.rounds(5)
    assert driver.runs.latest[A].is_read
    driver.decide(replace(decision(3, A, 60), key=()))
    driver.rounds()
    load = driver.runs.latest[A]
    assert (load.base, load.is_complete) == (1, True)
    assert {o.chunk.base for o in driver.store.orders if o.load.shard == A} == {1}
    # The other shard has no change that would show it.
    assert not driver.runs.latest[B].is_complete


def test_what_may_have_been_read_behind_a_schema_change_is_read_again(driver: Driver) -> None:
    driver.intake.settled = False
    driver.rounds(5)
    driver.decide(decision(3, A, 40, columns=("id", "c")))
    driver.intake.settled = True
    driver.rounds()
    of_a = [o for o in driver.store.orders if o.load.shard == A]
    assert [o.chunk.base for o in of_a] == [1, 1, 3, 3]
    assert of_a[-1].stream.segments[0].columns[-1].column.name == "c"
    assert driver.runs.latest[A].is_complete


def test_a_load_waits_at_a_held_gate_with_its_shard(driver: Driver) -> None:
    driver.decide(decision(3, A, 40, hold=True))
    driver.rounds()
    assert not driver.runs.latest[A].is_complete
    assert {o.load.shard for o in driver.store.orders} == {B}
    driver.decide(decision(4, A, 60, releases=(A,)))
    driver.rounds()
    assert driver.runs.latest[A].is_complete
    assert driver.runs.latest[A].base == 4


def test_a_table_that_is_dropped_is_not_read_on(driver: Driver) -> None:
    driver.intake.settled = False
    driver.rounds(5)
    driver.decide(decision(3, A, 60, live=False))
    batch = driver.rounds(2)
    assert driver.runs.latest[A].is_void
    assert A not in batch.targets[0].stops


def test_rows_of_a_dropped_table_agree_once_the_topic_has_what_its_chunks_include(
    driver: Driver,
) -> None:
    driver.intake.settled = False
    driver.rounds(5)
    driver.decide(decision(3, A, 60, live=False))
    driver.rounds(2)
    # The stream goes on, but the connector may be behind the chunks.
    assert driver.rows.loads[A].position is None
    assert driver.rows.loads[A].reading > driver.intake.watermarks.number + 1
    asked = driver.jobs.calls.count("prove")

    later = Driver(driver.store)
    later.intake.settled = False
    later.decide(decision(3, A, 60, live=False))
    later.rounds(2)
    assert later.rows.loads[A].reading > later.intake.watermarks.number + 1
    for one in (driver, later):
        one.intake.settled = True
        one.rounds(3)
        assert one.rows.loads[A].reading == one.intake.watermarks.number + 1
    assert driver.jobs.calls.count("prove") <= asked + 2


def test_rows_of_a_dropped_table_do_not_agree_because_they_were_to_be_read_again(
    driver: Driver,
) -> None:
    driver.intake.settled = False
    driver.rounds(5)
    driver.jobs.errors["commit"] = [StackError("no server", code="SM-4401")] * 40
    driver.decide(decision(3, A, 40))
    driver.rounds(2)
    states = {chunk.state for chunk in driver.runs.latest[A].chunks}
    assert states == {ChunkState.PLANNED}
    driver.decide(decision(4, A, 60, live=False))
    driver.rounds(2)
    assert driver.runs.latest[A].is_void
    assert driver.rows.loads[A].reading > driver.intake.watermarks.number + 1


def test_a_table_that_is_dropped_before_a_chunk_was_given_out_has_no_rows_to_wait_for(
    driver: Driver,
) -> None:
    driver.jobs.errors["commit"] = [StackError("no server", code="SM-4401")] * 40
    driver.rounds(1)
    driver.decide(decision(3, A, 60, live=False))
    driver.rounds(2)
    assert driver.runs.latest[A].is_void
    assert driver.rows.loads[A].reading == 0


def test_a_chunk_that_fails_is_given_out_again_and_the_reason_is_told(
    driver: Driver, caplog: pytest.LogCaptureFixture
) -> None:
    driver.store.answers = ["the target is full", StackError("gone", code="SM-4409")]
    driver.rounds(4)
    told = [record.getMessage() for record in caplog.records]
    assert any("the target is full" in text for text in told)
    driver.rounds()
    assert driver.runs.latest[A].is_complete and driver.runs.latest[B].is_complete
    assert len(driver.store.orders) == 6


def test_a_failure_that_cannot_pass_ends_the_sink(driver: Driver) -> None:
    driver.store.answers = ["final"]
    with pytest.raises(ContractError, match="final"):
        driver.rounds()


def test_another_table_is_waited_for(driver: Driver) -> None:
    driver.store.answers = [ChunkEnd.OTHER_TABLE] * 40
    driver.rounds(6)
    while driver.runs.is_busy:
        driver.runs.take(5.0)
    assert "its table has changed" in driver.runs.troubles[A][0]
    driver.store.answers = []
    driver.rounds()
    assert driver.runs.latest[A].is_complete


def test_a_chunk_that_is_too_large_is_cut(driver: Driver) -> None:
    driver.store.answers = [ChunkEnd.TOO_LARGE]
    driver.rounds()
    assert driver.jobs.calls.count("middle") == 1
    assert sorted(len(load.chunks) for load in driver.runs.latest.values()) == [2, 3]
    assert all(load.is_complete for load in driver.runs.latest.values())


def test_a_table_is_read_while_it_is_planned(driver: Driver) -> None:
    part = PlannedPart((("1",), ("2",)), False, 5)
    driver.jobs.parts = [part, part, part]
    driver.rounds()
    assert all(load.is_complete for load in driver.runs.latest.values())
    assert sum(len(load.chunks) for load in driver.runs.latest.values()) >= 8


def test_another_driver_reads_again_only_what_was_given_out() -> None:
    first = Driver()
    first.store.answers = ["later"] * 1
    first.rounds(4)
    given = first.store.kept[A, 1].chunks
    assert ChunkState.DONE in {chunk.state for chunk in given}
    second = Driver(first.store)
    before = len(second.store.orders)
    second.rounds()
    assert second.runs.latest[A].is_complete
    assert len(second.store.orders) - before < 4


def test_what_could_not_be_stored_is_read_again_from_the_target(driver: Driver) -> None:
    driver.rounds(2)
    for _ in range(4):
        driver.store.refuses = 1
        with pytest.raises(TargetError):
            driver.rounds()
    driver.rounds()
    assert all(load.is_complete for load in driver.runs.latest.values())


def test_rows_do_not_agree_sooner_because_the_state_is_read_again(driver: Driver) -> None:
    driver.rounds()
    assert driver.rows.loads[A].reading == driver.intake.watermarks.number + 1
    driver.runs.load()
    driver.rounds(1)
    assert driver.rows.loads[A].reading == driver.intake.watermarks.number + 1


def test_as_few_rows_are_read_as_the_limit_says() -> None:
    driver = Driver(load_connections=1, load_rows_per_s=3)
    driver.rounds(4)
    assert set(driver.jobs.asked) == {6}
    assert max(len(load.running) for load in driver.runs.latest.values()) <= 1
    driver.rounds(20)
    assert all(load.is_complete for load in driver.runs.latest.values())
