"""Folds the rows of a shard's partitions up to one position of its binlog. Pure.

Theory of operation. A *lane* holds the records of one partition that are read and not applied.

1. A commit may go up to the last row below the closure's ends that was read. Every record at or
   before this row is in the lanes, or still to be read below the bounds.
2. If a lane is not read to its bound, its next record may stand right behind its last one. So the
   lane is complete only up to its last record. The limit is the lowest of these positions.
3. Every lane is folded up to the limit, inclusive. Two records at one position are a primary-key
   update; the delete comes first. If the lane of the create has not been read that far, the create
   comes in the next commit.
4. A row that cannot be applied, or a TRUNCATE, is a limit too: all lanes stop before it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.position import BEGINNING, SourcePosition
from shardmerge.spark_sink.planning.ordered_partitions import PartitionClosure
from shardmerge.spark_sink.rows.decoding.row_envelope import UndecodableRow, shard_of
from shardmerge.spark_sink.rows.decoding.row_format import RowFormat

from .row_fold import RowFold
from .segment_plan import Refusal

_BEHIND_EVENT = 1 << 62
"""A row number behind all rows of a binlog event: no event has so many rows."""


class LaneRecords:
    """Records of one partition, in offset order, without tombstones.

    A record's place is its binlog position. The places in a partition are in order, so they are
    found by bisection, and only the needed records are decoded. A record that names no position, or
    names another shard, counts as standing right behind the record before it: the shard is to be
    held there.

    Args:
        shard: The shard of the records.
        start, end: The range to read, ``[start, end)``.
        closure: Of the partition.
        rows: The records' format.
        kept_from: Rows before this position are skipped (``ShardStream.kept_from``). When a
            connector of its own has read a table, such rows may come behind rows with later
            positions. So they, too, count as standing right behind the record before them.

    Attributes:
        reached: Offset up to which it is read (exclusive).
        end: Offset up to which it is to be read now (exclusive).
        refusals: By offset, records whose position cannot be known now.
        is_ended: Whether no more of its records are applied now, for example because of a gate.
        size: Bytes of the values.
    """

    def __init__(
        self,
        shard: ShardId,
        start: int,
        end: int,
        closure: PartitionClosure,
        rows: RowFormat,
        *,
        kept_from: SourcePosition | None = None,
    ) -> None:
        self.reached = start
        self.end = end
        self.refusals: dict[int, Refusal] = {}
        self.is_ended = False
        self.size = 0
        self._shard = shard
        self._closure = closure
        self._kept_from = kept_from
        self._format = rows
        self._offsets: list[int] = []
        self._values: list[bytes] = []
        self._places: dict[int, SourcePosition | None] = {}
        self._before = BEGINNING

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def is_read(self) -> bool:
        """Whether no record below the bound is left to be read."""
        return self.reached >= self._closure.bound

    @property
    def last_place(self) -> SourcePosition:
        """The place of the last record; there must be one."""
        return self.place(len(self) - 1)

    @property
    def last_closed_place(self) -> SourcePosition | None:
        """The place of the last record below the closure's end; None without one."""
        count = bisect_left(self._offsets, self._closure.end)
        return self.place(count - 1) if count else None

    def extend(self, offsets: Iterable[int], values: Iterable[bytes | None]) -> None:
        """Add the records that were read next."""
        for offset, value in zip(offsets, values, strict=True):
            if value is not None:
                self._offsets.append(offset)
                self._values.append(value)
                self.size += len(value)

    def place(self, index: int) -> SourcePosition:
        """The place of a record."""
        first, found = index, self.own_place(index)
        while found is None and first > 0:
            first -= 1
            found = self.own_place(first)
        return self._before if found is None else found

    def own_place(self, index: int) -> SourcePosition | None:
        """The place that a record names; None when it does not name one."""
        if index not in self._places:
            self._places[index] = self._place_of(index)
        return self._places[index]

    def _place_of(self, index: int) -> SourcePosition | None:
        try:
            record = self._format.decode(self._values[index])
            place = record.position
        except UndecodableRow:
            return None
        except StackError as error:
            self.refusals[self._offsets[index]] = Refusal(
                error.message, error.hint, code=error.code
            )
            return None
        if shard_of(record.source) != self._shard:
            return None
        if self._kept_from is not None and place < self._kept_from:
            return None
        if record.is_incremental:
            # The connector sent it after it had read all rows of the event that the row names.
            return replace(place, row=_BEHIND_EVENT)
        return place

    def upto(self, place: SourcePosition) -> int:
        """How many records stand at or before a place."""
        return bisect_right(range(len(self)), place.sort_key, key=self._sort_key)

    def before(self, place: SourcePosition) -> int:
        """How many records stand before a place."""
        return bisect_left(range(len(self)), place.sort_key, key=self._sort_key)

    def _sort_key(self, index: int) -> tuple[int, int, str, int, int]:
        return self.place(index).sort_key

    def index_of(self, offset: int) -> int:
        """The index of the record at an offset."""
        return bisect_left(self._offsets, offset)

    def offset_at(self, count: int) -> int:
        """The offset at which the partition stands when the first ``count`` are applied."""
        return self._offsets[count] if count < len(self) else self.reached

    def first(self, count: int) -> tuple[list[int], list[bytes]]:
        """Offsets and values of the first ``count`` records."""
        return self._offsets[:count], self._values[:count]

    def bytes_of(self, count: int) -> int:
        """Size in bytes of the values of the first ``count`` records."""
        return sum(map(len, islice(self._values, count)))

    def places(self, count: int) -> list[SourcePosition]:
        """Places of the first ``count`` records, in order."""
        return [self.place(index) for index in range(count)]

    def drop(self, count: int) -> None:
        """Drop the first ``count`` records: they are applied."""
        if count:
            self._before = self.place(count - 1)
            self.size -= self.bytes_of(count)
            del self._offsets[:count], self._values[:count]
            self._places.clear()


