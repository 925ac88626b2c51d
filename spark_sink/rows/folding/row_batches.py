"""Turns folded changes into what is written: values by column, or lines for a load. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import itemgetter
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

from .line_maker import LineMaker
from .row_blocks import Block, Change, block_of, names_and_forms
from .segment_plan import SegmentPlan

T = TypeVar("T")

LINES_FROM_ROWS = 300
"""Fewer rows are not worth a load: they stay values."""
SETTLED_ROWS = 150
"""This many images stay in the processor's cache, with all that is made of them (some kilobytes
each). Measured with a cache of 1 MB: a whole task took a sixth less time with 150 than with 1,000.
"""


@dataclass(frozen=True, slots=True)
class Batch:
    """Changes of distinct keys: write the deletes first, then the upserts.

    Two keys can differ here and be equal for the target ('a' and 'A' under its collation). If one
    is deleted and the other written, the delete must come first, so this order is right for both.

    Attributes:
        key: Target columns of the primary key.
        deletes: Key columns only; None when there is nothing to delete.
        upserts: Each block has at least the key columns, and one row or more.
    """

    key: tuple[str, ...]
    deletes: Block | None
    upserts: tuple[Block, ...]


class Changes(dict[Any, Change]):
    """Key → its last change, for changes that are not settled.

    An image is some twenty objects spread over the memory; its line is one object. ``settle`` makes
    lines of images while these are in the processor's cache, so that only the lines are kept.

    Attributes:
        lines: Settled rows to write: number of the segment → key → line.
        deletes: Settled rows to delete.
    """

    __slots__ = ("deletes", "lines")

    def __init__(self, changes: Mapping[Any, Change] = MappingProxyType({})) -> None:
        super().__init__(changes)
        self.lines: dict[int, dict[Any, bytes]] = {}
        self.deletes: dict[Any, Change] = {}

    @property
    def is_settled(self) -> bool:
        """Whether some changes are settled."""
        return bool(self.lines or self.deletes)

    @property
    def is_many(self) -> bool:
        """Whether there are enough changes to settle; the first time, enough for a load."""
        return len(self) >= (SETTLED_ROWS if self.is_settled else LINES_FROM_ROWS)

    def counts(self) -> tuple[int, int]:
        """How many rows to write and how many keys to delete, settled or not."""
        deleted = sum(map(_is_deleted, self.values()))
        upserted = len(self) - deleted
        for lines in self.lines.values():
            upserted += len(lines) - len(lines.keys() & self.keys())
        deleted += len(self.deletes) - len(self.deletes.keys() & self.keys())
        return upserted, deleted

    def first_offset(self) -> int:
        """The lowest offset of the changes that are not settled."""
        return min(change[0] for change in self.values())

    def take_lines(
        self,
        number: int,
        keys: Sequence[Any],
        lines: Sequence[bytes],
        deletes: Sequence[tuple[int, Change]],
    ) -> None:
        """Take settled rows, in order; all earlier changes are settled.

        Args:
            number: Of the rows' segment.
            keys: Of the rows.
            lines: Of the rows; that of a deleted one is not used.
            deletes: For each row that was deleted its index among the rows, and its change.
        """
        others = [found for n, found in self.lines.items() if n != number]
        own = self.lines.setdefault(number, {})
        first = 0
        for index, change in (*deletes, (len(keys), None)):
            written = keys[first:index]
            own.update(zip(written, lines[first:index], strict=True))
            _forget(written, self.deletes, *others)
            if change is not None:
                _forget((keys[index],), own, *others)
                self.deletes[keys[index]] = change
            first = index + 1

    def settle(self, plan_of: PlanOf, maker: LineMaker) -> None:
        """Make lines of all images.

        Raises:
            RefusedRow: A value cannot be converted; the images to write are still there then.
        """
        deletes = {key: change for key, change in self.items() if change[3]}
        for key in deletes:
            del self[key]
        _forget(deletes.keys(), *self.lines.values())
        self.deletes.update(deletes)
        numbers = set(map(_number, self.values()))
        upserts: dict[int, dict[Any, Change]] = {
            n: self if len(numbers) == 1 else {k: c for k, c in self.items() if c[1] == n}
            for n in sorted(numbers)
        }
        made = {n: _lines([*rows.values()], plan_of(n), maker) for n, rows in upserts.items()}
        for number, rows in upserts.items():
            _forget(rows.keys(), self.deletes, *(v for n, v in self.lines.items() if n != number))
            self.lines.setdefault(number, {}).update(zip(rows, made[number], strict=True))
        self.clear()


PlanOf: TypeAlias = Callable[[int], SegmentPlan]
"""The plan of a segment's number."""


