"""Folds the rows of one partition into what has to be written. Pure.

Theory of operation:

1. ``add`` takes records in offset order. It finds each row's segment by the row's position,
   checks the row image against it, and keeps the last change per primary key; of a shard without
   one it sums up whole rows (``keyless``). Rows like the one before them, which nearly all are,
   take a short way: the segment's decoder has checked them, and their position lies within the
   segment's bounds. Every other one is examined, part by part.
2. At the first row that stands at or beyond the stream's stop, or that cannot be applied, the
   fold ends: ``end`` tells where, and every later ``add`` is refused.
3. ``batches`` converts what was kept to cells per target column, sorted by primary key.
   A value that cannot be converted raises ``RefusedRow`` with its offset: the caller folds the
   same records again with that offset among ``refusals``, and so stops just before it.

Of a stream that ``undoes`` every row is taken back: its key is deleted, or, without one, the row
goes that came and comes that went (``restarts``).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import astuple

from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.model.position import (
    BEGINNING,
    SourcePosition,
)
from shardmerge.schemas.records.events import Binding
from shardmerge.spark_sink.planning.ranges import (
    RowHold,
    ShardStream,
)
from shardmerge.spark_sink.rows.decoding.row_envelope import (
    CREATE,
    DELETE,
    INCREMENTAL,
    READ,
    TRUNCATE,
    UNDECODABLE,
    UPDATE,
    UPSERTS,
    RowRecord,
    UndecodableRow,
    shard_of,
)
from shardmerge.spark_sink.rows.decoding.row_format import (
    JSON_ROWS,
    RowFormat,
)
from shardmerge.spark_sink.rows.values.cells import UnfitValue

from .keyless import (
    KeylessBatch,
    KeylessChanges,
    place_of,
)
from .row_batches import (
    SETTLED_ROWS,
    Batch,
    Changes,
    batch_of,
)
from .row_blocks import (
    Change,
    LinesOf,
    RefusedRow,
)
from .row_refusals import (
    SPREAD,
    UNKNOWN,
    UNNAMED,
    WITHOUT_BEFORE,
    differing,
)
from .segment_plan import (
    Refusal,
    SegmentPlan,
    plan_segment,
)


@dataclass(frozen=True, slots=True)
class Stop:
    """Where the fold ended: at a gate that may not be passed, unless something else is told.

    Attributes:
        hold: The row at ``offset`` cannot be applied.
        truncated: The row event at ``offset`` says that the shard's table was emptied.
    """

    offset: int
    position: SourcePosition
    hold: RowHold | None = None
    truncated: bool = False


class RowFold:
    """Folds records of one partition; see the module's text.

    Args:
        stream: The shard's segments and stop.
        bindings: Identity → target column.
        refusals: Rows known not to be applicable, by offset.
        rows: The records' format.
        lines_of: Makes lines of many rows, for a target that loads them.
        partition: Of the row topic.

    Attributes:
        rows: Row events taken.
        end: Where the fold ended; None while it goes on.
        growth: By how many rows the shard's table grew; None where that does not tell by how many
            the target's has to.
    """

    def __init__(
        self,
        stream: ShardStream,
        bindings: Mapping[str, Binding],
        refusals: Mapping[int, Refusal] | None = None,
        rows: RowFormat = JSON_ROWS,
        lines_of: LinesOf | None = None,
        *,
        partition: int = 0,
    ) -> None:
        self._format = rows
        self._partition = partition
        self._lines_of = lines_of
        # A condition is asked of images; what does not fit is found in them, at the end.
        self._settles = lines_of is not None and not stream.where
        self.rows = 0
        # Where the target has rows that the shard does not have, a new one may be one of them.
        uncertain = stream.where or stream.keeps_truncated or stream.undoes
        uncertain = uncertain or any(segment.passed_over for segment in stream.segments)
        self.growth: int | None = None if uncertain else 0
        self.end: Stop | None = None
        self._stream = stream
        self._refusals = refusals or {}
        self._bindings = bindings
        self._plans: dict[int, SegmentPlan] = {}
        self._starts = [segment.start.sort_key for segment in stream.segments]
        # The first segment whose rows stay.
        self._first = sum(segment.undone for segment in stream.segments)
        self._groups: list[Changes | KeylessChanges] = []
        self._signature: tuple[object, ...] = ()
        self._identity = (stream.shard.source, stream.shard.database, stream.shard.table)
        # The place of the last row and the bounds of its segment within its binlog file.
        self._number = -1
        self._file: tuple[int, str] | None = None
        self._low: tuple[float, float] = (0, 0)
        self._high: tuple[float, float] = (0, 0)
        self._position = BEGINNING
        # Of the segment that the last row was taken into; None when the short way is closed.
        self._last = Changes()
        self._short: SegmentPlan | None = None
        self._wrapped = False
        # Whether there may be rows of which the stream's condition was not asked yet.
        self._unasked = False

    def add(self, offset: int, value: bytes | None) -> bool:
        """Take the record at that offset; False when the fold has ended before it."""
        return self.add_all((offset,), (value,))

    def add_all(self, offsets: Sequence[int], values: Sequence[bytes | None]) -> bool:
        """Take records; False when the fold has ended before the last of them."""
        self._unasked = bool(self._stream.where) and not self._stream.undoes
        taken, end = 0, len(values)
        while taken < end and self.end is None:
            if self._short is not None:
                stop = min(end, taken + SETTLED_ROWS)
                taken = self._take_alike(self._short, offsets, values, range(taken, stop))
                if self._settles and self._last.is_many:
                    self._settle()
                if taken == stop:
                    continue
            value = values[taken]
            if value is not None and not self._examine(offsets[taken], value):
                break
            taken += 1
        return taken == end

    def _settle(self) -> None:
        """Make lines of what was kept last, while it is in the processor's cache."""
        assert self._lines_of is not None
        try:
            self._last.settle(self._plan_of, self._lines_of)
        except RefusedRow:
            # A later change of its key may take its place yet.
            self._settles = False

    def _take_alike(
        self,
        plan: SegmentPlan,
        offsets: Sequence[int],
        values: Sequence[bytes | None],
        places: range,
    ) -> int:
        """Take records up to the first that has to be examined; returns its place, or the end."""
        decoder = plan.decoder
        decode = decoder.decode_wrapped if self._wrapped else decoder.decode
        decode_image, key_of = decoder.decode_image, decoder.key_of
        if decode is None or decode_image is None or key_of is None:
            return places.start
        number, file = self._number, self._file[1] if self._file else None
        low, high = self._low[0], self._high[0]
        last, place, tombstones, goes = self._last, places.start, 0, self._stream.undoes
        deleted = unchanged = 0
        counts_reads = self._counts_reads
        # Rows of one place are all of a table's first snapshot, or all read again.
        read_at, again = -1, True
        try:
            for place in places:
                value = values[place]
                if value is None:
                    tombstones += 1
                    continue
                record = decode(value)
                source = record.source
                if source.file != file or not low < source.pos < high:
                    break
                op = record.op
                if op == DELETE:
                    image = decode_image(record.before)
                    last[key_of(image)] = (offsets[place], number, image, True)
                    deleted += 1
                elif (image := record.after) is not None:
                    last[key_of(image)] = (offsets[place], number, image, goes)
                    if op == UPDATE:
                        unchanged += 1
                    elif op == READ:
                        if source.pos != read_at:
                            read_at = source.pos
                            again = not counts_reads or _INCREMENTAL in value
                        unchanged += again
                else:
                    break
            else:
                place = places.stop
        except (*UNDECODABLE, TypeError):
            pass  # looked at again, where the reason is told
        taken = place - places.start - tombstones
        self.rows += taken
        if self.growth is not None:
            self.growth += taken - unchanged - 2 * deleted
        return place

    @property
    def _counts_reads(self) -> bool:
        """Whether a row of an initial snapshot is new to the target.

        A snapshot that begins again describes the table anew: its rows stand behind another gate,
        and what the one before brought is gone.
        """
        segment = self._number % len(self._starts)
        return segment == self._first and not self._stream.reads_again

    def _examine(self, offset: int, value: bytes) -> bool:
        try:
            record = self._format.decode(value)
            source = record.source
            if self._stream.is_part and self._names_another(source):
                # Of whatever source: its position tells nothing here.
                return self._hold(offset, UNNAMED.reason, UNNAMED.hint)
            if (record.epoch, source["file"]) != self._file or not (
                self._low <= (source["pos"], source["row"]) < self._high
            ):
                self._position = record.position
                if not self._locate(offset, record):
                    return False
        except (UndecodableRow, StackError) as error:
            # The registry does not answer: a hold too, since a held row is tried again and again.
            return self._hold(offset, error.message, error.hint)
        except (KeyError, TypeError):
            return self._hold(
                offset, "the record's source block names no binlog position", "as Debezium does"
            )
        segment = self._stream.segments[self._number % len(self._starts)]
        if segment.passed_over or segment.undone or self._stays(record):
            self._short = None
            return True
        if refusal := self._refuse(offset, record):
            self._position = record.position
            return self._hold(offset, refusal.reason, refusal.hint, collides=refusal.collides)
        if record.op == TRUNCATE:
            self._short = None
            if self._stream.keeps_truncated:
                return True
            self.end = Stop(offset, record.position, truncated=True)
            return False
        try:
            self._take(offset, record)
        except TypeError:
            return self._hold(offset, "a primary-key value is no scalar", "check the shard's key")
        return True

    def _stays(self, record: RowRecord) -> bool:
        """Whether nothing is taken back of a row: a TRUNCATE has taken its rows away itself."""
        return self._stream.undoes and record.op == TRUNCATE

    def counts(self) -> tuple[int, int]:
        """Rows that have to be written, rows that have to be deleted."""
        self._leave_out()
        counts = [group.counts() for group in self._groups]
        return sum(count[0] for count in counts), sum(count[1] for count in counts)

    def batches(self, others: Sequence[RowFold] = ()) -> list[Batch | KeylessBatch]:
        """What has to be written, in order.

        Args:
            others: Folds of other partitions of this stream: they have no key in common.

        Raises:
            RefusedRow: A value cannot be converted.
        """
        folds = [fold for fold in (self, *others) if fold._groups]
        for fold in folds:
            fold._leave_out()
        groups = [group for fold in folds for group in fold._groups]
        keyless = [group for group in groups if isinstance(group, KeylessChanges)]
        if len(folds) > 1 and len(keyless) == len(groups):
            return self._summed_up(keyless)
        changes = [fold._groups[0] for fold in folds if len(fold._groups) == 1]
        keyed = [group for group in changes if isinstance(group, Changes)]
        if len(keyed) == len(folds) and len({fold._signature for fold in folds}) == 1:
            # One run through the target's primary key instead of one per partition.
            return [batch_of(keyed, self._plan_of, self._lines_of)]
        return [
            group.batch(self._plan_of(group.number))
            if isinstance(group, KeylessChanges)
            else batch_of([group], self._plan_of, self._lines_of)
            for fold in folds
            for group in fold._groups
        ]

    def _summed_up(self, changes: Sequence[KeylessChanges]) -> list[Batch | KeylessBatch]:
        """Of several partitions: what came in one may go in another, within a segment."""
        count = len(self._starts)
        numbers = sorted({some.number for some in changes}, key=lambda n: (n % count, n))
        return [
            KeylessChanges.of_all([some for some in changes if some.number == number]).batch(
                self._plan_of(number)
            )
            for number in numbers
        ]

    def starts(self) -> list[int]:
        """By batch of ``batches``: the lowest offset of what was kept of it."""
        return [group.first_offset() for group in self._groups]

    def one_by_one(self) -> Iterator[tuple[int, Batch]]:
        """What was kept, each change by itself with its offset: to find one that is refused.

        Raises:
            RefusedRow: As ``batches``.
        """
        self._leave_out()
        for group in self._groups:
            if isinstance(group, Changes):
                for key, change in sorted(group.items(), key=_offset):
                    yield change[0], batch_of([Changes({key: change})], self._plan_of)

    def _leave_out(self) -> None:
        """Let rows that the target shall not have be deleted instead of written."""
        if not self._unasked:
            return
        self._unasked = False
        for group in self._groups:
            if isinstance(group, Changes):
                for key, (offset, number, image, deleted) in group.items():
                    if not deleted and not self._is_wanted(number, astuple(image)):
                        group[key] = (offset, number, image, True)

    def _is_wanted(self, number: int, values: Sequence[Any]) -> bool:
        matches = self._plan_of(number).matches
        try:
            return matches is None or matches(values) is True
        except (UnfitValue, TypeError):
            return True  # refused when it is converted, with the reason

    def _locate(self, offset: int, record: RowRecord) -> bool:
        """Find the segment of ``self._position``, and its bounds in that position's file."""
        position, stop = self._position, self._stream.stop
        if stop is not None and is_behind(record, position, stop, self._stream.stop_began_ms):
            self.end = Stop(offset, position)
            return False
        segments = self._stream.segments
        number = bisect_right(self._starts, position.sort_key) - 1
        while number > 0 and not is_behind(
            record, position, segments[number].start, segments[number].began_ms
        ):
            number -= 1
        if number < 0:
            return self._hold(
                offset,
                f"the row stands before the first known schema of its shard ({segments[0].start})",
                "take a new snapshot of the shard",
            )
        following = [segment.start for segment in segments[number + 1 : number + 2]]
        if stop is not None:
            following.append(stop)
        self._number = 2 * position.epoch * len(segments) + number
        self._file, self._short = _file_of(position), None
        start = segments[number].start
        self._low = (start.pos, start.row) if _file_of(start) == self._file else (-1, -1)
        if segments[number].began_ms and position == start:
            # What follows such a row in its partition is of the same snapshot, or of the binlog.
            self._low = (start.pos - 1, 0)
        self._high = min(
            ((p.pos, p.row) for p in following if _file_of(p) == self._file),
            default=(float("inf"), 0),
        )
        return True

    def _refuse(self, offset: int, record: RowRecord) -> Refusal | None:
        plan, source = self._plan_of(self._number), record.source
        if self._refusals and offset in self._refusals:
            return self._refusals[offset]
        if self._names_another(source):
            return Refusal(
                f"the row belongs to {shard_of(source)}, its topic to {self._stream.shard}",
                "two tables share a topic name: rename one, or route them to topics of their own",
            )
        if plan.refusal is not None:
            return plan.refusal
        image = record.image
        if record.op in UPSERTS or record.op == DELETE:
            if not isinstance(image, dict):
                return Refusal(
                    f"operation {record.op!r} without a row image", "set binlog_row_image=FULL"
                )
            if image.keys() != plan.image:
                variant, segment = divmod(self._number, len(self._starts))
                other = (variant ^ 1) * len(self._starts) + segment
                if image.keys() != self._plan_of(other).image:
                    return differing(image, plan.image)
                self._number = other
            return self._refuse_keyless(record) if plan.decoder.key_of is None else None
        if record.op == TRUNCATE:
            return None
        return Refusal(f"operation {record.op!r} is not known", "see Debezium's release notes")

    def _names_another(self, source: Mapping[str, Any]) -> bool:
        return (source.get("name"), source.get("db"), source.get("table")) != self._identity

    def _refuse_keyless(self, record: RowRecord) -> Refusal | None:
        if self._stream.undoes:
            return None if record.op == READ else UNKNOWN
        if self._stream.partitions > 1 and not self._stream.ordered:
            return SPREAD
        if record.op != UPDATE:
            return None
        if not isinstance(record.before, dict):
            return WITHOUT_BEFORE
        image = self._plan_of(self._number).image
        return differing(record.before, image) if record.before.keys() != image else None

    def _plan_of(self, number: int) -> SegmentPlan:
        """The plan of a segment; from their count on with the names that images quote.

        After twice their count follow those of rows of the source's next epoch.
        """
        plan = self._plans.get(number)
        if plan is None:
            variant, segment = divmod(number, len(self._starts))
            epoch, naming = divmod(variant, 2)
            of_segment = self._stream.segments[segment]
            plan = plan_segment(
                self._stream, of_segment, self._bindings, naming, self._format, epoch=epoch
            )
            self._plans[number] = plan
        return plan

    def _take(self, offset: int, record: RowRecord) -> None:
        plan = self._plan_of(self._number)
        assert record.image is not None
        key_of = plan.decoder.key_of
        if key_of is None:
            self._sum_up(offset, record, record.image)
            self.rows += 1
            return
        # Of values that do not fit, whichever: that is found when they are converted.
        image = plan.decoder.make(*map(record.image.__getitem__, plan.names))
        last = self._groups[-1] if self._groups else None
        if not isinstance(last, Changes) or plan.signature != self._signature:
            last = Changes()
            self._groups.append(last)
            self._signature = plan.signature
        goes = record.op == DELETE or self._stream.undoes
        last[key_of(image)] = (offset, self._number, image, goes)
        self.rows += 1
        if self.growth is not None:
            self.growth += self._added(record)
        if not self._refusals:
            self._last, self._short, self._wrapped = last, plan, record.wrapped

    def _added(self, record: RowRecord) -> int:
        if record.op == READ:
            return int(self._counts_reads and not record.is_incremental)
        return (record.op == CREATE) - (record.op == DELETE)

    def _sum_up(self, offset: int, record: RowRecord, image: dict[str, Any]) -> None:
        """Take a row of a shard without a primary key."""
        last = self._groups[-1] if self._groups else None
        if not isinstance(last, KeylessChanges) or last.number != self._number:
            last = KeylessChanges(self._number)
            self._groups.append(last)
        self._short = self.growth = None
        before, after = (image, None) if record.op == DELETE else (record.before, image)
        if self._stream.where:
            names = self._plan_of(self._number).names
            before, after = (
                row if row and self._is_wanted(self._number, [row[n] for n in names]) else None
                for row in (before, after)
            )
        if self._stream.undoes:
            before, after = after, before
        place = ""
        if self._plan_of(self._number).position:
            place = place_of(record, self._stream.shard, self._partition, offset)
        last.add(offset, before, after, place)

    def _hold(self, offset: int, reason: str, hint: str, *, collides: bool = False) -> bool:
        hold = RowHold(self._stream.shard, self._position, offset, reason, hint, collides)
        self.end = Stop(offset, self._position, hold)
        return False


_INCREMENTAL = INCREMENTAL.encode()
"""Looked for in the whole record, in any format: a value that is like it stands for it too."""


def is_behind(
    record: RowRecord, position: SourcePosition, gate: SourcePosition, began_ms: int
) -> bool:
    """Whether a row stands behind a gate; ``began_ms``: of the gate, see ``decisions.Gate``.

    The binlog may not have moved between a snapshot and the one that took its place. Then all their
    rows name one place, and the connector's clock tells them apart.
    """
    if position != gate or not began_ms or record.op != READ or record.is_incremental:
        return position >= gate
    return record.ts_ms >= began_ms


def _file_of(position: SourcePosition) -> tuple[int, str]:
    """The binlog file: another server's may have the same name."""
    return position.epoch, position.file


def _offset(item: tuple[Any, Change]) -> int:
    return item[1][0]
