"""Folded changes → what is written: one list of cells per target column. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from .columns import Cells, Encoder, Form, UnfitValue
from .fills import Fill
from .segment_plan import Refusal, SegmentPlan


class RefusedRow(Exception):
    """The row at ``offset`` cannot be applied; the rows before it can."""

    def __init__(self, offset: int, refusal: Refusal) -> None:
        super().__init__(offset, refusal)
        self.offset = offset
        self.refusal = refusal


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


class Changes(dict[Any, tuple[int, int, dict[str, Any] | None, dict[str, Any]]]):
    """Key → (offset, number of the segment, image or None for a delete, image with the key)."""


def batch_of(changes: Changes, plan_of: Callable[[int], SegmentPlan]) -> Batch:
    """The batch of changes whose segments have one key.

    Args:
        changes: At least one.
        plan_of: The plan of a segment's number.

    Raises:
        RefusedRow: A value cannot be converted.
    """
    deletes: list[Any] = []
    upserts: dict[int, list[Any]] = {}
    for _, change in _sorted(changes):
        if change[2] is None:
            deletes.append(change)
        else:
            upserts.setdefault(change[1], []).append(change)
    first = next(iter(changes.values()))[1]
    return Batch(
        plan_of(first).key_names,
        _deletes(deletes, plan_of) if deletes else None,
        tuple(
            block_of(rows, plan_of(n).columns, plan_of(n).fills)
            for n, rows in sorted(upserts.items())
        ),
    )


def _sorted(changes: Changes) -> list[tuple[Any, tuple[Any, ...]]]:
    try:
        return sorted(changes.items(), key=itemgetter(0))
    except TypeError:
        # Keys of several types: one of them does not fit and is found when it is converted.
        return list(changes.items())


def _deletes(rows: Sequence[Any], plan_of: Callable[[int], SegmentPlan]) -> Block:
    """Key columns of deleted rows; their segments may name them differently."""
    plan = plan_of(rows[0][1])
    if all(row[1] == rows[0][1] for row in rows):
        wanted = set(plan.key_names)
        return block_of(
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


def block_of(
    rows: Sequence[Any],
    columns: Sequence[tuple[str, str, Encoder]],
    fills: Sequence[tuple[str, Fill]] = (),
) -> Block:
    """The cells of rows, each an ``(offset, segment, image, …)``; ``fills`` are of every row.

    Raises:
        RefusedRow: A value cannot be converted; it is the one with the lowest offset.
    """
    images = [row[2] for row in rows]
    cells: list[Cells] = []
    for image, _, enc in columns:
        try:
            cells.append(enc.encode([i[image] for i in images]))
        except UnfitValue:
            raise _first_refused(rows, columns) from None
    return Block(
        (*(name for _, name, _ in columns), *(name for name, _ in fills)),
        (*(enc.form for _, _, enc in columns), *(fill.form for _, fill in fills)),
        (*cells, *([fill.cell] * len(images) for _, fill in fills)),
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
