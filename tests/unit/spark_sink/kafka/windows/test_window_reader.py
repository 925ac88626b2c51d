"""What a window has: the names of its shards, and records that a task need not fetch again."""

from __future__ import annotations

from typing import Any, cast

import pytest

from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka.range_reader import OffsetRange
from shardmerge.spark_sink.kafka.shard_demux import open_ranges
from shardmerge.spark_sink.kafka.windows import window_reader
from shardmerge.spark_sink.kafka.windows.kept_records import KeptCursor, has_kept
from shardmerge.spark_sink.kafka.windows.window import Kept, Window
from shardmerge.spark_sink.kafka.windows.window_reader import read_windows
from shardmerge.spark_sink.rows.decoding.row_format import JSON_ROWS
from tests.unit.spark_sink.kafka.test_shard_demux import ALL, OWN, A, B, Base, C, Reader, record

LOG = [record(A), None, record(B), record(A), b"{", record(C)]
NAMES = {shard: (shard.source, shard.database, shard.table) for shard in (A, B, C)}


def reader_of(*values: bytes | None) -> Any:
    reader = Reader({ALL: list(values)})
    reader.kept, reader.seen = {}, {}  # type: ignore[misc]
    return cast(Any, reader)


def test_a_window_names_the_shards_that_have_records_there() -> None:
    reader = reader_of(*LOG[:4])
    assert read_windows(reader, {ALL: (0, 4)}, JSON_ROWS) == {ALL: Window(4, {NAMES[A], NAMES[B]})}
    assert read_windows(reader, {ALL: (1, 2)}, JSON_ROWS) == {ALL: Window(2, set())}, "a tombstone"


def test_a_record_that_does_not_say_its_shard_may_be_of_any() -> None:
    assert read_windows(reader_of(*LOG), {ALL: (2, 6)}, JSON_ROWS) == {ALL: Window(6, None)}


def test_a_task_takes_the_records_of_a_window_from_the_reader() -> None:
    reader = reader_of(*LOG)
    read_windows(reader, {ALL: (0, 6)}, JSON_ROWS)
    opened = reader.opened = []
    wanted = [OffsetRange(*ALL[:2], 2, 6, A), OffsetRange(*ALL[:2], 0, 6, B)]
    cursor = open_ranges(reader, wanted, JSON_ROWS)
    found = {A: list[int](), B: list[int]()}
    while cursor.is_open:
        for partition, offsets, _ in cursor.read(2):
            assert partition.shard is not None
            found[partition.shard] += offsets
    assert found == {A: [3, 4], B: [2, 4]}
    assert opened == [], "nothing is fetched"
    assert cursor.reached(wanted[0].place) == 6


def test_a_window_of_records_that_are_there_already_is_not_fetched() -> None:
    reader = reader_of()
    reader.seen = {ALL: Kept(1, 3, [1, 2], [record(A), record(B)])}
    found = read_windows(reader, {ALL: (1, 3)}, JSON_ROWS)
    assert found == {ALL: Window(3, {NAMES[A], NAMES[B]})}


def test_records_that_were_not_read_before_are_fetched() -> None:
    reader = reader_of(*LOG)
    read_windows(reader, {ALL: (2, 6)}, JSON_ROWS)
    ranges = (
        [OffsetRange(*ALL[:2], 1, 6)],
        [OffsetRange(*ALL[:2], 2, 7)],
        [OffsetRange(*OWN[:2], 2, 3)],
    )
    assert not any(has_kept(reader.kept, wanted) for wanted in ranges)
    assert has_kept(reader.kept, [OffsetRange(*ALL[:2], 3, 5)])


def test_large_records_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_reader, "KEPT_BYTES", 100)
    reader = reader_of(*LOG)
    read_windows(reader, {ALL: (0, 1)}, JSON_ROWS)
    assert has_kept(reader.kept, [OffsetRange(*ALL[:2], 0, 1)]) is (len(record(A)) <= 100)
    read_windows(reader, {ALL: (0, 4)}, JSON_ROWS)
    assert reader.kept == {}


def test_a_kept_range_is_left_and_ends_like_a_fetched_one() -> None:
    kept = {ALL: Kept(2, 9, [2, 3, 6], [b"2", b"3", b"6"])}
    cursor = KeptCursor(kept, [OffsetRange(*ALL[:2], 2, 8)])
    assert [r.offsets for r in cursor.read(1)] == [[2]]
    assert (cursor.reached(ALL), cursor.is_reading(ALL)) == (3, True)
    assert [r.values for r in cursor.read(5)] == [[b"3", b"6"]]
    assert (cursor.reached(ALL), cursor.is_open) == (8, False)
    assert cursor.read() == []
    left = KeptCursor(kept, [OffsetRange(*ALL[:2], 4, 9)])
    left.leave(ALL)
    assert (left.is_open, left.read(), left.reached(ALL)) == (False, [], 4)


def test_a_window_below_an_open_transaction_ends_before_it() -> None:
    class Open(Base):
        def reached(self, partition: Partition) -> int:
            return 3

    reader = reader_of(*LOG[:4])
    reader.open = lambda ranges: Open(reader.logs, *ranges)
    assert read_windows(reader, {ALL: (0, 4)}, JSON_ROWS)[ALL].end == 3
    assert not has_kept(reader.kept, [OffsetRange(*ALL[:2], 0, 4)])
