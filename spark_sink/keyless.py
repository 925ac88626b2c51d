"""Rows of shards without a primary key: what a batch of changes leaves of each whole row. Pure.

Two equal rows cannot be told apart, on the shard and in the target alike, so it does not matter
which of them a change takes: what counts is how many there are. The changes of a batch are summed
up per row image; a row that came and went leaves nothing, and the order in which the rest is
written does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

from msgspec.json import Encoder

from .row_blocks import Block, Change, block_of
from .segment_plan import SegmentPlan


@dataclass(frozen=True, slots=True)
class KeylessBatch:
    """Whole rows to take away and to add; no row is in both.

    Attributes:
        removed: Distinct rows; ``removed_counts`` says how many of each there must be, at least.
        types: The shard's type name of each column of ``removed``.
        added: As many times as they come.
    """

    removed: Block | None
    removed_counts: tuple[int, ...]
    types: tuple[str, ...]
    added: Block | None


@dataclass(slots=True)
class _Sum:
    offset: int
    image: dict[str, Any]
    count: int = 0


@dataclass(slots=True)
class KeylessChanges:
    """Sums up the changes of one segment; ``number`` is the segment's."""

    number: int
    _sums: dict[bytes, _Sum] = field(default_factory=dict)

    @classmethod
    def of_all(cls, changes: Sequence[KeylessChanges]) -> KeylessChanges:
        """The sum of changes of one segment, one at least."""
        total = cls(changes[0].number)
        for some in changes:
            for key, row in some._sums.items():
                known = total._sums.setdefault(key, _Sum(row.offset, row.image))
                known.count += row.count
        return total

    def add(self, offset: int, before: dict[str, Any] | None, after: dict[str, Any] | None) -> None:
        """Take a change: the row it took away, the row it left behind."""
        for image, count in ((before, -1), (after, 1)):
            if image is not None:
                key = _encode(image)
                known = self._sums.setdefault(key, _Sum(offset, image))
                known.count += count

    def counts(self) -> tuple[int, int]:
        """Rows to add, rows to remove."""
        return sum(s.count for s in self._left(1)), -sum(s.count for s in self._left(-1))

    def first_offset(self) -> int:
        """Of the first change."""
        return min(s.offset for s in self._sums.values())

    def batch(self, plan: SegmentPlan) -> KeylessBatch:
        """What has to be written; raises ``RefusedRow`` when a value cannot be converted."""
        removed = [self._change(s, plan, removed=True) for s in self._left(-1)]
        added = [
            change
            for s in self._left(1)
            for change in repeat(self._change(s, plan, removed=False), s.count)
        ]
        return KeylessBatch(
            block_of(removed, plan.columns, plan.origin) if removed else None,
            tuple(-s.count for s in self._left(-1)),
            (*(column.kind for column in plan.columns), *("varchar" for _ in plan.origin)),
            block_of(added, plan.columns, (*plan.origin, *plan.fills)) if added else None,
        )

    def _change(self, row: _Sum, plan: SegmentPlan, *, removed: bool) -> Change:
        image = plan.decoder.make(*map(row.image.__getitem__, plan.names))
        return row.offset, self.number, image, removed

    def _left(self, sign: int) -> Iterator[_Sum]:
        return (s for s in self._sums.values() if s.count * sign > 0)


_encode: Callable[[Any], bytes] = Encoder(order="sorted").encode
