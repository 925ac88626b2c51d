"""What is known to be complete of streams that are ordered."""

from __future__ import annotations

from shardmerge.spark_sink.barrier.applied import Watermarks
from shardmerge.spark_sink.barrier.partitions import Partition, Stream
from shardmerge.spark_sink.planning.ordered_partitions import Closure, Closures, closed_ranges
from tests.unit.spark_sink.decided import A, B

TOPIC = "s1.app.a"
STREAM = Stream(TOPIC)
ONE, TWO, THREE = (Partition(TOPIC, number) for number in range(3))


def offsets(*of_partitions: int, stream: Stream = STREAM) -> dict[Partition, int]:
    """Of each partition of a stream."""
    return {
        Partition(stream.topic, number, stream.shard): offset
        for number, offset in enumerate(of_partitions)
    }


def look(closures: Closures, watermarks: dict[Partition, int], ends: dict[Partition, int]) -> bool:
    read = Watermarks(partitions={TOPIC: len(watermarks)}, ends=watermarks)
    return closures.look([STREAM], read, ends)


def test_nothing_is_known_at_the_first_look() -> None:
    closures = Closures()
    look(closures, offsets(5, 5), offsets(5, 5))
    assert closures.found == {}


def test_the_ends_of_the_look_before_are_bounded_by_watermarks_that_were_read_after_it() -> None:
    closures = Closures()
    look(closures, offsets(6, 6), offsets(5, 3))
    look(closures, offsets(9, 7), offsets(9, 8))
    assert closures.found == {STREAM: Closure(offsets(5, 3), offsets(9, 7))}


def test_it_is_a_closure_when_the_safe_ends_reach_every_bound() -> None:
    closures = Closures()
    look(closures, offsets(6, 6), offsets(5, 3))
    look(closures, offsets(9, 8), offsets(9, 7))
    assert closures.found == {}, "a transaction is open"
    look(closures, offsets(30, 30), offsets(10, 7))
    assert closures.found == {}, "in that partition still"
    look(closures, offsets(40, 40), offsets(10, 8))
    assert closures.found == {STREAM: Closure(offsets(5, 3), offsets(9, 8))}, "of that look"


def test_a_closure_holds_until_the_next_is_found() -> None:
    closures, ends = Closures(), offsets(5, 5)
    look(closures, ends, ends)
    look(closures, offsets(8, 8), offsets(8, 8))
    first = closures.found[STREAM]
    assert first == Closure(ends, offsets(8, 8))
    look(closures, offsets(20, 20), offsets(9, 9))
    assert closures.found[STREAM] == first
    look(closures, offsets(30, 30), offsets(20, 20))
    assert closures.found[STREAM] == Closure(offsets(8, 8), offsets(20, 20))


def test_watermarks_from_before_the_ends_bound_nothing() -> None:
    closures, read = Closures(), Watermarks(partitions={TOPIC: 2}, ends=offsets(5, 5))
    closures.look([STREAM], read, offsets(9, 5))
    closures.look([STREAM], read, offsets(9, 5), read_anew=False)
    assert closures.found == {}
    look(closures, offsets(9, 5), offsets(9, 5))
    assert closures.found == {STREAM: Closure(offsets(9, 5), offsets(9, 5))}


def test_no_other_closure_is_looked_for_while_nothing_comes() -> None:
    closures, ends = Closures(), offsets(5, 5)
    look(closures, ends, ends)
    look(closures, ends, ends)
    known = closures.found[STREAM]
    look(closures, ends, ends)
    assert closures.found[STREAM] is known


def test_a_look_tells_whether_another_one_is_worth_it() -> None:
    closures = Closures()
    assert look(closures, offsets(9, 9), offsets(5, 5)), "ends of the first look"
    assert not look(closures, offsets(9, 9), offsets(5, 5)), "an open transaction may last"
    assert look(closures, offsets(9, 9), offsets(5, 9))
    assert look(closures, offsets(9, 9), offsets(9, 9))
    assert not look(closures, offsets(9, 9), offsets(9, 9))