@dataclass(frozen=True, slots=True)
class LaneFold:
    """What a lane gives to a commit.

    Attributes:
        fold: Of its first ``count`` records.
        next_offset: The offset at which the partition stands after that.
    """

    fold: RowFold
    count: int
    next_offset: int

    @property
    def is_stopped(self) -> bool:
        """Whether it met a held row or a TRUNCATE, before which all lanes have to stop."""
        end = self.fold.end
        return end is not None and (end.hold is not None or end.truncated)


class ShardLanes:
    """The lanes of one shard.

    Args:
        lanes: Of all partitions that have rows which are not applied.
    """

    def __init__(self, lanes: Sequence[LaneRecords]) -> None:
        self.lanes = lanes
        self._closed: SourcePosition | None = None

    def limit(self) -> SourcePosition | None:
        """The place up to which (inclusive) the lanes are complete; None when it is not known."""
        places = [lane.last_closed_place for lane in self.lanes if not lane.is_ended]
        known = [place for place in (*places, self._closed) if place is not None]
        limit = self._closed = max(known, default=None)
        for lane in self.lanes:
            if not (lane.is_ended or lane.is_read):
                if not lane or limit is None:
                    return None
                limit = min(limit, lane.last_place)
        return limit

    def fold(self, new_fold: Callable[[int], RowFold]) -> list[LaneFold | None]:
        """Fold what may be committed next.

        Args:
            new_fold: Number of a lane → an empty fold for it.

        Returns:
            One fold for each lane; None for a lane that is ended.
        """
        limit = self.limit()
        folds = [
            None
            if lane.is_ended
            else _fold(lane, 0 if limit is None else lane.upto(limit), new_fold(number))
            for number, lane in enumerate(self.lanes)
        ]
        while (first := self._first_stop(folds)) is not None:
            place, follows, holder = first
            again = [
                (number, min(fold.count, count))
                for number, (lane, fold) in enumerate(zip(self.lanes, folds, strict=True))
                if fold is not None and number != holder
                for count in [lane.upto(place) if follows else lane.before(place)]
                if fold.count > count or fold.is_stopped
            ]
            if not again:
                break
            for number, count in again:
                folds[number] = _fold(self.lanes[number], count, new_fold(number))
        return folds

    def _first_stop(
        self, folds: Sequence[LaneFold | None]
    ) -> tuple[SourcePosition, bool, int] | None:
        """The first row before which all lanes have to stop.

        Returns:
            Its place; whether it names no place of its own, and so follows the records at that
            place; the number of its lane. None when no lane has such a row.
        """
        stops = [
            (lane.place(fold.count), lane.own_place(fold.count) is None, number)
            for number, (lane, fold) in enumerate(zip(self.lanes, folds, strict=True))
            if fold is not None and fold.is_stopped
        ]
        return min(stops, default=None)

    def take(self, folds: Sequence[LaneFold | None]) -> None:
        """Drop what was committed."""
        for lane, fold in zip(self.lanes, folds, strict=True):
            if fold is not None:
                lane.drop(fold.count)
                lane.is_ended = fold.fold.end is not None


def _fold(lane: LaneRecords, count: int, fold: RowFold) -> LaneFold:
    fold.add_all(*lane.first(count))
    if fold.end is not None:
        count = lane.index_of(fold.end.offset)
    return LaneFold(fold, count, lane.offset_at(count))
