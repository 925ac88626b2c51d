"""Folds the rows of one partition into what has to be written. Pure.

Theory of operation:

1. ``add`` takes records in offset order. It finds each row's segment by the row's position
   (``segment_locator``), checks the row image against it (``row_checks``), and keeps the last
   change per primary key. For a shard without a primary key it sums up whole rows
   (``kept_changes``). Nearly all rows are like the one before, and take a quick path: the segment's
   decoder has checked them, and their position lies within the segment's bounds (``quick_path``).
   Every other row is examined part by part.
2. At the first row that stands at or beyond the stream's stop, or that cannot be applied, the
   fold ends: ``end`` tells where, and every later ``add`` is refused.
3. ``batches`` converts the kept changes to neutral values per target column, sorted by primary key.
   A value that cannot be converted raises ``RefusedRow`` with its offset. The caller then folds the
   same records again with that offset among ``refusals``, and so stops just before it.

Records of operations that the stream ignores are passed over, wherever they stand. The result is
that of a topic without these records (``ignored_rows``).

If the stream ``undoes``, every row is taken back (``restarts``): its key is deleted. Without a
key, a row that was added is removed, and a row that was removed is added.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.records.decisions import Binding
from shardmerge.spark_sink.planning.ranges import RowHold, ShardStream
from shardmerge.spark_sink.rows.decoding.row_envelope import (
    CREATE,
    DELETE,
    READ,
    TRUNCATE,
    RowRecord,
    UndecodableRow,
)
from shardmerge.spark_sink.rows.decoding.row_format import JSON_ROWS, RowFormat

from .ignored_rows import is_ignored_by
from .kept_changes import KeptChanges
from .keyless import KeylessBatch, place_of
from .line_maker import LineMaker
from .quick_path import DirectLines, QuickPath, Tally
from .row_batches import SETTLED_ROWS, Batch
from .row_blocks import RefusedRow
from .row_checks import RowChecks
from .row_refusals import UNNAMED
from .segment_locator import Found, SegmentLocator
from .segment_plan import LimitsOf, Refusal
from .segment_plans import SegmentPlans


@dataclass(frozen=True, slots=True)
class Stop:
    """Where the fold ended: at the stream's stop, unless an attribute says otherwise.

    Attributes:
        hold: Set when the row at ``offset`` cannot be applied.
        truncated: Whether the row event at ``offset`` is a TRUNCATE of the shard's table.
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
        maker: Of lines of many rows, for a target that loads them.
        limits_of: Finds values that the kind of target cannot hold; see ``plan_segment``.
        partition: Of the row topic.

    Attributes:
        rows: Row events taken.
        end: Where the fold ended; None while it goes on.
        growth: By how many rows the shard's table grew; None when the target's growth cannot be
            compared with that.
    """

    def __init__(
        self,
        stream: ShardStream,
        bindings: Mapping[str, Binding],
        refusals: Mapping[int, Refusal] | None = None,
        rows: RowFormat = JSON_ROWS,
        maker: LineMaker | None = None,
        *,
        limits_of: LimitsOf | None = None,
        partition: int = 0,
    ) -> None:
        self.rows = 0
        # If the target has rows that the shard does not have, a created row may be one of them.
        uncertain = bool(stream.where or stream.keeps_truncated or stream.undoes or stream.ignored)
        uncertain = uncertain or any(segment.passed_over for segment in stream.segments)
        self.growth: int | None = None if uncertain else 0
        self.end: Stop | None = None
        self._stream = stream
        self._format = rows
        self._partition = partition
        self._maker = maker
        # A condition is checked on images at the end, so these must not become lines before.
        self._settles = maker is not None and not stream.where
        self._plans = SegmentPlans(stream, bindings, rows, limits_of)
        self._at = SegmentLocator(stream)
        self._checks = RowChecks(stream, self._plans, refusals or {})
        self._kept = KeptChanges(self._plans, maker)
        self._ignores = is_ignored_by(stream)
        # The quick path does not look at refusals, so it is closed when there are some.
        self._is_quick = not refusals
        # The first segment whose rows were not taken back.
        self._first = sum(segment.undone for segment in stream.segments)
        # For rows like the last one; None when the quick path is closed.
        self._quick: QuickPath | None = None
        self._direct: dict[int, DirectLines | None] = {}

    def add(self, offset: int, value: bytes | None) -> bool:
        """Take the record at an offset; False when the fold has ended before it."""
        return self.add_all((offset,), (value,))

    def add_all(self, offsets: Sequence[int], values: Sequence[bytes | None]) -> bool:
        """Take records; False when the fold has ended before the last of them."""
        self._kept.is_unfiltered = bool(self._stream.where) and not self._stream.undoes
        taken, end = 0, len(values)
        while taken < end and self.end is None:
            if self._quick is not None:
                stop = min(end, taken + SETTLED_ROWS)
                direct = self._direct_lines(self._quick)
                if direct is not None and self._settle():
                    tally = self._count(self._quick.lines(direct, offsets, values, taken))
                    taken = tally.place
                    if not tally.refused:
                        continue
                    stop = min(end, taken + _AFTER_REFUSAL)
                taken = self._count(self._quick.images(offsets, values, range(taken, stop))).place
                if self._settles and self._quick.last.is_many:
                    self._settle()
                if taken == stop:
                    continue
            value = values[taken]
            if value is not None and not self._examine(offsets[taken], value):
                break
            taken += 1
        return taken == end

    def _count(self, tally: Tally) -> Tally:
        self.rows += tally.rows
        if self.growth is not None:
            self.growth += tally.growth
        return tally

    def _settle(self) -> bool:
        """Make lines of the last rows while they are in the processor's cache; False if refused."""
        assert self._maker is not None
        assert self._quick is not None
        if not self._quick.last:
            return True
        try:
            self._quick.last.settle(self._plans.plan_of, self._maker)
        except RefusedRow:
            # A later change of the key may still replace the row that is refused.
            self._settles = False
        return self._settles

    @property
    def _counts_reads(self) -> bool:
        """Whether a row that an initial snapshot read is new to the target.

        A snapshot that begins again describes the table anew: its rows stand behind another gate,
        and the rows of the snapshot before are taken out.
        """
        segment = self._at.number % self._plans.count
        return segment == self._first and not self._stream.reads_again

    def _examine(self, offset: int, value: bytes) -> bool:
        """Take a record that may be anything; False when the fold ends before it."""
        try:
            record = self._format.decode(value)
            if self._stream.is_part and self._checks.names_another(record.source):
                # The record may be of another source, so its position is not used.
                return self._hold(offset, UNNAMED.reason, UNNAMED.hint, UNNAMED.code)
            if not self._at.is_within(record) and not self._locate(offset, record):
                return False
        except (UndecodableRow, StackError) as error:
            # When the registry does not answer, a hold is right too: a held row is tried again.
            return self._hold(offset, error.message, error.hint, error.code)
        except (KeyError, TypeError):
            return self._hold(
                offset,
                "the record's source block names no binlog position",
                "stop the program that wrote the record: Debezium's records name one",
                "SM-1514",
            )
        segment = self._plans.segment_of(self._at.number)
        if segment.passed_over or segment.undone or self._stays(record):
            self._quick = None
            return True
        if self._ignores is not None and self._ignores(record.op, value):
            self.rows += 1
            return True
        if refusal := self._checks.refusal_of(offset, record, self._at):
            self._at.position = record.position
            collides = refusal.collides
            return self._hold(offset, refusal.reason, refusal.hint, refusal.code, collides=collides)
        if record.op == TRUNCATE:
            self._quick = None
            if self._stream.keeps_truncated:
                return True
            self.end = Stop(offset, record.position, truncated=True)
            return False
        try:
            self._take(offset, record)
        except TypeError:
            return self._hold(
                offset,
                "a value of the primary key is an array or an object",
                "deploy the connector with the computed configuration",
                "SM-1509",
            )
        return True

    def _locate(self, offset: int, record: RowRecord) -> bool:
        """Find the row's segment; False when the fold ends before the row."""
        found = self._at.locate(record)
        if found is Found.BEHIND_STOP:
            self.end = Stop(offset, self._at.position)
            return False
        if found is Found.BEFORE_FIRST:
            first = self._stream.segments[0].start
            return self._hold(
                offset,
                f"the row stands before the first known schema of its shard ({first})",
                "take a new snapshot of the shard",
                "SM-1523",
            )
        self._quick = None
        return True

    def _stays(self, record: RowRecord) -> bool:
        """Whether a record is skipped while rows are taken back: a TRUNCATE brought no rows."""
        return self._stream.undoes and record.op == TRUNCATE

    def _take(self, offset: int, record: RowRecord) -> None:
        """Keep the change of a row that was checked."""
        number = self._at.number
        plan = self._plans.plan_of(number)
        assert record.image is not None
        key_of = plan.key_of
        if key_of is None:
            self._sum_up(offset, record, record.image)
            self.rows += 1
            return
        # The values may not fit their columns; conversion finds that.
        image = plan.decoder.make(*map(record.image.__getitem__, plan.names))
        goes, key = record.op == DELETE or self._stream.undoes, key_of(image)
        hash(key)  # raises TypeError before there is a group for it
        last = self._kept.keyed(plan)
        last[key] = (offset, number, image, goes)
        self.rows += 1
        if self.growth is not None:
            self.growth += self._added(record)
        if self._is_quick:
            self._quick = QuickPath(
                plan,
                last,
                self._at,
                record.wrapped,
                self._counts_reads,
                self._stream.undoes,
                self._ignores,
            )

    def _direct_lines(self, quick: QuickPath) -> DirectLines | None:
        """The other way to go on; None where there is none, or where it is of no use."""
        if not (self._settles and quick.last.is_settled) or quick.goes or quick.ignores is not None:
            return None
        number = self._at.number
        if number not in self._direct:
            assert self._maker is not None
            lines = self._maker.of_records(quick.plan)
            self._direct[number] = None if lines is None else DirectLines(lines)
        direct = self._direct[number]
        return direct if direct is not None and direct.is_useful else None

    def _added(self, record: RowRecord) -> int:
        if record.op == READ:
            return int(self._counts_reads and not record.is_incremental)
        return (record.op == CREATE) - (record.op == DELETE)

    def _sum_up(self, offset: int, record: RowRecord, image: dict[str, Any]) -> None:
        """Take a row of a shard without a primary key."""
        number = self._at.number
        last = self._kept.keyless(number)
        self._quick = self.growth = None
        before, after = (image, None) if record.op == DELETE else (record.before, image)
        if self._stream.where:
            names = self._plans.plan_of(number).names
            before, after = (
                row if row and self._plans.is_wanted(number, [row[n] for n in names]) else None
                for row in (before, after)
            )
        if self._stream.undoes:
            before, after = after, before
        place = ""
        if self._plans.plan_of(number).position:
            place = place_of(record, self._stream.shard, self._partition, offset)
        last.add(offset, before, after, place)

    def _hold(
        self, offset: int, reason: str, hint: str, code: str, *, collides: bool = False
    ) -> bool:
        position = self._at.position
        hold = RowHold(self._stream.shard, position, offset, reason, hint, collides, code)
        self.end = Stop(offset, position, hold)
        return False

    def counts(self) -> tuple[int, int]:
        """How many rows have to be written, and how many have to be deleted."""
        return self._kept.counts()

    def batches(self, others: Sequence[RowFold] = ()) -> list[Batch | KeylessBatch]:
        """What has to be written, in order.

        Args:
            others: Folds of other partitions of this stream; no key is in two of them.

        Raises:
            RefusedRow: A value cannot be converted.
        """
        return self._kept.batches([fold._kept for fold in others])

    def first_offsets(self) -> list[int]:
        """For each batch of ``batches``: the lowest offset of the changes in it."""
        return self._kept.first_offsets()

    def one_by_one(self) -> Iterator[tuple[int, Batch]]:
        """The kept changes one by one, each with its offset: to find the one that is refused.

        Raises:
            RefusedRow: As ``batches``.
        """
        return self._kept.one_by_one()


_AFTER_REFUSAL = 16
"""So many records become images before ``RecordLines`` is asked again: then their lines are made
together."""
