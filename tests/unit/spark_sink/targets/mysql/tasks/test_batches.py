"""What is applied together when there is a lot."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import BEGINNING
from shardmerge.spark_sink.planning.ordered_partitions import PartitionClosure
from shardmerge.spark_sink.planning.ranges import (
    RangeResult,
    RangeTask,
    Segment,
    ShardStream,
    offsets_in,
    offsets_moved,
)
from shardmerge.spark_sink.process.settings import SinkSettings
from shardmerge.spark_sink.targets.mysql.tasks import apply_ranges
from shardmerge.spark_sink.targets.mysql.tasks.batches import BatchRunner, units_of


def tasks(*records: int, topic: str = "t") -> list[RangeTask]:
    segment = Segment(BEGINNING, (), ())
    stream = ShardStream(ShardId("s", "d", topic), TargetTable("d", "t"), (segment,), None)
    return [RangeTask(topic, n, 0, size, stream, {}, 1) for n, size in enumerate(records)]


def test_partitions_of_a_topic_stay_together_when_there_are_enough_topics() -> None:
    several = [tasks(10, 20 + n, topic=f"t{n}") for n in range(8)]

    units = units_of([task for some in several for task in some], writers=2)

    assert [[t.topic for t in unit] for unit in units] == [[f"t{n}"] * 2 for n in range(7, -1, -1)]


@pytest.mark.parametrize("records", [(100,) * 16, (1000, 1, 1), (5,), (7, 0, 0, 0)])
def test_a_topic_is_cut_until_all_cores_have_work(records: tuple[int, ...]) -> None:
    units = units_of(tasks(*records), writers=2)

    assert sorted(t.partition for unit in units for t in unit) == list(range(len(records)))
    sizes = [sum(t.end_offset for t in unit) for unit in units]
    assert sizes == sorted(sizes, reverse=True)
    assert all(
        len(unit) == 1 or size <= sum(records) / 4 for unit, size in zip(units, sizes, strict=True)
    )


def test_what_is_read_together_of_a_shared_topic_stays_together() -> None:
    segment = Segment(BEGINNING, (), ())
    streams = [
        ShardStream(
            ShardId("s", "d", f"t{n}"), TargetTable("d", "t"), (segment,), None, is_part=True
        )
        for n in range(3)
    ]
    several = [
        RangeTask("all", partition, start, 1_000, stream, {}, 1, reading)
        for partition in range(2)
        for stream, start, reading in zip(streams, (900, 901, 0), (1, 1, 0), strict=True)
    ]

    units = units_of(several, writers=8)

    assert offsets_in(several) == 2 * (100 + 1_000)
    assert all(len({(t.partition, t.reading) for t in unit}) == 1 for unit in units)
    assert sorted(len(unit) for unit in units) == [1, 1, 2, 2]


def test_offsets_that_several_shards_moved_over_count_once() -> None:
    one, two = ShardId("s", "d", "a"), ShardId("s", "d", "b")
    results = [
        RangeResult("all", 0, 0, 50, None, 0, 0, 0, part=one),
        RangeResult("all", 0, 30, 80, None, 0, 0, 0, part=two),
        RangeResult("all", 1, 5, 10, None, 0, 0, 0, part=two),
        RangeResult("own", 0, 5, 5, None, 0, 0, 0),
    ]
    assert offsets_moved(results) == 85


def ordered(shard: str, target: str = "t", reading: int = -1, topic: str = "all") -> RangeTask:
    """Of a shard's part of a topic."""
    segment = Segment(BEGINNING, (), ())
    stream = ShardStream(
        ShardId("s", "d", shard),
        TargetTable("d", target),
        (segment,),
        None,
        is_part=True,
        ordered=True,
    )
    return RangeTask(topic, 0, 0, 1_000, stream, {}, 1, reading, PartitionClosure(1_000, 1_000))


def of_partition(number: int, task: RangeTask) -> RangeTask:
    return replace(task, partition=number)