def test_one_stream_with_news_makes_another_look_worth_it() -> None:
    closures, other = Closures(), Stream("s1.app.b")
    watermarks = Watermarks(
        partitions={TOPIC: 1, other.topic: 1}, ends=offsets(9) | offsets(9, stream=other)
    )
    for streams in ([STREAM, other], [other, STREAM]):
        closures.look(streams, watermarks, offsets(5) | offsets(5, stream=other))
        assert closures.look(streams, watermarks, offsets(5) | offsets(6, stream=other))


def test_nothing_is_expected_of_no_stream() -> None:
    assert not Closures().look([], Watermarks(), offsets(5, 5))


def test_a_shared_topic_s_watermarks_bound_each_shard_by_itself() -> None:
    closures, streams = Closures(), [Stream(TOPIC, A), Stream(TOPIC, B)]
    watermarks = Watermarks(partitions={TOPIC: 2}, ends=offsets(7, 9))
    early = offsets(3, 4, stream=streams[0]) | offsets(5, 6, stream=streams[1])
    closures.look(streams, watermarks, early)
    later = offsets(7, 9, stream=streams[0]) | offsets(7, 8, stream=streams[1])
    closures.look(streams, watermarks, later)
    found = Closure(offsets(3, 4, stream=streams[0]), offsets(7, 9, stream=streams[0]))
    assert closures.found == {streams[0]: found}


def test_a_topic_without_partitions_yet_has_no_closure() -> None:
    closures = Closures()
    for _ in range(2):
        assert not look(closures, {}, {})
    assert closures.found == {}
    assert look(closures, offsets(5, 5), {}), "they are there, and no end of theirs is safe"
    look(closures, offsets(5, 5), offsets(5, 5))
    assert closures.found == {STREAM: Closure(offsets(0, 0), offsets(5, 5))}


def test_partitions_that_came_since_the_look_before_are_bounded_too() -> None:
    closures = Closures()
    look(closures, offsets(5), offsets(5))
    look(closures, offsets(5, 3), offsets(5, 2))
    assert closures.found == {}
    look(closures, offsets(5, 3), offsets(5, 3))
    closure = closures.found[STREAM]
    assert closure == Closure(offsets(5), offsets(5, 3))
    available = {TWO: (0, 3), ONE: (2, 5)}
    assert closed_ranges(closure, available) == available, "rows of both may precede the end"


def test_nothing_may_be_read_while_no_closure_is_known() -> None:
    assert closed_ranges(None, {ONE: (0, 9)}) == {}


def test_ranges_go_as_far_as_the_bounds() -> None:
    closure = Closure(offsets(5, 5), offsets(7, 8))
    assert closed_ranges(closure, {ONE: (0, 90), TWO: (4, 8)}) == {ONE: (0, 7), TWO: (4, 8)}


def test_nothing_is_read_when_nothing_is_left_below_the_ends() -> None:
    closure = Closure(offsets(5, 5), offsets(7, 8))
    assert closed_ranges(closure, {ONE: (5, 9), TWO: (6, 9)}) == {}


def test_a_partition_without_rows_below_its_end_is_read_for_the_others() -> None:
    closure = Closure(offsets(5, 5), offsets(7, 8))
    assert closed_ranges(closure, {ONE: (4, 9), TWO: (6, 9)}) == {ONE: (4, 7), TWO: (6, 8)}


def test_partitions_that_stand_at_their_bound_or_their_stop_are_left_out() -> None:
    closure = Closure(offsets(5, 5, 5), offsets(7, 8, 9))
    assert closed_ranges(closure, {ONE: (7, 99), TWO: (2, 99)}) == {TWO: (2, 8)}


def test_a_partition_that_the_closure_does_not_know_is_left_out() -> None:
    closure = Closure(offsets(5, 5), offsets(7, 8))
    assert closed_ranges(closure, {ONE: (0, 9), THREE: (0, 9)}) == {ONE: (0, 7)}
