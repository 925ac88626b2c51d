"""The values of one column, and what all conversions of them share. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from shardmerge.schemas.model.errors import SourceError

ColumnValues: TypeAlias = Sequence[Any]
"""Neutral values of one column (``forms``), in row order; None is NULL."""
Cells: TypeAlias = list[str | None]
"""The same values as texts for one kind of target."""


class UnfitValue(SourceError):
    """A value is none that Debezium emits for its column's type, or the target cannot hold it."""


def joined_alike(values: Sequence[str], shape: re.Pattern[str], complaint: str) -> str:
    """Check the shape of values, and join them by commas.

    The shape of a value is its text with every digit replaced by 0. The values of a column have
    few shapes, so checking the shapes is quicker than checking every value.

    Args:
        values: Without commas.
        shape: Matches every shape that is allowed.
        complaint: What the error says after a value of another shape.

    Raises:
        UnfitValue: A value has another shape.
    """
    joined = ",".join(values)
    shapes = joined.translate(_DIGITS_TO_0).split(",")
    if len(shapes) != len(values) or not all(map(shape.fullmatch, set(shapes))):
        bad = next(v for v in values if not shape.fullmatch(v.translate(_DIGITS_TO_0)))
        raise UnfitValue(f"{bad[:60]!r} {complaint}", code="SM-1509")
    return joined


_DIGITS_TO_0 = str.maketrans("123456789", "000000000")


def around_nulls(
    convert: Callable[[ColumnValues], Sequence[Any]], values: ColumnValues
) -> list[Any]:
    """Convert values of which some may be None: ``convert`` gets only those that are not None."""
    present = [v for v in values if v is not None]
    found = iter(convert(present) if present else ())
    return [None if v is None else next(found) for v in values]
