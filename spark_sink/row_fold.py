"""Folds the rows of one partition into what has to be written. Pure.

Theory of operation:

1. ``add`` takes records in offset order. It finds each row's segment by the row's position,
   checks the row image against it, and keeps the last change per primary key.
2. At the first row that stands at or beyond the stream's stop, or that cannot be applied, the
   fold ends: ``end`` tells where, and every later ``add`` is refused.
3. ``batches`` converts what was kept to cells per target column, sorted by primary key.
   A value that cannot be converted raises ``RefusedRow`` with its offset: the caller folds the
   same records again with that offset among ``refusals``, and so stops just before it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from orjson import JSONDecodeError, loads

from shardmerge.schemas.events import Binding
from shardmerge.schemas.position import BEGINNING, SourcePosition

from .columns import Cells, Encoder, Form, UnfitValue, encoder
from .ranges import RowHold, Segment, ShardStream
from .row_envelope import (
    DELETE,
    TRUNCATE,
    UPSERTS,
    RowRecord,
    UndecodableRow,
    decode_row,
    image_names,
    position_of,
    shard_of,
)

_CHANGES = UPSERTS | {DELETE}


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a row cannot be applied, and what the operator can do."""

    reason: str
    hint: str


class RefusedRow(Exception):
    """The row at ``offset`` cannot be applied; the rows before it can."""

    def __init__(self, offset: int, refusal: Refusal) -> None:
        super().__init__(offset, refusal)
        self.offset = offset
        self.refusal = refusal


@dataclass(frozen=True, slots=True)
class Stop:
    """Where the fold ended. ``hold`` is None at a gate that may not be passed."""

    offset: int
    position: SourcePosition
    hold: RowHold | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """Rows with the same target columns, column by column.

    Attributes:
        names: Target columns; ``forms`` and ``cells`` follow their order.
        cells: One list per column, all of length ``rows``.
    """

    names: tuple[str, ...]
    forms: tuple[Form, ...]
    cells: tuple[Cells, ...]
    rows: int


@dataclass(frozen=True, slots=True)
class Batch:
    """Changes of distinct keys: write the deletes first, then the upserts.

    A key that differs only for this side from another one ('a' and 'A' under the target's
    collation) is deleted before it is written again, so this order is right for both.

    Attributes:
        key: Target columns of the primary key.
        deletes: Key columns only; None when there is nothing to delete.
        upserts: Each block has at least the key columns, and one row or more.
    """

    key: tuple[str, ...]
    deletes: Block | None
    upserts: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class _Plan:
    """A segment, prepared: how to read a row's key and how to write its columns."""

    segment: Segment
    image: frozenset[str]
    key_of: itemgetter[Any] | None
    key_names: tuple[str, ...]
    signature: tuple[object, ...]
    columns: tuple[tuple[str, str, Encoder], ...]
    refusal: Refusal | None


class _Changes(dict[Any, tuple[int, int, dict[str, Any] | None, dict[str, Any]]]):
    """Key → (offset, number of the segment, image or None for a delete, image with the key)."""


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
        self._plans: dict[int, _Plan] = {}
        self._starts = [segment.start.sort_key for segment in stream.segments]
        self._groups: list[_Changes] = []
        self._signature: tuple[object, ...] = ()
        self._identity = (stream.shard.source, stream.shard.database, stream.shard.table)
        # The place of the last row and the bounds of its segment within its binlog file.
        self._number = -1
        self._file: str | None = None
        self._low: tuple[float, float] = (0, 0)
        self._high: tuple[float, float] = (0, 0)
        self._position = BEGINNING
        # Of the segment that the last row was taken into.
        self._last = _Changes()
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

    def batches(self) -> list[Batch]:
        """What has to be written, in order.

        Raises:
            RefusedRow: A value cannot be converted.
        """
        return [self._batch(changes) for changes in self._groups if changes]

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

    def _plan_of(self, number: int) -> _Plan:
        """The plan of a segment; from their count on with the names that images quote."""
        plan = self._plans.get(number)
        if plan is None:
            naming, segment = divmod(number, len(self._starts))
            plan = _plan(self._stream.segments[segment], self._bindings, naming)
            self._plans[number] = plan
        return plan

    def _take(self, offset: int, record: RowRecord) -> None:
        plan = self._plan_of(self._number)
        if plan.signature != self._signature or not self._groups:
            self._groups.append(_Changes())
            self._signature = plan.signature
        image, key_of = record.image, plan.key_of
        assert image is not None
        assert key_of is not None
        kept = None if record.op == DELETE else image
        self._last, self._key_of, self._image = self._groups[-1], key_of, plan.image
        self._last[key_of(image)] = (offset, self._number, kept, image)
        self.rows += 1

    def _hold(self, offset: int, reason: str, hint: str) -> bool:
        hold = RowHold(self._stream.shard, self._position, offset, reason, hint)
        self.end = Stop(offset, self._position, hold)
        return False

    def _batch(self, changes: _Changes) -> Batch:
        deletes: list[Any] = []
        upserts: dict[int, list[Any]] = {}
        for _, change in _sorted(changes):
            if change[2] is None:
                deletes.append(change)
            else:
                upserts.setdefault(change[1], []).append(change)
        first = next(iter(changes.values()))[1]
        plan = self._plan_of(first)
        return Batch(
            plan.key_names,
            _deletes(deletes, self._plan_of) if deletes else None,
            tuple(_block(rows, self._plan_of(n).columns) for n, rows in sorted(upserts.items())),
        )


