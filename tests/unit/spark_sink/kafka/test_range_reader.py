"""What a range's records say of changed primary keys."""

from __future__ import annotations

from typing import Any, cast

import pytest
from confluent_kafka import Message

from shardmerge.schemas.model.names import ShardId
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka.range_reader import OffsetRange, RangeCursor
from shardmerge.spark_sink.kafka.shard_demux import open_ranges
from shardmerge.spark_sink.rows.decoding.row_envelope import MovedRow
from shardmerge.spark_sink.rows.decoding.row_format import JSON_ROWS

from .test_shard_demux import record

A, B = ShardId("s1", "app", "a"), ShardId("s2", "app", "a")
HEADERS: dict[int, list[tuple[str, bytes | None]] | None] = {
    0: None,
    1: [("__debezium.newkey", b"x")],
    2: [("other", None), ("__debezium.oldkey", b"x")],
    3: [("other", b"x")],
}


class Consumer:
    """Has one message for each entry of ``HEADERS``, and a tombstone."""

    def __init__(self, value: bytes) -> None:
        self._left = [
            Message(topic="t", partition=0, offset=offset, value=value, headers=headers)
            for offset, headers in HEADERS.items()
        ]
        self._left.append(
            Message(topic="t", partition=0, offset=4, headers=[("__debezium.newkey", b"x")])
        )

    def poll(self, _: float) -> Message | None:
        return self._left.pop(0) if self._left else None

    def consume(self, most: int, _: float) -> list[Message]:
        found, self._left = self._left[:most], self._left[most:]
        return found

    def incremental_unassign(self, _: object) -> None: ...


class Reader:
    """Opens a cursor on such a consumer."""

    def open(self, ranges: list[OffsetRange]) -> RangeCursor:
        return RangeCursor(cast(Any, Consumer(record(A))), ranges)

    def beginning(self, partition: Partition) -> int:
        return 0


@pytest.mark.parametrize("tells", [False, True])
def test_both_records_of_a_changed_key_are_marked_where_a_range_asks_for_it(tells: bool) -> None:
    cursor = RangeCursor(cast(Any, Consumer(b"{}")), [OffsetRange("t", 0, 0, 5, tells_moves=tells)])
    (records,) = cursor.read()

    assert list(records.values) == [b"{}", b"{}", b"{}", b"{}", None]
    marked = [offset for offset, value in enumerate(records.values) if type(value) is MovedRow]
    assert marked == ([1, 2] if tells else [])


@pytest.mark.parametrize(("of_a", "of_b"), [(True, False), (False, True), (False, False)])
def test_a_shared_topic_is_asked_when_one_of_its_shards_asks(of_a: bool, of_b: bool) -> None:
    ranges = [OffsetRange("t", 0, 0, 5, shard, tells) for shard, tells in ((A, of_a), (B, of_b))]
    (records,) = open_ranges(cast(Any, Reader()), ranges, JSON_ROWS).read()

    assert records.partition == Partition("t", 0, A)
    assert list(records.offsets) == [0, 1, 2, 3]
    marked = [value for value in records.values if type(value) is MovedRow]
    assert len(marked) == (2 if of_a or of_b else 0)
