"""What a target that loads lines gives to the fold: the makers of these lines. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from shardmerge.spark_sink.rows.values.column_values import ColumnValues
from shardmerge.spark_sink.rows.values.forms import Form

from .segment_plan import SegmentPlan


@dataclass(frozen=True, slots=True)
class TakenRecords:
    """What was made of the first records of several.

    Attributes:
        keys: The rows' primary keys, as ``SegmentPlan.key_of`` gives them, one for each record.
        lines: The rows, one for each record; empty for a deleted one.
        operations: Debezium's letters, one for each record.
        refused: Whether the next record has to be examined. If not, there was no room for it.
    """

    keys: Sequence[Any]
    lines: Sequence[bytes]
    operations: bytes
    refused: bool


class RecordLines(Protocol):
    """Makes lines straight from the records of one segment, without values in between.

    It takes only what is certain, so the result is that of ``RowDecoder`` and
    ``LineMaker.of_values``.
    """

    def take(
        self, values: Sequence[bytes], file: str, low: float, high: float, *, wrapped: bool
    ) -> TakenRecords:
        """Take records up to the first that has to be examined; maybe none.

        All records with ``op`` r (``READ``) that are taken have the same position.

        Args:
            values: Of the records, without tombstones.
            file: The binlog file in which their rows must stand.
            low: The rows' offsets in the file are greater.
            high: The rows' offsets in the file are less.
            wrapped: Whether the records have Connect's embedded schema.
        """
        ...


class LineMaker(Protocol):
    """Makes lines as a target loads them."""

    def of_values(
        self, forms: Sequence[Form], columns: Sequence[ColumnValues], nullable: Sequence[bool]
    ) -> list[bytes]:
        """Lines of rows, at least one.

        Args:
            forms: Of each column.
            columns: The values of each column.
            nullable: For each column whether there are NULLs.
        """
        ...

    def of_records(self, plan: SegmentPlan) -> RecordLines | None:
        """The maker for a segment's records; None when they have to become values."""
        ...
