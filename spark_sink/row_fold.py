"""Folds the rows of one partition into what has to be written. Pure.

Theory of operation:

1. ``add`` takes records in offset order. It finds each row's segment by the row's position,
   checks the row image against it, and keeps the last change per primary key; of a shard without
   one it sums up whole rows (``keyless``).
2. At the first row that stands at or beyond the stream's stop, or that cannot be applied, the
   fold ends: ``end`` tells where, and every later ``add`` is refused.
3. ``batches`` converts what was kept to cells per target column, sorted by primary key.
   A value that cannot be converted raises ``RefusedRow`` with its offset: the caller folds the
   same records again with that offset among ``refusals``, and so stops just before it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from orjson import JSONDecodeError, loads

from shardmerge.schemas.events import Binding
from shardmerge.schemas.position import BEGINNING, SourcePosition

from .keyless import KeylessBatch, KeylessChanges
from .ranges import RowHold, ShardStream
from .row_batches import Batch, Changes, batch_of
from .row_envelope import (
    DELETE,
    TRUNCATE,
    UPSERTS,
    RowRecord,
    UndecodableRow,
    decode_row,
    position_of,
    shard_of,
)
from .segment_plan import Refusal, SegmentPlan, plan_segment

_CHANGES = UPSERTS | {DELETE}


@dataclass(frozen=True, slots=True)
class Stop:
    """Where the fold ended. ``hold`` is None at a gate that may not be passed."""

    offset: int
    position: SourcePosition
    hold: RowHold | None = None


class RowFold:
    """Folds records of one partition; see the module's text.

    Args:
        stream: The shard's segments and stop.
        bindings: Identity → target column.
        refusals: Rows known not to be applicable, by offset.

    Attributes:
        rows: Row events taken.
        end: Where the fold ended; None while it goes on.
    """

    def __init__(
        self,
        stream: ShardStream,
        bindings: Mapping[str, Binding],
        refusals: Mapping[int, Refusal] | None = None,
    ) -> None:
        self.rows = 0
        self.end: Stop | None = None
        self._stream = stream
        self._refusals = refusals or {}
        self._bindings = bindings
        self._plans: dict[int, SegmentPlan] = {}
        self._starts = [segment.start.sort_key for segment in stream.segments]
        self._groups: list[Changes | KeylessChanges] = []
        self._signature: tuple[object, ...] = ()
        self._identity = (stream.shard.source, stream.shard.database, stream.shard.table)
        # The place of the last row and the bounds of its segment within its binlog file.
        self._number = -1
        self._file: str | None = None
        self._low: tuple[float, float] = (0, 0)
        self._high: tuple[float, float] = (0, 0)
        self._position = BEGINNING
        # Of the segment that the last row was taken into.
        self._last = Changes()
        self._key_of: Callable[[Any], Any] = id
        self._image: frozenset[str] = frozenset()

    def add(self, offset: int, value: bytes | None) -> bool:
        """Take the record at that offset; False when the fold has ended before it."""
        if self.end is not None:
            return False
        if value is None:
            return True
        try:
            # What nearly every record is; whatever is unusual about one is left to _examine.
            envelope = loads(value)
            source = envelope["source"]
            op = envelope["op"]
            image = envelope["before" if op == DELETE else "after"]
            if (
                source["file"] == self._file
                and self._low <= (source["pos"], source["row"]) < self._high
                and op in _CHANGES
                and image.keys() == self._image
                and (source["name"], source["db"], source["table"]) == self._identity
                and not self._refusals
            ):
                self._last[self._key_of(image)] = (
                    offset,
                    self._number,
                    None if op == DELETE else image,
                    image,
                )
                self.rows += 1
                return True
        except (JSONDecodeError, KeyError, TypeError, AttributeError):
            pass
        return self._examine(offset, value)

    def _examine(self, offset: int, value: bytes) -> bool:
        try:
            record = decode_row(value)
            source = record.source
            if source["file"] != self._file or not (
                self._low <= (source["pos"], source["row"]) < self._high
            ):
                self._position = position_of(source)
                if not self._locate(offset):
                    return False
        except UndecodableRow as error:
            return self._hold(offset, error.message, "mend or remove the record's producer")
        except (KeyError, TypeError):
            return self._hold(
                offset, "the record's source block names no binlog position", "as Debezium does"
            )
        if self._stream.segments[self._number].passed_over:
            self._image = frozenset()
            return True
        if refusal := self._refuse(offset, record):
            self._position = position_of(source)
            return self._hold(offset, refusal.reason, refusal.hint)
        try:
            self._take(offset, record)
        except TypeError:
            return self._hold(offset, "a primary-key value is no scalar", "check the shard's key")
        return True

    def batches(self) -> list[Batch | KeylessBatch]:
        """What has to be written, in order.

        Raises:
            RefusedRow: A value cannot be converted.
        """
        return [
            group.batch(self._plan_of(group.number))
            if isinstance(group, KeylessChanges)
            else batch_of(group, self._plan_of)
            for group in self._groups
        ]

    def _locate(self, offset: int) -> bool:
        """Find the segment of ``self._position``, and its bounds in that position's file."""
        position, stop = self._position, self._stream.stop
        if stop is not None and position >= stop:
            self.end = Stop(offset, position)
            return False
        segments = self._stream.segments
        number = bisect_right(self._starts, position.sort_key) - 1
        if number < 0:
            return self._hold(
                offset,
                f"the row stands before the first known schema of its shard ({segments[0].start})",
                "take a new snapshot of the shard",
            )
        following = [segment.start for segment in segments[number + 1 : number + 2]]
        if stop is not None:
            following.append(stop)
        self._number, self._file, self._image = number, position.file, frozenset()
        start = segments[number].start
        self._low = (start.pos, start.row) if start.file == position.file else (-1, -1)
        self._high = min(
            ((p.pos, p.row) for p in following if p.file == position.file),
            default=(float("inf"), 0),
        )
        return True

    def _refuse(self, offset: int, record: RowRecord) -> Refusal | None:
        plan, source = self._plan_of(self._number), record.source
        if self._refusals and offset in self._refusals:
            return self._refusals[offset]
        if (source.get("name"), source.get("db"), source.get("table")) != self._identity:
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
            if plan.key_of is None and (refusal := self._refuse_keyless(record)):
                return refusal
            if image.keys() != plan.image:
                other = (self._number + len(self._starts)) % (2 * len(self._starts))
                if image.keys() != self._plan_of(other).image:
                    return _differing(image, plan.image)
                self._number = other
            return None
        if record.op == TRUNCATE:
            return Refusal(
                "the table was truncated on the source; the merged table cannot be truncated "
                "for one shard",
                "delete this shard's rows from the target, then skip the event",
            )
        return Refusal(f"operation {record.op!r} is not known", "see Debezium's release notes")

    def _refuse_keyless(self, record: RowRecord) -> Refusal | None:
        if self._stream.partitions > 1:
            return Refusal(
                "the table has no primary key, so its rows are spread over the partitions of its "
                "topic without an order",
                "add a primary key on the shard, or give the topic one partition and a snapshot",
            )
        if record.op == "u" and not isinstance(record.before, dict):
            return Refusal(
                "an update of a table without a primary key has no image of the row before",
                "set binlog_row_image=FULL",
            )
        return None

    def _plan_of(self, number: int) -> SegmentPlan:
        """The plan of a segment; from their count on with the names that images quote."""
        plan = self._plans.get(number)
        if plan is None:
            naming, segment = divmod(number, len(self._starts))
            plan = plan_segment(self._stream.segments[segment], self._bindings, naming)
            self._plans[number] = plan
        return plan

    def _take(self, offset: int, record: RowRecord) -> None:
        plan = self._plan_of(self._number)
        image = record.image
        assert image is not None
        self.rows += 1
        if plan.key_of is None:
            self._sum_up(offset, record, image)
            return
        last = self._groups[-1] if self._groups else None
        if not isinstance(last, Changes) or plan.signature != self._signature:
            last = Changes()
            self._groups.append(last)
            self._signature = plan.signature
        kept = None if record.op == DELETE else image
        last[plan.key_of(image)] = (offset, self._number, kept, image)
        # From here on such rows take the short way.
        self._last, self._key_of, self._image = last, plan.key_of, plan.image

    def _sum_up(self, offset: int, record: RowRecord, image: dict[str, Any]) -> None:
        """Take a row of a shard without a primary key."""
        last = self._groups[-1] if self._groups else None
        if not isinstance(last, KeylessChanges) or last.number != self._number:
            last = KeylessChanges(self._number)
            self._groups.append(last)
        self._image = frozenset()
        if record.op == DELETE:
            last.add(offset, image, None)
        else:
            last.add(offset, record.before, image)

    def _hold(self, offset: int, reason: str, hint: str) -> bool:
        hold = RowHold(self._stream.shard, self._position, offset, reason, hint)
        self.end = Stop(offset, self._position, hold)
        return False


def _differing(image: Mapping[str, Any], expected: frozenset[str]) -> Refusal:
    parts = [
        f"{what} {', '.join(sorted(names)[:5])}"
        for what, names in (
            ("unknown:", image.keys() - expected),
            ("missing:", expected - image.keys()),
        )
        if names
    ]
    return Refusal(
        f"the row's columns are not those of the shard's tracked schema ({'; '.join(parts)})",
        "the tracked schema is wrong here: set the shard's schema, or snapshot the shard anew",
    )