def _sorted(changes: _Changes) -> list[tuple[Any, tuple[Any, ...]]]:
    try:
        return sorted(changes.items(), key=itemgetter(0))
    except TypeError:
        # Keys of several types: one of them does not fit and is found when it is converted.
        return list(changes.items())


def _plan(segment: Segment, bindings: Mapping[str, Binding], naming: int) -> _Plan:
    columns: list[tuple[str, str, Encoder]] = []
    bound: dict[str, str] = {}
    refusal: Refusal | None = None
    by_name = {c.column.name.lower(): c for c in segment.columns}
    for shard_column in segment.columns:
        binding = bindings.get(shard_column.id)
        if binding is None or not binding.name or not binding.writable:
            continue
        name = shard_column.column.name
        bound[name.lower()] = binding.name
        try:
            columns.append(
                (image_names(name)[naming], binding.name, encoder(shard_column.column.type))
            )
        except UnfitValue as error:
            refusal = Refusal(f"column {name}: {error.message}", "drop the column on the shard")
    if not segment.live:
        refusal = Refusal(
            "the row stands after its table was dropped", "take a new snapshot of the shard"
        )
    elif not segment.key:
        refusal = Refusal("table has no primary key", "add a primary key on the shard")
    elif missing := [k for k in segment.key if k.lower() not in bound]:
        refusal = Refusal(
            f"primary-key column {missing[0]} of the shard is not in the target",
            "give the target a column for it",
        )
    keys = [by_name[k.lower()] for k in segment.key if k.lower() in by_name]
    return _Plan(
        segment,
        frozenset(image_names(c.column.name)[naming] for c in segment.columns),
        itemgetter(*(image_names(c.column.name)[naming] for c in keys)) if keys else None,
        tuple(bound.get(k.lower(), "") for k in segment.key),
        tuple((c.id, c.column.type.name, c.column.type.scale) for c in keys),
        tuple(columns),
        refusal,
    )


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


def _deletes(rows: Sequence[Any], plan_of: Callable[[int], _Plan]) -> Block:
    """Key columns of deleted rows; their segments may name them differently."""
    plan = plan_of(rows[0][1])
    if all(row[1] == rows[0][1] for row in rows):
        wanted = set(plan.key_names)
        return _block(
            [(r[0], r[1], r[3]) for r in rows], [c for c in plan.columns if c[1] in wanted]
        )
    parts: dict[int, list[Any]] = {}
    for row in rows:
        parts.setdefault(row[1], []).append(row)
    blocks = [_deletes(part, plan_of) for part in parts.values()]
    order = blocks[0].names
    merged: list[Cells] = [[] for _ in order]
    for block in blocks:
        for number, name in enumerate(order):
            merged[number].extend(block.cells[block.names.index(name)])
    return Block(order, blocks[0].forms, tuple(merged), len(rows))


def _block(rows: Sequence[Any], columns: Sequence[tuple[str, str, Encoder]]) -> Block:
    images = [row[2] for row in rows]
    cells: list[Cells] = []
    for image, _, enc in columns:
        try:
            cells.append(enc.encode([i[image] for i in images]))
        except UnfitValue:
            raise _first_refused(rows, columns) from None
    return Block(
        tuple(name for _, name, _ in columns),
        tuple(enc.form for _, _, enc in columns),
        tuple(cells),
        len(images),
    )


def _first_refused(rows: Sequence[Any], columns: Sequence[tuple[str, str, Encoder]]) -> RefusedRow:
    """The row with the lowest offset that has a value that does not fit."""
    for offset, _, values, *_ in sorted(rows, key=itemgetter(0)):
        for image, _, enc in columns:
            try:
                enc.encode([values[image]])
            except UnfitValue as error:
                return RefusedRow(
                    offset,
                    Refusal(
                        f"column {image}: {error.message}",
                        "check the connector's value modes and the shard's tracked schema",
                    ),
                )
    raise AssertionError("a column was refused, none of its values is")
