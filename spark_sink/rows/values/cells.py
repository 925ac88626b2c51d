"""Cells, the text form of a column's values, and what all conversions into them share. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from shardmerge.schemas.model.errors import SourceError

Cells: TypeAlias = list[str | None]
"""Converted values of one column, in row order; None is NULL."""


class UnfitValue(SourceError):
    """A value is not what Debezium emits for a column of its type."""


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


def around_nulls(convert: Callable[[Sequence[Any], bool], Cells], values: Sequence[Any]) -> Cells:
    """The cells of values, some of which are None; ``convert`` gets only the others."""
    present = [v for v in values if v is not None]
    cells = iter(convert(present, False) if present else ())
    return [None if v is None else next(cells) for v in values]
