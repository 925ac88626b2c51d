"""Folded changes → what is written: one list of cells per target column. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, TypeAlias

from msgspec.structs import astuple

from .columns import Cells, Form, UnfitValue
from .fills import Fill
from .segment_plan import Refusal, SegmentPlan, WrittenColumn


class RefusedRow(Exception):
    """The row at ``offset`` cannot be applied; the rows before it can."""

    def __init__(self, offset: int, refusal: Refusal) -> None:
        super().__init__(offset, refusal)
        self.offset = offset
        self.refusal = refusal


TextOf: TypeAlias = Callable[[Sequence[Form], Sequence[Cells], Sequence[bool]], str]
"""Forms, cells and whether there are NULLs, by column → the rows as text that a target loads."""
TEXT_FROM_ROWS = 300
"""Fewer rows are not worth a load: they stay cells."""


@dataclass(frozen=True, slots=True)
class Block:
    """Rows with the same target columns, column by column.

    Attributes:
        names: Target columns; ``forms`` and ``cells`` follow their order.
        cells: One list per column, all of length ``rows``; where there is ``text``, those of the
            primary key only, the others are empty.
        has_nulls: Whether there is a NULL, by column.
        text: The rows as ``TextOf`` writes them; "" where nobody asked for it, or they are few.
    """

    names: tuple[str, ...]
    forms: tuple[Form, ...]
    cells: tuple[Cells, ...]
    has_nulls: tuple[bool, ...]
    rows: int
    text: str = ""


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


Change: TypeAlias = tuple[int, int, Any, bool]
"""Offset, number of the segment, image (see ``RowDecoder``), whether the row was deleted."""


class Changes(dict[Any, Change]):
    """Key → its last change."""

    def counts(self) -> tuple[int, int]:
        """Rows to write, keys to delete."""
        deleted = sum(map(_is_deleted, self.values()))
        return len(self) - deleted, deleted

    def first_offset(self) -> int:
        """The lowest offset that is left."""
        return min(change[0] for change in self.values())


def batch_of(
    changes: Sequence[Changes],
    plan_of: Callable[[int], SegmentPlan],
    text_of: TextOf | None = None,
) -> Batch:
    """The batch of changes whose segments have one key, and no key in common.

    Args:
        changes: At least one, none of them empty.
        plan_of: The plan of a segment's number.
        text_of: For upserts; None: cells will do.

    Raises:
        RefusedRow: A value cannot be converted.
    """
    deletes: list[Change] = []
    upserts: dict[int, list[Change]] = {}
    for change in _sorted(changes):
        if change[3]:
            deletes.append(change)
        else:
            upserts.setdefault(change[1], []).append(change)
    first = next(iter(changes[0].values()))[1]
    return Batch(
        plan_of(first).key_names,
        _deletes(deletes, plan_of) if deletes else None,
        tuple(
            _upserts(rows, plan_of(n), text_of if len(rows) >= TEXT_FROM_ROWS else None)
            for n, rows in sorted(upserts.items())
        ),
    )


def _upserts(rows: Sequence[Change], plan: SegmentPlan, text_of: TextOf | None) -> Block:
    return block_of(
        rows, plan.columns, (*plan.origin, *plan.fills), text_of=text_of, key=plan.key_names
    )


def _sorted(changes: Sequence[Changes]) -> Iterator[Change]:
    by_key = [item for some in changes for item in some.items()]
    # Keys of several types are not sorted: one of them does not fit, and is found when it is
    # converted.
    with suppress(TypeError):
        by_key.sort(key=_first)
    return map(_second, by_key)


def _deletes(rows: Sequence[Change], plan_of: Callable[[int], SegmentPlan]) -> Block:
    """Key columns of deleted rows; their segments may name them differently."""
    plan = plan_of(rows[0][1])
    if all(row[1] == rows[0][1] for row in rows):
        wanted = set(plan.key_names)
        return block_of(
            rows,
            [c for c in plan.columns if c.target in wanted],
            [fill for fill in plan.origin if fill[0] in wanted],
        )
    parts: dict[int, list[Change]] = {}
    for row in rows:
        parts.setdefault(row[1], []).append(row)
    blocks = [_deletes(part, plan_of) for part in parts.values()]
    order = blocks[0].names
    merged: list[Cells] = [[] for _ in order]
    for block in blocks:
        for number, name in enumerate(order):
            merged[number].extend(block.cells[block.names.index(name)])
    nulls = tuple(None in cells for cells in merged)
    return Block(order, blocks[0].forms, tuple(merged), nulls, len(rows))


def block_of(
    rows: Sequence[Change],
    columns: Sequence[WrittenColumn],
    fills: Sequence[tuple[str, Fill]] = (),
    *,
    text_of: TextOf | None = None,
    key: Collection[str] = (),
) -> Block:
    """The cells of rows, one or more; ``fills`` are of every row.

    Args:
        rows: In the order that they are written in.
        columns: Of the target, from the rows' images.
        fills: Further ones.
        text_of: Makes the block's ``text``; None: it has all cells instead.
        key: Columns that keep their cells beside a text.

    Raises:
        RefusedRow: A value cannot be converted; it is the one with the lowest offset.
    """
    names = (*(c.target for c in columns), *(name for name, _ in fills))
    forms = (*(c.encoder.form for c in columns), *(fill.form for _, fill in fills))
    cells: list[Cells] = [[] for _ in names]
    kept = [n for n, name in enumerate(names) if text_of is None or name in key]
    has_nulls = [False] * len(names)
    texts: list[str] = []
    # Few enough rows that their values stay in the processor's cache from column to column, and
    # into the text.
    for first in range(0, len(rows), _CACHED_ROWS):
        some_rows = rows[first : first + _CACHED_ROWS]
        values = tuple(zip(*(astuple(row[2]) for row in some_rows), strict=True))
        some: list[Cells] = []
        nulls: list[bool] = []
        for column in columns:
            try:
                found, has_null = column.encoder.encode_column(values[column.place])
            except UnfitValue:
                raise _first_refused(rows, columns) from None
            some.append(found)
            nulls.append(has_null)
        for _, fill in fills:
            some.append([fill.cell] * len(some_rows))
            nulls.append(fill.cell is None)
        for number in kept:
            cells[number] += some[number]
        if text_of is not None:
            texts.append(text_of(forms, some, nulls))
        has_nulls = [a or b for a, b in zip(has_nulls, nulls, strict=True)]
    return Block(names, forms, tuple(cells), tuple(has_nulls), len(rows), "".join(texts))


_CACHED_ROWS = 1_000


def _first_refused(rows: Sequence[Change], columns: Sequence[WrittenColumn]) -> RefusedRow:
    """The row with the lowest offset that has a value that does not fit."""
    for offset, _, image, _ in sorted(rows, key=_first):
        values = astuple(image)
        for column in columns:
            try:
                column.encoder.encode([values[column.place]])
            except UnfitValue as error:
                return RefusedRow(
                    offset,
                    Refusal(
                        f"column {column.image}: {error.message}",
                        "check the connector's value modes and the shard's tracked schema",
                    ),
                )
    raise AssertionError("a column was refused, none of its values is")


_first, _second, _is_deleted = itemgetter(0), itemgetter(1), itemgetter(3)
