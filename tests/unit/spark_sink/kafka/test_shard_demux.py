"""Records of a shared topic come to their shards, from where each stands, and to nobody else."""

from __future__ import annotations

import json
from typing import Any, ClassVar, cast

from shardmerge.schemas.model.names import ShardId
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka.range_reader import OffsetRange, RangeCursor, Records
from shardmerge.spark_sink.kafka.shard_demux import DemuxCursor, open_ranges
from shardmerge.spark_sink.kafka.windows.window import Kept
from shardmerge.spark_sink.rows.decoding.row_format import JSON_ROWS

A, B, C = ShardId("s1", "app", "a"), ShardId("s2", "app", "a"), ShardId("s1", "app", "c")
ALL, OWN = Partition("all", 0), Partition("s1.app.own", 0)


def record(shard: ShardId, *, wrapped: bool = False) -> bytes:
    source = {"name": shard.source, "db": shard.database, "table": shard.table, "pos": 1}
    envelope: dict[str, Any] = {"before": None, "after": {"id": 1}, "source": source, "op": "c"}
    return json.dumps({"schema": {}, "payload": envelope} if wrapped else envelope).encode()


class Base:
    """A cursor over whole partitions, three records at a time."""

    def __init__(self, logs: dict[Partition, list[bytes | None]], *ranges: OffsetRange) -> None:
        self.logs = logs
        self.ranges = {r.place: r for r in ranges}
        self.at = {r.place: r.start for r in ranges}
        self.left: set[Partition] = set()

    @property
    def is_open(self) -> bool:
        return any(map(self.is_reading, self.ranges))

    def is_reading(self, partition: Partition) -> bool:
        return partition not in self.left and self.at[partition] < self.ranges[partition].end

    def reached(self, partition: Partition) -> int:
        return self.at[partition]

    def leave(self, partition: Partition) -> None:
        self.left.add(partition)

    def read(self, most: int) -> list[Records]:
        found = []
        for place, r in self.ranges.items():
            if self.is_reading(place):
                start = self.at[place]
                end = self.at[place] = min(start + 3, r.end)
                values = self.logs[place][start:end]
                found.append(Records(place, list(range(start, end)), values))
        return found


class Reader:
    """Opens ``Base``; the topics begin at ``low``."""

    kept: ClassVar[dict[Partition, Kept]] = {}
    seen: ClassVar[dict[Partition, Kept]] = {}

    def __init__(self, logs: dict[Partition, list[bytes | None]], low: int = 0) -> None:
        self.logs, self.low = logs, low

    def open(self, ranges: list[OffsetRange]) -> Base:
        self.opened = Base(self.logs, *ranges)
        return self.opened

    def beginning(self, partition: Partition) -> int:
        return self.low


def part(shard: ShardId, start: int, end: int) -> OffsetRange:
    return OffsetRange(ALL.topic, ALL.number, start, end, shard)


def demuxed(reader: Reader, *ranges: OffsetRange) -> dict[Partition, list[int]]:
    cursor = open_ranges(cast(Any, reader), ranges, JSON_ROWS)
    found: dict[Partition, list[int]] = {r.place: [] for r in ranges}
    while cursor.is_open:
        for records in cursor.read():
            found[records.partition] += records.offsets
    assert {r.place: cursor.reached(r.place) for r in ranges} == {r.place: r.end for r in ranges}
    assert not any(cursor.is_reading(r.place) for r in ranges)
    return found


def of(shard: ShardId) -> Partition:
    return Partition(ALL.topic, ALL.number, shard)


LOG: dict[Partition, list[bytes | None]] = {
    ALL: [record(A), record(B), None, record(C), record(B, wrapped=True), record(A), record(B)]
}


def test_each_shard_gets_its_records_and_a_tombstone_nobody() -> None:
    assert demuxed(Reader(LOG), part(A, 0, 7), part(B, 0, 7)) == {of(A): [0, 5], of(B): [1, 4, 6]}


def test_ranges_begin_and_end_where_each_shard_says() -> None:
    reader = Reader(LOG)
    assert demuxed(reader, part(A, 1, 6), part(B, 2, 5)) == {of(A): [5], of(B): [4]}
    (whole,) = reader.opened.ranges.values()
    assert (whole.start, whole.end, whole.part) == (1, 6, None)


def test_a_partition_is_given_back_when_no_shard_wants_more_of_it() -> None:
    reader = Reader(LOG)
    cursor = open_ranges(cast(Any, reader), [part(A, 0, 7), part(B, 0, 2)], JSON_ROWS)
    cursor.read()
    assert (cursor.is_reading(of(A)), cursor.is_reading(of(B))) == (True, False)
    assert (cursor.reached(of(A)), cursor.reached(of(B))) == (3, 2)
    cursor.leave(of(A))
    cursor.leave(of(A))
    assert not cursor.is_open
    assert cursor.reached(of(A)) == 3


def test_what_does_not_say_whose_it_is_stands_before_everybody() -> None:
    bad = [b"{", b'{"op": "c"}', b'{"source": {"name": "s1", "db": null, "table": "a"}}', b"7"]
    log: dict[Partition, list[bytes | None]] = {ALL: [record(A), *bad, record(B)]}
    found = demuxed(Reader(log), part(A, 0, 6), part(B, 2, 6))
    assert found == {of(A): [0, 1, 2, 3, 4], of(B): [2, 3, 4, 5]}


def test_topics_of_one_shard_are_read_beside_it_and_alone_without_a_detour() -> None:
    logs: dict[Partition, list[bytes | None]] = {**LOG, OWN: [b"x", b"y"]}
    own = OffsetRange(OWN.topic, OWN.number, 0, 2)
    assert demuxed(Reader(logs), part(A, 0, 7), own) == {of(A): [0, 5], OWN: [0, 1]}
    assert isinstance(open_ranges(cast(Any, Reader(logs)), [own], JSON_ROWS), Base)
    cursor = open_ranges(cast(Any, Reader(logs)), [own, part(A, 0, 7)], JSON_ROWS)
    cursor.leave(OWN)
    assert isinstance(cursor, DemuxCursor) and not cursor.is_reading(OWN)


def test_a_new_shard_begins_where_the_topic_does_by_now() -> None:
    assert demuxed(Reader(LOG, low=2), part(A, 0, 7)) == {of(A): [5]}
    reader = Reader(LOG, low=2)
    demuxed(reader, part(A, 1, 7))
    assert reader.opened.ranges[ALL].start == 1, "what was not applied and is gone is an error"


def test_the_cursors_agree_on_what_they_offer() -> None:
    names = {name for name in dir(RangeCursor) if not name.startswith("_")}
    assert names == {name for name in dir(DemuxCursor) if not name.startswith("_")}
