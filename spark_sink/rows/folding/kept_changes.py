"""The changes that a fold keeps, in groups that are written one after another. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import astuple

from .keyless import KeylessBatch, KeylessChanges
from .line_maker import LineMaker
from .row_batches import Batch, Changes, batch_of
from .row_blocks import Change
from .segment_plan import SegmentPlan
from .segment_plans import SegmentPlans


class KeptChanges:
    """The groups of one fold. In a group either all rows have comparable keys, or none has a key.

    Args:
        plans: Of the segments that the groups' numbers stand for.
        maker: Of lines of many rows, for a target that loads them.

    Attributes:
        is_unfiltered: Whether the stream's condition was not yet applied to some rows.
    """

    def __init__(self, plans: SegmentPlans, maker: LineMaker | None) -> None:
        self._plans = plans
        self._maker = maker
        self._groups: list[Changes | KeylessChanges] = []
        self._signature: tuple[object, ...] = ()
        self.is_unfiltered = False

    def keyed(self, plan: SegmentPlan) -> Changes:
        """The group for rows of a segment with a primary key: the last one, or a new one."""
        last = self._groups[-1] if self._groups else None
        if not isinstance(last, Changes) or plan.signature != self._signature:
            last = Changes()
            self._groups.append(last)
            self._signature = plan.signature
        return last

    def keyless(self, number: int) -> KeylessChanges:
        """The group for rows of a segment without a primary key: the last one, or a new one."""
        last = self._groups[-1] if self._groups else None
        if not isinstance(last, KeylessChanges) or last.number != number:
            last = KeylessChanges(number)
            self._groups.append(last)
        return last

    def counts(self) -> tuple[int, int]:
        """How many rows have to be written, and how many have to be deleted."""
        self._filter()
        counts = [group.counts() for group in self._groups]
        return sum(count[0] for count in counts), sum(count[1] for count in counts)

    def batches(self, others: Sequence[KeptChanges] = ()) -> list[Batch | KeylessBatch]:
        """What has to be written, in order.

        Args:
            others: Of other partitions of the stream; no key is in two of them.

        Raises:
            RefusedRow: A value cannot be converted.
        """
        kept = [some for some in (self, *others) if some._groups]
        for some in kept:
            some._filter()
        groups = [group for some in kept for group in some._groups]
        keyless = [group for group in groups if isinstance(group, KeylessChanges)]
        if len(kept) > 1 and len(keyless) == len(groups):
            return self._summed_up(keyless)
        plan_of = self._plans.plan_of
        changes = [some._groups[0] for some in kept if len(some._groups) == 1]
        keyed = [group for group in changes if isinstance(group, Changes)]
        if len(keyed) == len(kept) and len({some._signature for some in kept}) == 1:
            # All partitions together go through the target's primary key once.
            return [batch_of(keyed, plan_of, self._maker)]
        return [
            group.batch(plan_of(group.number))
            if isinstance(group, KeylessChanges)
            else batch_of([group], plan_of, self._maker)
            for group in groups
        ]

    def _summed_up(self, changes: Sequence[KeylessChanges]) -> list[Batch | KeylessBatch]:
        """The sums over several partitions: a row added in one may be removed in another."""
        count, plan_of = self._plans.count, self._plans.plan_of
        numbers = sorted({some.number for some in changes}, key=lambda n: (n % count, n))
        return [
            KeylessChanges.of_all([some for some in changes if some.number == number]).batch(
                plan_of(number)
            )
            for number in numbers
        ]

    def first_offsets(self) -> list[int]:
        """For each batch of ``batches``: the lowest offset of the changes in it."""
        return [group.first_offset() for group in self._groups]

    def one_by_one(self) -> Iterator[tuple[int, Batch]]:
        """Each change of a key by itself, with its offset: to find the one that is refused.

        Raises:
            RefusedRow: As ``batches``.
        """
        self._filter()
        for group in self._groups:
            if isinstance(group, Changes):
                for key, change in sorted(group.items(), key=_offset):
                    yield change[0], batch_of([Changes({key: change})], self._plans.plan_of)

    def _filter(self) -> None:
        """Turn writes of rows that do not fulfil the stream's condition into deletes."""
        if not self.is_unfiltered:
            return
        self.is_unfiltered = False
        for group in self._groups:
            if isinstance(group, Changes):
                for key, (offset, number, image, deleted) in group.items():
                    if not deleted and not self._plans.is_wanted(number, astuple(image)):
                        group[key] = (offset, number, image, True)


def _offset(item: tuple[Any, Change]) -> int:
    return item[1][0]
