"""Rows as neutral values, column by column, and as lines. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, TypeAlias

from msgspec.structs import astuple

from shardmerge.spark_sink.rows.values.column_values import ColumnValues, UnfitValue
from shardmerge.spark_sink.rows.values.constant_values import ConstantValue
from shardmerge.spark_sink.rows.values.forms import Form

from .segment_plan import Refusal, WrittenColumn


class RefusedRow(Exception):
    """The row at ``offset`` cannot be applied; the rows before it can."""

    def __init__(self, offset: int, refusal: Refusal) -> None:
        super().__init__(offset, refusal)
        self.offset = offset
        self.refusal = refusal


Change: TypeAlias = tuple[int, int, Any, bool]
"""Offset, number of the segment, image (see ``RowDecoder``), whether the row was deleted."""


@dataclass(frozen=True, slots=True)
class Block:
    """Rows with the same target columns, column by column.

    Attributes:
        names: Target columns; ``forms`` and ``values`` follow their order.
        values: One list per column, all of length ``rows``. If there are ``lines``, only the
            primary key's columns have values; the other lists are empty.
        has_nulls: For each column whether there is a NULL; always False if there are ``lines``.
        lines: The rows as ``LineMaker`` writes them; empty if they were not requested, or if
            there are few rows.
    """

    names: tuple[str, ...]
    forms: tuple[Form, ...]
    values: tuple[ColumnValues, ...]
    has_nulls: tuple[bool, ...]
    rows: int
    lines: Sequence[bytes] = ()


def block_of(
    rows: Sequence[Change],
    columns: Sequence[WrittenColumn],
    constants: Sequence[tuple[str, ConstantValue]] = (),
) -> Block:
    """The neutral values of rows; at least one row.

    Args:
        rows: In the order in which they are written.
        columns: The target's columns that get values from the rows' images.
        constants: Further columns, with the value that every row has there.

    Raises:
        RefusedRow: A value cannot be converted; names the refused row with the lowest offset.
    """
    found: list[ColumnValues] = []
    has_nulls: list[bool] = []
    images = tuple(zip(*(astuple(row[2]) for row in rows), strict=True))
    for column in columns:
        try:
            values, has_null = column.reader.read_column(images[column.place])
        except UnfitValue:
            raise _first_refused(rows, columns) from None
        found.append(values)
        has_nulls.append(has_null)
    for _, constant in constants:
        found.append([constant.value] * len(rows))
        has_nulls.append(constant.value is None)
    names, forms = names_and_forms(columns, constants)
    return Block(names, forms, tuple(found), tuple(has_nulls), len(rows))


def names_and_forms(
    columns: Sequence[WrittenColumn], constants: Sequence[tuple[str, ConstantValue]]
) -> tuple[tuple[str, ...], tuple[Form, ...]]:
    """The names and forms of a block, in its order: columns, then constants."""
    return (
        (*(c.target for c in columns), *(name for name, _ in constants)),
        (*(c.reader.form for c in columns), *(constant.form for _, constant in constants)),
    )


def _first_refused(rows: Sequence[Change], columns: Sequence[WrittenColumn]) -> RefusedRow:
    """The error for the row with the lowest offset among those with a value that does not fit."""
    for offset, _, image, _ in sorted(rows, key=_first):
        values = astuple(image)
        for column in columns:
            try:
                column.reader.read([values[column.place]])
            except UnfitValue as error:
                return RefusedRow(
                    offset,
                    Refusal(
                        f"column {column.image}: {error.message}",
                        error.hint
                        or "check the connector's value modes and the shard's tracked schema",
                        code=error.code,
                    ),
                )
    raise AssertionError("a column was refused, none of its values is")


_first = itemgetter(0)
