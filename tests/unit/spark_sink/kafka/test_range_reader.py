"""Ranges of rows: what they are read with, and what they say of changed primary keys."""

from __future__ import annotations

from typing import Any, ClassVar, cast

import pytest
from confluent_kafka import Message, TopicPartition

from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.pipeline.settings import Kafka
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka import range_reader
from shardmerge.spark_sink.kafka.range_reader import OffsetRange, RangeCursor, Records, RowReader
from shardmerge.spark_sink.kafka.shard_demux import open_ranges
from shardmerge.spark_sink.kafka.windows.window import Kept
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

    kept: ClassVar[dict[Partition, Kept]] = {}
    seen: ClassVar[dict[Partition, Kept]] = {}

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


class Assigned:
    """A consumer that fetches what it is told to; ``told``: the calls."""

    def __init__(self) -> None:
        self.told: list[tuple[str, list[tuple[str, int, int]]]] = []

    def list_topics(self, topic: str, timeout: float) -> None: ...

    def assign(self, places: list[TopicPartition]) -> None:
        self._note("assign", places)

    def incremental_unassign(self, places: list[TopicPartition]) -> None:
        self._note("leave", places)

    def _note(self, call: str, places: list[TopicPartition]) -> None:
        self.told.append((call, [(p.topic, p.partition, p.offset) for p in places]))

    def calls(self) -> list[tuple[str, list[tuple[str, int, int]]]]:
        told, self.told = self.told, []
        return told


@pytest.fixture
def reading(monkeypatch: pytest.MonkeyPatch) -> tuple[RowReader, Assigned]:
    """A reader that knows the topics t and u."""
    consumer = Assigned()
    monkeypatch.setattr(range_reader, "row_consumer", lambda *_: consumer)
    reader = RowReader(Kafka(""))
    reader.open([OffsetRange("t", 0, 1, 2), OffsetRange("u", 0, 1, 2)])
    consumer.calls()
    return reader, consumer


T, U = Partition("t", 0), Partition("u", 0)


def test_a_range_that_was_expected_goes_on_with_what_is_being_fetched(
    reading: tuple[RowReader, Assigned],
) -> None:
    reader, consumer = reading
    reader.expect({T: 5}, {})
    assert consumer.calls() == [("assign", [("t", 0, 5)])]
    reader.open([OffsetRange("t", 0, 5, 9)])
    assert consumer.calls() == []
    reader.open([OffsetRange("t", 0, 5, 9)])
    assert consumer.calls() == [("assign", [("t", 0, 5)])], "the first cursor has read of it"


def test_what_was_expected_beside_the_ranges_is_left(reading: tuple[RowReader, Assigned]) -> None:
    reader, consumer = reading
    reader.expect({T: 5, U: 7}, {})
    consumer.calls()
    reader.open([OffsetRange("u", 0, 7, 9)])
    [(call, [(topic, number, _)])] = consumer.calls()
    assert (call, topic, number) == ("leave", "t", 0)


@pytest.mark.parametrize(
    "ranges",
    [
        [OffsetRange("t", 0, 4, 9)],
        [OffsetRange("t", 0, 6, 9)],
        [OffsetRange("t", 0, 5, 9), OffsetRange("u", 0, 7, 9)],
        [OffsetRange("t", 1, 5, 9)],
    ],
)
def test_ranges_that_were_not_expected_are_fetched_from_their_starts(
    reading: tuple[RowReader, Assigned], ranges: list[OffsetRange]
) -> None:
    reader, consumer = reading
    reader.expect({T: 5}, {})
    consumer.calls()
    reader.open(ranges)
    assert consumer.calls() == [("assign", [(r.topic, r.partition, r.start) for r in ranges])]


def test_records_that_are_there_already_are_not_fetched(
    reading: tuple[RowReader, Assigned],
) -> None:
    reader, consumer = reading
    reader.expect({T: 5, U: 7}, {T: Kept(4, 7, [5, 6], [b"a", None]), U: Kept(8, 9, [8], [b"b"])})
    assert consumer.calls() == [("assign", [("u", 0, 7)])], "offset 7 of u was not seen"

    cursor = open_ranges(reader, [OffsetRange("t", 0, 5, 7)], JSON_ROWS)
    assert cursor.read() == [Records(T, [5, 6], [b"a", None])]
    assert (cursor.is_open, cursor.reached(T), consumer.calls()) == (False, 7, [])

    reader.expect({}, {})
    consumer.calls()
    open_ranges(reader, [OffsetRange("t", 0, 5, 7)], JSON_ROWS)
    assert consumer.calls() == [("assign", [("t", 0, 5)])], "they are there no longer"


@pytest.mark.parametrize("wanted", [(3, 7), (5, 8)])
def test_a_range_of_which_a_part_is_there_is_fetched_as_a_whole(
    reading: tuple[RowReader, Assigned], wanted: tuple[int, int]
) -> None:
    reader, consumer = reading
    reader.expect({T: 5}, {T: Kept(4, 7, [5, 6], [b"a", b"b"])})
    consumer.calls()
    open_ranges(reader, [OffsetRange("t", 0, *wanted)], JSON_ROWS)
    assert consumer.calls() == [("assign", [("t", 0, wanted[0])])]


def test_nothing_is_fetched_any_more_when_nothing_is_expected(
    reading: tuple[RowReader, Assigned],
) -> None:
    reader, consumer = reading
    reader.expect({T: 5}, {})
    reader.expect({T: 5}, {})
    assert len(consumer.calls()) == 1, "it is fetched already"
    reader.expect({}, {})
    assert consumer.calls() == [("assign", [])]
    reader.expect({}, {})
    assert consumer.calls() == []
    reader.expect({Partition("new", 0): 0}, {})
    assert consumer.calls() == [], "its leader is not known"
