"""Loads of rows of one moment, which are copied first; sources and target are played."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from shardmerge.schemas.model.errors import ContractError, TargetError
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.policies import RowOperation
from shardmerge.schemas.model.position import BEGINNING
from shardmerge.schemas.pipeline.settings import Source
from shardmerge.spark_sink.barrier.applied import Applied
from shardmerge.spark_sink.loading.load_state import LoadKind
from shardmerge.spark_sink.planning.chunk_orders import (
    ChunkEnd,
    ChunkFailure,
    ChunkOrder,
    ChunkResult,
)
from tests.unit.spark_sink.decided import A_ROWS, TARGET, A, B, at, decision, folded, key
from tests.unit.spark_sink.driver.loads.played_loads import FIRST, ROUTE, Driver


def test_a_shard_whose_rows_must_be_of_one_moment_is_read_as_a_whole(driver: Driver) -> None:
    driver.routes = (replace(ROUTE, ignore=(RowOperation.DELETE,)),)
    batch = driver.rounds()
    load = driver.runs.latest[A]
    assert (load.kind, len(load.chunks), load.is_complete) == (LoadKind.SNAPSHOT, 1, True)
    assert sorted(o.load.shard for o in driver.store.copies) == [A, B]
    assert driver.store.copies[0].chunk.read_before == at(50)
    assert sorted(driver.store.forgotten) == [A, B]
    # Rows of the stream from before the snapshot are in it.
    (target,) = batch.targets
    assert not target.stops
    assert driver.runs.passed_over == {A: at(50), B: at(50)}
    (task,) = [t for t in batch.tasks if t.stream.shard == A]
    assert [(s.start, s.passed_over) for s in task.stream.segments] == [
        (BEGINNING, True),
        (at(50), False),
    ]


def test_a_target_with_another_unique_key_is_found_when_it_is_there(driver: Driver) -> None:
    driver.executed = set()
    driver.rounds(3)
    driver.store.unique = True
    driver.executed = {key(1)}
    driver.rounds()
    assert {load.kind for load in driver.runs.latest.values()} == {LoadKind.SNAPSHOT}
    assert {o.signals for o in driver.store.orders} == {"shardmerge_p_s1"}
    assert all(load.is_complete for load in driver.runs.latest.values())


def test_a_snapshot_is_not_copied_before_it_is_proven(driver: Driver) -> None:
    driver.store.unique, driver.intake.settled = True, False
    driver.rounds(5)
    assert driver.runs.latest[A].is_read and driver.store.copies == []
    driver.decide(decision(3, A, 40, columns=("id", "c")))
    driver.intake.settled = True
    driver.rounds()
    # It was read behind the schema change, so it is read again.
    assert [o.chunk.base for o in driver.store.orders if o.load.shard == A] == [1, 3]
    assert [o.chunk.base for o in driver.store.copies if o.load.shard == A] == [3]
    assert driver.runs.latest[A].is_complete


def test_a_copy_that_fails_is_tried_again(driver: Driver) -> None:
    driver.store.unique = True
    driver.store.failures = [ChunkFailure(A, 0, "Duplicate entry '5'", code="SM-3101")] * 40
    driver.rounds(9)
    assert "Duplicate entry '5'" in {t.reason for t in driver.runs.troubles.values()}
    driver.store.failures = []
    driver.rounds()
    assert all(load.is_complete for load in driver.runs.latest.values())


def test_a_snapshot_is_not_read_twice_at_once(driver: Driver) -> None:
    driver.store.unique = True
    reading, ends = threading.Event(), threading.Event()
    run, running, most = driver.store.run, list[ShardId](), list[int]()

    def slow(order: ChunkOrder, source: Source, *, small: bool) -> Any:
        running.append(order.load.shard)
        most.append(running.count(order.load.shard))
        reading.set()
        assert ends.wait(5)
        running.remove(order.load.shard)
        # The target has planned it again meanwhile.
        is_wanted = driver.store.kept[order.load.shard, order.load.version].accepts(
            order.chunk.given
        )
        if not is_wanted:
            return ChunkResult(order.load.shard, 0, ChunkEnd.REFUSED)
        return run(order, source, small=small)

    driver.store.run = slow  # type: ignore[method-assign]
    while not reading.is_set():
        driver.round_without_waiting()
    # The state is read again, as after an error of the target.
    driver.runs.load()
    for _ in range(3):
        driver.round_without_waiting()
    ends.set()
    driver.rounds()
    assert set(most) == {1}
    assert all(load.is_complete for load in driver.runs.latest.values())


def without_key(driver: Driver, *, beside: bool = False) -> None:
    """The shard loses its key while its chunks are read, which nobody can read any more."""
    if not beside:
        driver.intake.decisions = folded(FIRST[0])
    driver.store.answers = [ChunkEnd.DONE, *[ChunkEnd.OTHER_TABLE] * 20]
    driver.rounds(4)
    driver.settle()
    driver.decide(replace(decision(3 if beside else 2, A, 40), key=()))
    # The stream is applied up to the new base.
    driver.rows.applied = {A_ROWS: Applied(4, at(60))}
    driver.store.answers = []


def test_a_shard_that_loses_its_key_is_read_anew_and_its_earlier_rows_go(driver: Driver) -> None:
    without_key(driver)
    driver.store.failures = [ChunkFailure(A, 0, "away")] * 2
    driver.rounds()
    load = driver.runs.latest[A]
    assert (load.kind, load.base, load.is_complete) == (LoadKind.SNAPSHOT, 2, True)
    assert driver.store.cleared == ["DELETE FROM `merged`.`t`"], "once, and not at each attempt"
    assert len(driver.store.copies) == 3
    assert driver.runs.troubles == {}


def test_rows_that_the_target_refuses_to_delete_are_deleted_before_anything_is_copied(
    driver: Driver,
) -> None:
    without_key(driver)
    driver.store.refused = [TargetError("no rights", code="SM-3101")] * 40
    driver.rounds()
    assert driver.runs.troubles[A].reason == "no rights"
    assert driver.store.copies == []
    assert driver.store.kept[A, 1].clears
    driver.settle()
    driver.store.refused = []
    later = Driver(driver.store)
    later.intake.decisions, later.rows.applied = driver.intake.decisions, driver.rows.applied
    later.rounds()
    assert later.runs.latest[A].is_complete
    assert len(later.store.cleared) == len(later.store.copies) == 1


def test_a_shard_that_loses_its_key_waits_if_its_rows_are_not_told_from_others(
    driver: Driver,
) -> None:
    without_key(driver, beside=True)
    driver.rounds()
    assert driver.runs.troubles[A].code == "SM-1616"
    assert "shardmerge rebuild merged.t" in driver.runs.troubles[A].hint
    assert driver.store.cleared == []
    assert not driver.runs.latest[A].is_complete


def test_snapshots_end_with_the_sink(driver: Driver) -> None:
    driver.rounds(2)
    driver.runs.stop()
    assert driver.store.is_stopped


def test_the_target_is_asked_for_its_keys_once(driver: Driver) -> None:
    asked: list[TargetTable] = []

    def is_asked(target: TargetTable) -> bool:
        asked.append(target)
        return False

    driver.store.has_other_unique_key = is_asked  # type: ignore[method-assign]
    driver.store.answers = ["away"] * 6
    driver.rounds()
    assert asked == [TARGET]


def test_a_copy_that_can_never_succeed_ends_the_sink(driver: Driver) -> None:
    driver.store.unique = True
    driver.store.failures = [ChunkFailure(A, 0, "no user", final=True)]
    with pytest.raises(ContractError, match="no user"):
        driver.rounds()


def test_another_driver_goes_on_copying_and_tidies_up() -> None:
    first = Driver()
    first.store.unique = True
    first.store.failures = [ChunkFailure(A, 0, "away")] * 40
    first.rounds(9)
    first.store.failures = []
    assert first.store.forgotten == []
    first.store.left = [A, B]
    second = Driver(first.store)
    second.rounds()
    assert len([o for o in second.store.orders if o.load.shard == A]) == 1
    assert second.runs.latest[A].is_complete
    assert sorted(second.store.forgotten) == [A, B]
    # A later driver, for a source that Debezium reads now, still skips what the snapshot has.
    third = Driver(first.store, snapshot="debezium")
    assert third.runs.passed_over == {A: at(50), B: at(50)}
