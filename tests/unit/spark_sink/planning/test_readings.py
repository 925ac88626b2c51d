"""What is read together of a shared partition."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from shardmerge.schemas.model.names import ShardId
from shardmerge.spark_sink.barrier.partitions import Partition, Stream
from shardmerge.spark_sink.planning.readings import NEAR, OrderedReading, ordered_readings, readings

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


Ranges = dict[Partition, tuple[int, int]]
TWO = Partition("own", 1)


def ordered(*shards: Ranges) -> dict[int, Ranges]:
    """Ranges of shards of the shared topic: number → ranges that are read together."""
    found = ordered_readings({next(iter(ranges)).stream: ranges for ranges in shards})
    assert {topic for topic, _ in found} == {Partition("all", -1)}
    return {number: dict(reading.ranges) for (_, number), reading in found.items()}


def test_ordered_partitions_share_what_is_read_by_their_sizes() -> None:
    reading = OrderedReading({OWN: (0, 30_000), TWO: (70_000, 80_000)})
    assert reading.size == 40_000
    assert reading.first(20_000) == {OWN: (0, 15_000), TWO: (70_000, 75_000)}
    assert reading.first(40_000) == reading.ranges


def test_no_ordered_partition_is_left_out_however_little_is_read() -> None:
    reading = OrderedReading({OWN: (0, 1_000_000), TWO: (5, 15), of(1): (0, 2_000)})
    assert reading.first(1) == {OWN: (0, 1_000), TWO: (5, 15), of(1): (0, 1_000)}


def test_offsets_that_ordered_shards_share_count_once() -> None:
    reading = OrderedReading({of(1): (0, 100), of(2): (50, 120), of(1, 1): (7, 17)})
    assert reading.size == 120 + 10


def test_ordered_shards_are_read_from_their_partition_s_first_offset_on() -> None:
    reading = OrderedReading({of(1): (0, 30_000), of(2): (10_000, 40_000), of(3): (19_500, 40_000)})
    assert reading.first(20_000) == {
        of(1): (0, 20_000),
        of(2): (10_000, 20_000),
        of(3): (19_500, 20_500),
    }


def test_ordered_shards_that_stand_near_each_other_in_all_partitions_are_read_together() -> None:
    one: Ranges = {of(1): (0, 90), of(1, 1): (NEAR, NEAR + 9)}
    two: Ranges = {of(2): (NEAR, NEAR + 9), of(2, 1): (0, 50)}
    assert ordered(one, two) == {-1: one | two}


def test_ordered_shards_that_are_far_apart_in_one_partition_are_different_readings() -> None:
    one: Ranges = {of(1): (0, 90), of(1, 1): (NEAR + 8, NEAR + 9)}
    two: Ranges = {of(2): (0, 90), of(2, 1): (0, 90)}
    three: Ranges = {of(3): (7, 90), of(3, 1): (7, 90)}
    assert ordered(one, two, three) == {-1: one, -2: two | three}


def test_a_ordered_shard_without_rows_in_a_partition_is_near_there() -> None:
    one: Ranges = {of(1): (0, 90)}
    two: Ranges = {of(2, 1): (5 * NEAR, 6 * NEAR)}
    three: Ranges = {of(3, 1): (0, 90)}
    assert ordered(one, two, three) == {-1: one | two, -2: three}


def test_ordered_topics_are_readings_of_their_own() -> None:
    found = ordered_readings({Stream("a"): {OWN: (0, 9)}, Stream("b"): {TWO: (0, 9)}})
    assert {key: reading.ranges for key, reading in found.items()} == {
        (Partition("a", -1), -1): {OWN: (0, 9)},
        (Partition("b", -1), -1): {TWO: (0, 9)},
    }


@given(
    st.dictionaries(
        st.builds(of, st.integers(0, 5), st.integers(0, 2)),
        st.tuples(st.integers(0, 4 * NEAR), st.integers(1, 2 * NEAR)),
        min_size=1,
    ),
    st.integers(1, 3 * NEAR),
)
def test_ordered_readings_keep_a_shard_together_and_lose_no_range(
    lengths: Ranges, share: int
) -> None:
    ranges = {place: (start, start + length) for place, (start, length) in lengths.items()}
    streams: dict[Stream, Ranges] = {}
    for place, of_place in ranges.items():
        streams.setdefault(place.stream, {})[place] = of_place
    together = ordered_readings(streams)
    assert sorted(p for r in together.values() for p in r.ranges) == sorted(ranges)
    for stream in streams:
        assert sum(stream in {p.stream for p in r.ranges} for r in together.values()) == 1
    for (_, number), reading in together.items():
        assert number < 0
        first = reading.first(min(share, reading.size))
        assert first.keys() == reading.ranges.keys()
        for place, (start, end) in first.items():
            assert start == ranges[place][0] < end <= ranges[place][1]
