"""Batches of the driver: rows that collide with others, and rows that it expects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import pytest

from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.driver import batch_runs
from shardmerge.spark_sink.driver.loop import Driver
from shardmerge.spark_sink.kafka.intake import Intake
from shardmerge.spark_sink.planning.ranges import RangeResult, RangeTask, RowHold, TaskFailure
from tests.unit.spark_sink.decided import A, at
from tests.unit.spark_sink.kafka.played_topics import PIPELINE, Offsets
from tests.unit.spark_sink.planning.test_failures import Published, Tail, Target, driver_of


class Refusing(Target):
    """Refuses the first row of each partition; ``planned``: what was to be applied."""

    def __init__(self, *, collides: bool) -> None:
        super().__init__()
        self.collides = collides
        self.planned: list[list[RangeTask]] = []

    def run(
        self, tasks: Sequence[RangeTask], is_safe: Callable[[], bool]
    ) -> Iterator[RangeResult | TaskFailure]:
        self.planned.append(list(tasks))
        for one in tasks:
            hold = RowHold(A, at(5), 0, "Duplicate entry", "change it", self.collides)
            yield RangeResult(one.topic, one.partition, 0, 0, at(5), 0, 0, 0, hold)


def colliding(
    target: Refusing, *, partitions: int = 2, orders_partitions: bool = True
) -> tuple[Driver, Published]:
    offsets, published = Offsets(), Published()
    offsets.counts["s1.app.a"] = partitions
    intake = Intake(
        PIPELINE, cast(Any, offsets), cast(Any, Tail()), orders_partitions=orders_partitions
    )
    return driver_of(intake, target, published), published


def held(published: Published) -> bool:
    return "Duplicate entry" in repr(published.records[-1].shards)


def test_a_collision_brings_the_ordered_partitions_before_it_holds_the_shard() -> None:
    target = Refusing(collides=True)
    driver, published = colliding(target)
    assert driver.step(0), "there is more to do at once"
    assert not held(published)
    assert driver.step(0), "what is complete is known soon"
    assert len(target.planned) == 1, "and nothing is applied before"
    driver.step(0)
    assert [task.closure is not None for task in target.planned[-1]] == [True, True]
    assert held(published), "ordered, it collides with another shard's row"
    driver.step(0)
    assert len(target.planned) == 2, "it rests"


@pytest.mark.parametrize(
    ("collides", "partitions", "orders_partitions"),
    [(False, 2, True), (True, 1, True), (True, 2, False)],
)
def test_a_shard_is_held_where_ordered_partitions_do_not_help(
    collides: bool, partitions: int, orders_partitions: bool
) -> None:
    driver, published = colliding(
        Refusing(collides=collides), partitions=partitions, orders_partitions=orders_partitions
    )
    driver.step(0)
    assert held(published)


def test_rows_that_arrive_are_fetched_while_it_is_found_out_whether_they_are_safe() -> None:
    offsets, target = Offsets(), Target()
    target.fails = None
    intake = Intake(PIPELINE, cast(Any, offsets), cast(Any, Tail()))
    driver = driver_of(intake, target, Published())
    rows = Partition("s1.app.a", 0)
    intake.arrived = {rows: 1}
    assert driver.step(0)
    assert target.expected == [], "its first rows: where the sink stands is not known yet"

    offsets.high = offsets.stable = 12
    assert driver.step(0)
    assert (target.expected, target.stored) == ([{rows: 10}], {rows: 12})
    intake.arrived = {}
    driver.step(0)
    assert target.expected == [{rows: 10}], "nothing more is fetched"


def test_nothing_is_fetched_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_runs, "FAILURE_PAUSE_S", 0.0)
    offsets, target = Offsets(), Target()
    target.fails = None
    intake = Intake(PIPELINE, cast(Any, offsets), cast(Any, Tail()))
    driver = driver_of(intake, target, Published())
    driver.step(0)
    rows = Partition("s1.app.a", 0)
    intake.arrived = {rows: 1, Partition("other", 0): 1}
    assert not driver.step(0), "an arrival whose transaction is still open"
    assert target.expected == [{rows: 10}, {}]

    target.stored[rows] = 4
    offsets.high = offsets.stable = 12
    target.fails = TaskFailure("the target is away", "start it")
    driver.step(0)
    target.expected.clear()
    driver.step(0)
    assert target.expected == [], "rows wait before the new ones"