def test_what_is_ordered_is_never_parted() -> None:
    several = [of_partition(n, ordered("a", reading=-1 - n % 2)) for n in range(16)]

    units = units_of([*several, *tasks(9, 9, 9, 9)], writers=2)

    stepped = [unit for unit in units if unit[0].closure is not None]
    assert sorted(sorted(t.partition for t in unit) for unit in stepped) == [
        [*range(0, 16, 2)],
        [*range(1, 16, 2)],
    ]


def test_what_is_ordered_is_apart_from_the_rest_of_its_topic() -> None:
    others = [replace(ordered("b"), reading=n, closure=None) for n in range(2)]

    units = units_of([ordered("a"), *others, ordered("c"), *tasks(9_000)], writers=1)

    names = sorted([t.stream.shard.table for t in unit] for unit in units)
    assert names == [["a", "c"], ["b", "b"], ["t"]]


def test_ordered_shards_are_neighbours_in_a_unit_and_so_are_targets() -> None:
    shards = [ordered(shard, target) for shard, target in ("ax", "by", "cx")]
    several = [of_partition(n, task) for n in range(2) for task in shards]

    [unit] = units_of(several, writers=8)

    assert [t.stream.shard.table + t.stream.target.table for t in unit] == [
        "ax", "ax", "cx", "cx", "by", "by",
    ]  # fmt: skip


def applied(monkeypatch: pytest.MonkeyPatch, *several: RangeTask) -> list[list[RangeTask]]:
    """The groups of tasks that are applied together; each has to go the way that is its own."""
    found: list[list[RangeTask]] = []

    def way(*, stepped: bool) -> Any:
        def apply(together: Sequence[RangeTask], connection: object) -> list[RangeResult]:
            assert {task.closure is not None for task in together} == {stepped}
            found.append(list(together))
            return []

        return apply

    monkeypatch.setattr(apply_ranges, "idle_connection", nullcontext)
    connection = SimpleNamespace(check_safe=lambda: None)
    monkeypatch.setattr(apply_ranges, "apply_together", way(stepped=False))
    monkeypatch.setattr(apply_ranges, "apply_ordered", way(stepped=True))
    assert not list(apply_ranges.apply_tasks(several, cast(Any, connection)))
    return found


def test_all_ordered_partitions_are_applied_together(monkeypatch: pytest.MonkeyPatch) -> None:
    several = [of_partition(n, ordered(shard)) for shard in "ab" for n in range(3)]
    assert applied(monkeypatch, *several) == [several]


def test_what_is_ordered_is_applied_apart_from_all_else(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = tasks(5, 5)
    both = [ordered("a"), of_partition(1, ordered("a"))]
    found = applied(monkeypatch, one, *both, two)
    assert found == [[one], both, [two]]


def test_ordered_readings_of_one_topic_are_applied_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    near, far = ordered("a"), ordered("b", reading=-2)
    other = ordered("c", reading=-2, topic="more")
    elsewhere = of_partition(1, far)
    assert applied(monkeypatch, near, elsewhere, far, other) == [[near], [elsewhere, far, other]]


def test_batches_are_small_while_the_cluster_has_no_executor(
    caplog: pytest.LogCaptureFixture,
) -> None:
    runner = BatchRunner(SinkSettings(Path("pipeline.toml")), cast(Any, None), min_records=100)
    runner.spark = cast(Any, SimpleNamespace(is_starting=True, lacks_executors=False))
    assert runner.bound(1000) == 99
    runner.spark = cast(Any, SimpleNamespace(is_starting=False, lacks_executors=False))
    assert runner.bound(1000) == 1000
    assert "executors_awaited" not in caplog.text
    for _ in range(2):
        runner.spark = cast(Any, SimpleNamespace(is_starting=False, lacks_executors=True))
        assert [runner.bound(1000), runner.bound(10)] == [99, 10]
        runner.spark = cast(Any, SimpleNamespace(is_starting=False, lacks_executors=False))
        assert runner.bound(1000) == 1000
    # Once each time.
    assert caplog.text.count("executors_awaited") == 2
