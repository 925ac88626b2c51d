"""Folds the rows of a shard's partitions up to one place of its binlog. Pure.

Theory of operation. A *lane* is one partition's records that are read and not applied.

1. Whatever stands at or before a row that was read below the closure's ends is
   in the lanes, or still to be read: up to there a commit may go.
2. Of a lane that is not read to its bound the next record may stand right behind its last one: up
   to there alone everything is known. The lowest of these places is the limit.
3. Every lane is folded up to the limit, included. Two records at one place are a primary-key
   update, whose delete comes first: where the lane of its create is short of it, it comes in the
   next commit.
4. A row that cannot be applied, or a TRUNCATE, is a limit too: no lane goes as far as that.
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
"""Row number of what stands behind all rows of an event: no event has so many."""


class LaneRecords:
    """Records of one partition, in offset order, without tombstones.

    Their places are looked for only where they are asked for, by bisection: in a partition they
    come in order. A record that names none, or names another shard, stands right behind the one
    before it: it is to hold the shard there.

    Args:
        shard: Whose they are.
        start, end: The range to read, ``[start, end)``.
        closure: Of the partition.
        rows: The records' format.
        kept_from: Rows before that place do not count (``ShardStream.kept_from``). They may come
            behind rows of a later place, when a table was read by a connector of its own: they
            stand right behind the record before them, too.

    Attributes:
        reached: Offset up to which it is read (exclusive).
        end: Offset up to which it is to be read now.
        refusals: Records whose place cannot be known now, by offset.
        is_ended: Nothing more of it is applied now: it stands at a gate, say.
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
        """Where the last record stands; there must be one."""
        return self.place(len(self) - 1)

    @property
    def last_closed_place(self) -> SourcePosition | None:
        """Where the last record below the closure's end stands; None without one."""
        count = bisect_left(self._offsets, self._closure.end)
        return self.place(count - 1) if count else None

    def extend(self, offsets: Iterable[int], values: Iterable[bytes | None]) -> None:
        """Take what was read next."""
        for offset, value in zip(offsets, values, strict=True):
            if value is not None:
                self._offsets.append(offset)
                self._values.append(value)
                self.size += len(value)

    def place(self, index: int) -> SourcePosition:
        """Where a record stands."""
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
            self.refusals[self._offsets[index]] = Refusal(error.message, error.hint)
            return None
        if shard_of(record.source) != self._shard:
            return None
        if self._kept_from is not None and place < self._kept_from:
            return None
        if record.is_incremental:
            # It came when the event that it names had been read, with all its rows.
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
        """The number of the record at an offset."""
        return bisect_left(self._offsets, offset)

    def offset_at(self, count: int) -> int:
        """Where it stands behind so many records."""
        return self._offsets[count] if count < len(self) else self.reached

    def first(self, count: int) -> tuple[list[int], list[bytes]]:
        """Offsets and values of the first so many."""
        return self._offsets[:count], self._values[:count]

    def bytes_of(self, count: int) -> int:
        """Size of the values of the first so many."""
        return sum(map(len, islice(self._values, count)))

    def places(self, count: int) -> list[SourcePosition]:
        """Places of the first so many, in order."""
        return [self.place(index) for index in range(count)]

    def drop(self, count: int) -> None:
        """Let the first so many go: they are applied."""
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
        next_offset: Where it stands after that.
    """

    fold: RowFold
    count: int
    next_offset: int

    @property
    def is_stopped(self) -> bool:
        """Whether it came to a row before which all lanes have to stop, but to no gate."""
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
        """Up to which place (inclusive) the lanes have everything; None when that is not known."""
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
            new_fold: Makes an empty fold for the lane with that number.

        Returns:
            By lane; None for those that are ended.
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
        """The first row before which all have to stop.

        Its place, whether it follows what stands there, as one does that names none, and its lane.
        """
        stops = [
            (lane.place(fold.count), lane.own_place(fold.count) is None, number)
            for number, (lane, fold) in enumerate(zip(self.lanes, folds, strict=True))
            if fold is not None and fold.is_stopped
        ]
        return min(stops, default=None)

    def take(self, folds: Sequence[LaneFold | None]) -> None:
        """Let what was committed go."""
        for lane, fold in zip(self.lanes, folds, strict=True):
            if fold is not None:
                lane.drop(fold.count)
                lane.is_ended = fold.fold.end is not None


def _fold(lane: LaneRecords, count: int, fold: RowFold) -> LaneFold:
    fold.add_all(*lane.first(count))
    if fold.end is not None:
        count = lane.index_of(fold.end.offset)
    return LaneFold(fold, count, lane.offset_at(count))