def _forget(keys: Iterable[Any], *among: dict[Any, Any]) -> None:
    for known in among:
        for key in known.keys() & keys:
            del known[key]


def batch_of(changes: Sequence[Changes], plan_of: PlanOf, maker: LineMaker | None = None) -> Batch:
    """The batch of several ``Changes`` of one primary key; no key value is in two of them.

    Args:
        changes: At least one, none of them empty; settled only if there is a ``maker``.
        plan_of: The plan of a segment's number.
        maker: Of lines for upserts; None for values.

    Raises:
        RefusedRow: A value cannot be converted.
    """
    if maker is not None and (
        any(some.is_settled for some in changes)
        or sum(some.counts()[0] for some in changes) >= LINES_FROM_ROWS
    ):
        for some in changes:
            some.settle(plan_of, maker)
        deletes = _sorted([some.deletes for some in changes])
        numbers = sorted({n for some in changes for n, lines in some.lines.items() if lines})
        upserts = tuple(
            _loaded([some.lines[n] for some in changes if n in some.lines], plan_of(n))
            for n in numbers
        )
        first = numbers[0] if numbers else deletes[0][1]
    else:
        rows: dict[int, list[Change]] = {}
        deletes = []
        for change in _sorted(changes):
            if change[3]:
                deletes.append(change)
            else:
                rows.setdefault(change[1], []).append(change)
        upserts = tuple(_block(some, plan_of(n)) for n, some in sorted(rows.items()))
        first = min(change[1] for change in changes[0].values())
    return Batch(plan_of(first).key_names, _deletes(deletes, plan_of) if deletes else None, upserts)


def _block(rows: Sequence[Change], plan: SegmentPlan) -> Block:
    return block_of(rows, plan.columns, (*plan.origin, *plan.added))


def _lines(rows: Sequence[Change], plan: SegmentPlan, maker: LineMaker) -> list[bytes]:
    """A line for each row."""
    found: list[bytes] = []
    # In parts, so that the values stay in the processor's cache until the lines are made.
    for first in range(0, len(rows), SETTLED_ROWS):
        block = _block(rows[first : first + SETTLED_ROWS], plan)
        found += maker.of_values(block.forms, block.values, block.has_nulls)
    return found


def _loaded(lines: Sequence[Mapping[Any, bytes]], plan: SegmentPlan) -> Block:
    """The block of lines by key, with the key's values, which a delete by key needs."""
    keys, texts = _by_key(lines)
    names, forms = names_and_forms(plan.columns, (*plan.origin, *plan.added))
    constants = dict((*plan.origin, *plan.added))
    own = {column.target: column for column in plan.columns}
    parts = [name for name in plan.key_names if name in own]
    values = [keys] if len(parts) == 1 else list(zip(*keys, strict=True))
    found = {name: own[name].reader.read(part) for name, part in zip(parts, values, strict=True)}
    found |= {n: [constants[n].value] * len(keys) for n in plan.key_names if n in constants}
    return Block(
        names,
        forms,
        tuple(found.get(name, []) for name in names),
        (False,) * len(names),
        len(keys),
        texts,
    )


def _sorted(changes: Sequence[Mapping[Any, Change]]) -> list[Change]:
    return _by_key(changes)[1]


def _by_key(parts: Sequence[Mapping[Any, T]]) -> tuple[list[Any], list[T]]:
    """Keys and values of all parts, which have no key in common, sorted."""
    merged = parts[0] if len(parts) == 1 else {k: v for part in parts for k, v in part.items()}
    keys = list(merged)
    # Keys of several types cannot be sorted: one of them does not fit its column, and conversion
    # finds it.
    with suppress(TypeError):
        keys.sort()
    return keys, list(map(merged.__getitem__, keys))


def _deletes(rows: Sequence[Change], plan_of: PlanOf) -> Block:
    """Key columns of deleted rows; their segments may name them differently."""
    plan = plan_of(rows[0][1])
    if all(row[1] == rows[0][1] for row in rows):
        wanted = set(plan.key_names)
        return block_of(
            rows,
            [c for c in plan.columns if c.target in wanted],
            [constant for constant in plan.origin if constant[0] in wanted],
        )
    parts: dict[int, list[Change]] = {}
    for row in rows:
        parts.setdefault(row[1], []).append(row)
    blocks = [_deletes(part, plan_of) for part in parts.values()]
    order = blocks[0].names
    merged: list[list[Any]] = [[] for _ in order]
    for block in blocks:
        for number, name in enumerate(order):
            merged[number].extend(block.values[block.names.index(name)])
    nulls = tuple(None in values for values in merged)
    return Block(order, blocks[0].forms, tuple(merged), nulls, len(rows))


_number, _is_deleted = itemgetter(1), itemgetter(3)
