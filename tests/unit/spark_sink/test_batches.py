"""What is applied together when there is a lot."""

from __future__ import annotations

import pytest

from shardmerge.schemas.names import ShardId, TargetTable
from shardmerge.schemas.position import BEGINNING
from shardmerge.spark_sink.ranges import (
    RangeResult,
    RangeTask,
    Segment,
    ShardStream,
    offsets_in,
    offsets_moved,
)
from shardmerge.spark_sink.targets.mysql.batches import units_of


def tasks(*records: int, topic: str = "t") -> list[RangeTask]:
    segment = Segment(BEGINNING, (), ())
    stream = ShardStream(ShardId("s", "d", topic), TargetTable("d", "t"), (segment,), None)
    return [RangeTask(topic, n, 0, size, stream, {}, 1) for n, size in enumerate(records)]


def test_partitions_of_a_topic_stay_together_when_there_are_enough_topics() -> None:
    several = [tasks(10, 20 + n, topic=f"t{n}") for n in range(8)]

    units = units_of([task for some in several for task in some], cores=2)

    assert [[t.topic for t in unit] for unit in units] == [[f"t{n}"] * 2 for n in range(7, -1, -1)]


@pytest.mark.parametrize("records", [(100,) * 16, (1000, 1, 1), (5,), (7, 0, 0, 0)])
def test_a_topic_is_cut_until_all_cores_have_work(records: tuple[int, ...]) -> None:
    units = units_of(tasks(*records), cores=2)

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

    units = units_of(several, cores=8)

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
