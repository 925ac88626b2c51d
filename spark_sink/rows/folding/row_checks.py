"""Checks whether a row can be applied by the plan of its segment. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shardmerge.spark_sink.planning.ranges import ShardStream
from shardmerge.spark_sink.rows.decoding.row_envelope import (
    DELETE,
    READ,
    TRUNCATE,
    UPDATE,
    UPSERTS,
    RowRecord,
    shard_of,
)

from .row_refusals import SPREAD, UNKNOWN, WITHOUT_BEFORE, differing
from .segment_locator import SegmentLocator
from .segment_plan import Refusal
from .segment_plans import SegmentPlans


class RowChecks:
    """Checks rows part by part; a row like the one before it does not come here (``row_fold``).

    Args:
        stream: The stream of the rows.
        plans: Of its segments.
        refusals: Rows known not to be applicable, by offset.
    """

    def __init__(
        self, stream: ShardStream, plans: SegmentPlans, refusals: Mapping[int, Refusal]
    ) -> None:
        self._stream = stream
        self._plans = plans
        self._refusals = refusals
        self._identity = (stream.shard.source, stream.shard.database, stream.shard.table)

    def names_another(self, source: Mapping[str, Any]) -> bool:
        """Whether a record's source block names another shard than the stream's."""
        return (source.get("name"), source.get("db"), source.get("table")) != self._identity

    def refusal_of(self, offset: int, record: RowRecord, at: SegmentLocator) -> Refusal | None:
        """Why a row cannot be applied; None when it can.

        Args:
            offset: Of the record.
            record: The row.
            at: Has the row's segment; its number is changed if the row uses the other spelling of
                column names.
        """
        plan, source = self._plans.plan_of(at.number), record.source
        if self._refusals and offset in self._refusals:
            return self._refusals[offset]
        if self.names_another(source):
            return Refusal(
                f"the row belongs to {shard_of(source)}, its topic to {self._stream.shard}",
                "two tables share a topic name: rename one, or route them to topics of their own",
                code="SM-1501",
            )
        if plan.refusal is not None:
            return plan.refusal
        image = record.image
        if record.op in UPSERTS or record.op == DELETE:
            if not isinstance(image, dict):
                return Refusal(
                    f"operation {record.op!r} without a row image",
                    "set binlog_row_image=FULL",
                    code="SM-1502",
                )
            if image.keys() != plan.image:
                other = self._plans.respelled(at.number)
                if image.keys() != self._plans.plan_of(other).image:
                    return differing(image, plan.image)
                at.number = other
            return self._keyless(record, at.number) if plan.key_of is None else None
        if record.op == TRUNCATE:
            return None
        return Refusal(
            f"operation {record.op!r} is not known", "see Debezium's release notes", code="SM-1503"
        )

    def _keyless(self, record: RowRecord, number: int) -> Refusal | None:
        """The same for a row of a shard without a primary key."""
        if self._stream.undoes:
            return None if record.op == READ else UNKNOWN
        if self._stream.partitions > 1 and not self._stream.ordered:
            return SPREAD
        if record.op != UPDATE:
            return None
        if not isinstance(record.before, dict):
            return WITHOUT_BEFORE
        image = self._plans.plan_of(number).image
        return differing(record.before, image) if record.before.keys() != image else None
