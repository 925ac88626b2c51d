"""The plans of a stream's segments, each made when the first row needs it. Pure.

A *number* encodes a segment and the two other things that its images depend on: which of two
spellings the column names have, and the source's epoch. With n segments, number k means segment
k % n, spelling (k // n) % 2 and epoch k // (2 n).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shardmerge.schemas.records.decisions import Binding
from shardmerge.spark_sink.planning.ranges import Segment, ShardStream
from shardmerge.spark_sink.rows.decoding.row_format import RowFormat
from shardmerge.spark_sink.rows.values.column_values import UnfitValue

from .segment_plan import LimitsOf, SegmentPlan, plan_segment


class SegmentPlans:
    """Makes plans, and keeps them.

    Args:
        stream: The stream that has the segments.
        bindings: Identity → target column.
        rows: The records' format.
        limits_of: See ``plan_segment``.

    Attributes:
        count: Number of segments.
    """

    def __init__(
        self,
        stream: ShardStream,
        bindings: Mapping[str, Binding],
        rows: RowFormat,
        limits_of: LimitsOf | None = None,
    ) -> None:
        self.count = len(stream.segments)
        self._stream = stream
        self._bindings = bindings
        self._format = rows
        self._limits_of = limits_of
        self._plans: dict[int, SegmentPlan] = {}

    def segment_of(self, number: int) -> Segment:
        """The segment that a number stands for."""
        return self._stream.segments[number % self.count]

    def plan_of(self, number: int) -> SegmentPlan:
        """The plan that a number stands for."""
        plan = self._plans.get(number)
        if plan is None:
            variant, segment = divmod(number, self.count)
            epoch, naming = divmod(variant, 2)
            plan = self._plans[number] = plan_segment(
                self._stream,
                self._stream.segments[segment],
                self._bindings,
                naming,
                self._format,
                epoch=epoch,
                limits_of=self._limits_of,
            )
        return plan

    def respelled(self, number: int) -> int:
        """The number of the same segment and epoch with the other spelling of names."""
        variant, segment = divmod(number, self.count)
        return (variant ^ 1) * self.count + segment

    def is_wanted(self, number: int, values: Sequence[Any]) -> bool:
        """Whether a row with these values fulfils the stream's condition."""
        matches = self.plan_of(number).matches
        try:
            return matches is None or matches(values) is True
        except (UnfitValue, TypeError):
            return True  # the row is refused when it is converted, with the reason
