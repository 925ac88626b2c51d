"""What is read together of a shared partition."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from shardmerge.schemas.names import ShardId
from shardmerge.spark_sink.partitions import Partition
from shardmerge.spark_sink.readings import NEAR, readings

OWN, WHOLE = Partition("own", 0), Partition("all", 0)


def of(number: int, partition: int = 0) -> Partition:
    return Partition("all", partition, ShardId("s1", "app", f"t_{number}"))


def test_a_topic_of_one_shard_is_a_reading_by_itself() -> None:
    (reading,) = readings({OWN: (3, 9)}).values()
    assert (reading.start, reading.end, reading.size) == (3, 9, 6)
    assert reading.first(4) == {OWN: (3, 7)}


def test_shards_that_stand_near_each_other_are_read_together_and_counted_once() -> None:
    (reading,) = readings({of(1): (5, 100), of(2): (0, 90), of(3): (99, 100)}).values()
    assert reading.size == 100
    assert reading.first(50) == {of(1): (5, 50), of(2): (0, 50)}
    assert reading.first(100) == {of(1): (5, 100), of(2): (0, 90), of(3): (99, 100)}


def test_one_that_is_far_behind_neither_delays_the_others_nor_reads_their_part() -> None:
    far = 5 * NEAR
    found = readings({of(1): (0, far + 9), of(2): (far, far + 9), of(3): (far + 1, far + 9)})
    assert {key: (r.start, r.end) for key, r in found.items()} == {
        (WHOLE, 0): (0, far),
        (WHOLE, 1): (far, far + 9),
    }
    assert set(found[WHOLE, 0].ranges) == {of(1)}
    assert set(found[WHOLE, 1].ranges) == {of(2), of(3)}


@given(
    st.dictionaries(
        st.builds(of, st.integers(0, 9), st.integers(0, 1)),
        st.tuples(st.integers(0, 4 * NEAR), st.integers(1, 2 * NEAR)),
    ),
    st.integers(1, 3 * NEAR),
)
def test_readings_of_a_partition_are_apart_and_lose_no_range(
    lengths: dict[Partition, tuple[int, int]], share: int
) -> None:
    ranges = {place: (start, start + length) for place, (start, length) in lengths.items()}
    found = readings(ranges)
    assert sorted(p for r in found.values() for p in r.ranges) == sorted(ranges)
    for (whole, number), reading in found.items():
        following = found.get((whole, number + 1))
        assert following is None or reading.end <= following.start
        first = reading.first(share)
        assert first, "something moves"
        for place, (start, end) in reading.ranges.items():
            assert ranges[place][0] == start < end <= ranges[place][1]
            assert reading.start <= start and end <= reading.end
            assert place.whole == whole
        for place, (start, end) in first.items():
            assert start < end <= reading.start + share
            assert start == ranges[place][0]
