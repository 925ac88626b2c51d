"""Demultiplexes shared row topics: hands each shard its records.

A partition is read once for all shards that want records of it. The ``source`` block of a record's
envelope says which shard the record belongs to. Records of other shards, and tombstones, which name
no shard, are skipped. A record that does not say its shard is handed to every shard: it may belong
to any of them, and that shard must not go on without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.rows.decoding.row_envelope import Names
from shardmerge.spark_sink.rows.decoding.row_format import RowFormat

from .range_reader import CHUNK, OffsetRange, RangeCursor, Records, RowReader
from .windows.kept_records import KeptCursor, kept_cursor


def open_ranges(reader: RowReader, ranges: Sequence[OffsetRange], rows: RowFormat) -> Cursor:
    """A cursor over ranges, at most one per partition or part; parts of one are read together.

    Raises:
        StackError: No broker answers.
    """
    if all(r.part is None for r in ranges):
        return kept_cursor(reader, ranges) or reader.open(ranges)
    whole: dict[Partition, OffsetRange] = {}
    for r in ranges:
        place = r.place.whole
        known = whole.get(place, r)
        start, end = min(known.start, r.start), max(known.end, r.end)
        tells_moves = known.tells_moves or r.tells_moves
        whole[place] = OffsetRange(r.topic, r.partition, start, end, tells_moves=tells_moves)
    if (cursor := kept_cursor(reader, list(whole.values()))) is not None:
        return DemuxCursor(cursor, ranges, rows)
    for place in {r.place.whole for r in ranges if r.part is not None}:
        if whole[place].start == 0:
            # A new shard begins at 0, but the topic's first records may have been removed.
            whole[place] = whole[place]._replace(start=reader.beginning(place))
    return DemuxCursor(reader.open(list(whole.values())), ranges, rows)


class DemuxCursor:
    """Like ``RangeCursor``, but ranges can be parts of shared partitions."""

    def __init__(
        self, cursor: RangeCursor | KeptCursor, ranges: Sequence[OffsetRange], rows: RowFormat
    ) -> None:
        self._cursor = cursor
        self._names_of = rows.names_of
        self._parts = {r.place: r for r in ranges if r.part is not None}
        self._open: dict[Partition, dict[Names, OffsetRange]] = {}
        for r in self._parts.values():
            self._open.setdefault(r.place.whole, {})[_names(r)] = r
        for place in list(self._open):
            self._close_read(place)

    @property
    def is_open(self) -> bool:
        """Whether a range is not read to its end yet."""
        return self._cursor.is_open

    def is_reading(self, partition: Partition) -> bool:
        """Whether the range of this partition is neither read to its end nor left."""
        wanted = self._parts.get(partition)
        if wanted is None:
            return self._cursor.is_reading(partition)
        whole = partition.whole
        return _names(wanted) in self._open[whole] and self._cursor.is_reading(whole)

    def reached(self, partition: Partition) -> int:
        """Offset up to which a range was read (exclusive); see ``RangeCursor.reached``."""
        wanted = self._parts.get(partition)
        if wanted is None:
            return self._cursor.reached(partition)
        return min(max(self._cursor.reached(partition.whole), wanted.start), wanted.end)

    def leave(self, partition: Partition) -> None:
        """Read no more of a range."""
        wanted = self._parts.get(partition)
        if wanted is None:
            self._cursor.leave(partition)
            return
        open_here = self._open[partition.whole]
        if open_here.pop(_names(wanted), None) is not None and not open_here:
            self._cursor.leave(partition.whole)

    def read(self, most: int = CHUNK) -> list[Records]:
        """See ``RangeCursor.read``; records of shards that are not asked for are left out."""
        found: list[Records] = []
        for records in self._cursor.read(most):
            if records.partition in self._open:
                found += self._by_shard(records)
            else:
                found.append(records)
        for place in list(self._open):
            self._close_read(place)
        return found

    def _by_shard(self, records: Records) -> list[Records]:
        wanted, names_of = self._open[records.partition], self._names_of
        found: dict[Names, tuple[list[int], list[bytes | None]]] = {n: ([], []) for n in wanted}
        for offset, value in zip(records.offsets, records.values, strict=True):
            if value is None:
                continue
            names = names_of(value)
            for name in found if names is None else (names,):
                r = wanted.get(name)
                if r is not None and r.start <= offset < r.end:
                    offsets, values = found[name]
                    offsets.append(offset)
                    values.append(value)
        return [
            Records(wanted[name].place, offsets, values)
            for name, (offsets, values) in found.items()
            if offsets
        ]

    def _close_read(self, place: Partition) -> None:
        """Close the parts that were read to their ends, and the partition when none is left."""
        if open_here := self._open[place]:
            reached = self._cursor.reached(place)
            for names in [names for names, r in open_here.items() if r.end <= reached]:
                del open_here[names]
            if not open_here:
                self._cursor.leave(place)


def _names(wanted: OffsetRange) -> Names:
    shard = wanted.part
    assert shard is not None
    return shard.source, shard.database, shard.table


Cursor: TypeAlias = RangeCursor | KeptCursor | DemuxCursor
