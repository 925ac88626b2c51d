"""Rows of shards without a primary key: sums up a batch's changes for each whole row. Pure.

Equal rows cannot be told apart, neither on the shard nor in the target. So it does not matter which
of them a change removes; only their number counts. The changes of a batch are summed up per row
image. A row that was added and removed leaves nothing, and the rest can be written in any order.

If the target has a column for it, each added row gets the place that it came from as its primary
key (``place_of``). A removal does not say which of several equal rows it means: any one is removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Any

from msgspec.json import Encoder

from shardmerge.schemas.model.names import ShardId
from shardmerge.spark_sink.rows.decoding.row_envelope import READ, RowRecord
from shardmerge.spark_sink.rows.values.forms import Form

from .row_blocks import Block, Change, block_of
from .segment_plan import SegmentPlan


@dataclass(frozen=True, slots=True)
class KeylessBatch:
    """Whole rows to take away and to add; no row is in both.

    Attributes:
        removed: Distinct rows; ``removed_counts`` says how many of each are removed, so the target
            must have at least as many.
        types: The shard's type name of each column of ``removed``.
        added: Each row as many times as it is added.
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
    places: list[str] = field(default_factory=list)


@dataclass(slots=True)
class KeylessChanges:
    """Sums up the changes of one segment; ``number`` is the segment's."""

    number: int
    _sums: dict[bytes, _Sum] = field(default_factory=dict)

    @classmethod
    def of_all(cls, changes: Sequence[KeylessChanges]) -> KeylessChanges:
        """The sum of several changes of one segment; at least one."""
        total = cls(changes[0].number)
        for some in changes:
            for key, row in some._sums.items():
                known = total._sums.setdefault(key, _Sum(row.offset, row.image))
                known.count += row.count
                known.places += row.places
        return total

    def add(
        self,
        offset: int,
        before: dict[str, Any] | None,
        after: dict[str, Any] | None,
        place: str = "",
    ) -> None:
        """Take a change: the row that it removed, the row that it added, and that row's place."""
        for image, count in ((before, -1), (after, 1)):
            if image is not None:
                key = _encode(image)
                known = self._sums.setdefault(key, _Sum(offset, image))
                known.count += count
                if place and count > 0:
                    known.places.append(place)

    def counts(self) -> tuple[int, int]:
        """How many rows to add, and how many to remove."""
        return sum(s.count for s in self._remaining(1)), -sum(s.count for s in self._remaining(-1))

    def first_offset(self) -> int:
        """The offset of the first change."""
        return min(s.offset for s in self._sums.values())

    def batch(self, plan: SegmentPlan) -> KeylessBatch:
        """What has to be written; raises ``RefusedRow`` when a value cannot be converted."""
        self._cancel(plan)
        removed = [self._change(s, plan, removed=True) for s in self._remaining(-1)]
        added = [
            change
            for s in self._remaining(1)
            for change in repeat(self._change(s, plan, removed=False), s.count)
        ]
        return KeylessBatch(
            block_of(removed, plan.columns, plan.origin) if removed else None,
            tuple(-s.count for s in self._remaining(-1)),
            (*(column.type.name for column in plan.columns), *("varchar" for _ in plan.origin)),
            self._placed(block_of(added, plan.columns, (*plan.origin, *plan.added)), plan.position)
            if added
            else None,
        )

    def _cancel(self, plan: SegmentPlan) -> None:
        """Cancel removed rows against added rows whose images differ but whose values are equal.

        A snapshot and the binlog may write one value in two ways; conversion gives one value.
        """
        removed, added = [*self._remaining(-1)], [*self._remaining(1)]
        if not removed or not added:
            return
        known = dict(zip(self._rows(added, plan), added, strict=True))
        for row, gone in zip(self._rows(removed, plan), removed, strict=True):
            if (come := known.get(row)) is not None:
                both = min(-gone.count, come.count)
                gone.count += both
                come.count -= both

    def _rows(self, sums: Sequence[_Sum], plan: SegmentPlan) -> Iterator[tuple[Any, ...]]:
        block = block_of([self._change(s, plan, removed=True) for s in sums], plan.columns, ())
        # 0.0 and -0.0 are equal numbers and different values.
        columns = [
            map(repr, values) if form is Form.FLOAT else values
            for form, values in zip(block.forms, block.values, strict=True)
        ]
        return zip(*columns, strict=True)

    def _placed(self, block: Block, column: str) -> Block:
        """The added rows, each with its place, if the target has a column for it."""
        if not column:
            return block
        places = [place for s in self._remaining(1) for place in s.places[-s.count :]]
        return replace(
            block,
            names=(*block.names, column),
            forms=(*block.forms, Form.TEXT),
            values=(*block.values, places),
            has_nulls=(*block.has_nulls, False),
        )

    def _change(self, row: _Sum, plan: SegmentPlan, *, removed: bool) -> Change:
        image = plan.decoder.make(*map(row.image.__getitem__, plan.names))
        return row.offset, self.number, image, removed

    def _remaining(self, sign: int) -> Iterator[_Sum]:
        return (s for s in self._sums.values() if s.count * sign > 0)


_encode: Callable[[Any], bytes] = Encoder(order="sorted").encode


def place_of(record: RowRecord, shard: ShardId, partition: int, offset: int) -> str:
    """The place that a row came from; no two rows of any shards have the same place.

    It is the source's name and the row's binlog position. All rows of a snapshot have the same
    position, so for these the table, the partition and the offset are added.
    """
    place = f"{shard.source}/{record.position}"
    if record.op != READ:
        return place
    return f"{place} {shard.database}.{shard.table}:{partition}:{offset}"
