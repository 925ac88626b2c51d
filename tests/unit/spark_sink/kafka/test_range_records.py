"""The loop that reads ranges: to their ends, to a bound, or to where somebody leaves."""

from __future__ import annotations

from typing import Any, cast

from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka.range_reader import OffsetRange
from shardmerge.spark_sink.kafka.range_records import chunks, records_in
from shardmerge.spark_sink.rows.decoding.row_format import JSON_ROWS
from tests.unit.spark_sink.kafka.test_shard_demux import Base, Reader

ONE, TWO = Partition("one", 0), Partition("two", 0)
LOGS: dict[Partition, list[bytes | None]] = {
    ONE: [b"a", b"bb", None, b"ccc", b"d", None, b"e"],
    TWO: [b"x"] * 6,
}


def ranges(one: int = 7, two: int = 6) -> Base:
    return Base(LOGS, OffsetRange("one", 0, 0, one), OffsetRange("two", 0, 0, two))


def offsets(cursor: Base, *bounds: int) -> dict[Partition, list[int]]:
    found: dict[Partition, list[int]] = {ONE: [], TWO: []}
    for records, _ in chunks(cast(Any, cursor), *bounds):
        found[records.partition] += records.offsets
    return found


def test_ranges_are_read_to_their_ends() -> None:
    assert offsets(ranges()) == {ONE: list(range(7)), TWO: list(range(6))}


def test_a_chunk_tells_the_bytes_of_its_values() -> None:
    assert [size for _, size in chunks(cast(Any, ranges(two=0)))] == [3, 4, 1]


def test_what_a_bound_leaves_is_read_by_the_next_one() -> None:
    for bounds in ((4,), (100, 4)):
        cursor = ranges()
        assert offsets(cursor, *bounds) == {ONE: [0, 1, 2], TWO: [0, 1, 2]}
        assert offsets(cursor) == {ONE: [3, 4, 5, 6], TWO: [3, 4, 5]}


def test_a_range_that_is_left_is_read_no_further() -> None:
    cursor = ranges()
    for records, _ in chunks(cast(Any, cursor)):
        if records.partition == ONE:
            cursor.leave(ONE)
    assert (cursor.reached(ONE), cursor.reached(TWO)) == (3, 6)


def test_records_come_without_tombstones() -> None:
    wanted = OffsetRange("one", 0, 0, 7)
    found = list(records_in(cast(Any, Reader(LOGS)), wanted, JSON_ROWS))
    assert found == [(0, b"a"), (1, b"bb"), (3, b"ccc"), (4, b"d"), (6, b"e")]
