"""Ranges of primary keys, and their conditions in SQL. Pure.

Boundaries b1, …, bn cut a table into n + 1 ranges: up to b1, behind b1 up to b2, …, behind bn. The
first and the last one are open, so rows with keys beyond the boundaries belong to a range, too.

Every row belongs to a range, whatever the boundaries are. Take the first boundary that a row is not
behind: the row belongs to the range up to it. A row that is behind all boundaries belongs to the
last range. This does not need sorted boundaries. It needs only that ``behind`` and ``up_to`` are
opposites for every row, as they are for values without NULL. So if the server compares a boundary
in an unforeseen way, a range becomes large, or two ranges share rows. No row is missed.

Conditions are written without row constructors: MySQL uses no index for ``(a, b) > (1, 2)``.

Source: MySQL Reference Manual, "Row Constructor Expression Optimization".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .key_order import Boundary, KeyColumn

_DENSE = 4
"""An integer key is cut evenly if there is at least one row for this many of its numbers."""


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The keys behind ``low``, up to ``high`` inclusive; None where the range is open."""

    low: Boundary | None = None
    high: Boundary | None = None

    def cut(self, boundary: Boundary) -> tuple[KeyRange, KeyRange]:
        """The two parts that a boundary makes of it."""
        return KeyRange(self.low, boundary), KeyRange(boundary, self.high)


def ranges(boundaries: Sequence[Boundary]) -> tuple[KeyRange, ...]:
    """The ranges that boundaries cut a table into; without boundaries one with two open ends."""
    edges = (None, *boundaries, None)
    return tuple(map(KeyRange, edges[:-1], edges[1:]))


def condition(key: Sequence[KeyColumn], of: KeyRange) -> str:
    """The SQL condition of a range; "" for a range without ends."""
    parts = []
    if of.low is not None:
        parts.append(behind(key, of.low))
    if of.high is not None:
        parts.append(up_to(key, of.high))
    return " AND ".join(f"({part})" for part in parts)


def behind(key: Sequence[KeyColumn], boundary: Boundary) -> str:
    """The SQL condition that a key follows a boundary."""
    return _compared(key, boundary, last=">", before=">")


def up_to(key: Sequence[KeyColumn], boundary: Boundary) -> str:
    """The SQL condition that a key precedes a boundary, or is equal to it."""
    return _compared(key, boundary, last="<=", before="<")


def _compared(key: Sequence[KeyColumn], boundary: Boundary, *, last: str, before: str) -> str:
    column, *rest = key
    value = column.literal(boundary[0])
    if not rest:
        return f"{column.compared} {_turned(column, last)} {value}"
    differs = f"{column.compared} {_turned(column, before)} {value}"
    deeper = _compared(rest, boundary[1:], last=last, before=before)
    # The first condition follows from the second one. Without it MySQL may not find the range.
    return (
        f"{column.compared} {_turned(column, before)}= {value} AND "
        f"({differs} OR ({column.compared} = {value} AND {deeper}))"
    )


def _turned(column: KeyColumn, sign: str) -> str:
    """A sign of comparison; reversed if the key has the column in descending order."""
    if not column.descending:
        return sign
    return sign.replace("<", "\0").replace(">", "<").replace("\0", ">")


def even_boundaries(
    least: int, greatest: int, rows: int, rows_a_chunk: int
) -> tuple[Boundary, ...] | None:
    """Boundaries of a key of one integer, without reading the key's index.

    Args:
        least: The least key.
        greatest: The greatest key.
        rows: About how many rows the table has.
        rows_a_chunk: About how many rows a range may have.

    Returns:
        None if the keys lie so far apart that most ranges would be nearly empty. Then the key's
        index is read (``chunk_queries.next_boundary``).
    """
    span = greatest - least + 1
    if span <= rows_a_chunk:
        return ()
    if rows * _DENSE < span:
        return None
    # If all of its numbers are taken, a range has at most _DENSE times the rows that it may have.
    # If the server's estimate is too high, ranges are as narrow as for keys without gaps.
    width = span * rows_a_chunk // max(rows, 1)
    width = min(max(width, rows_a_chunk), rows_a_chunk * _DENSE)
    return tuple((str(edge),) for edge in range(least + width - 1, greatest, width))
