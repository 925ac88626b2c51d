"""Statements that change the rows of one shard in the target, where no row event does. Pure.

The sink repeats such a statement with a LIMIT until it changes no row any more: each one has to
find fewer rows the next time, and to be right when it is begun anew after a crash.
"""

from __future__ import annotations

from collections.abc import Sequence

from .events import StatementKind, TargetStatement
from .model import Column
from .names import ShardId, TargetTable, quote_identifier
from .origin import Origin
from .render.mysql import string_literal

_AS_NUMBERS = frozenset(("decimal", "bit"))
_AS_TEXT = frozenset(("date", "time", "datetime"))
_VALUE = "value "


def removal(target: TargetTable, shard: ShardId, origin: Origin, reason: str) -> TargetStatement:
    """Deletes the rows of a shard, which the origin columns tell from those of others."""
    sql = deletion(target, shard, origin)
    return TargetStatement(sql, StatementKind.ROWS, reason, (_subject(shard),), shard=shard)


def deletion(target: TargetTable, shard: ShardId, origin: Origin) -> str:
    """The SQL that deletes the rows of a shard."""
    return f"DELETE FROM {target.sql} WHERE {origin.condition(shard)}"


def filling(
    target: TargetTable,
    shard: ShardId,
    origin: Origin,
    values: Sequence[tuple[Column, str]],
    reason: str,
) -> TargetStatement:
    """Gives the rows of a shard one value per column.

    Args:
        target: The merged table.
        shard: Whose rows.
        origin: The target's origin columns; they tell shards apart.
        values: Columns of the target, one at least, and their SQL literals (``value_literal``).
        reason: For people.
    """
    names = [quote_identifier(column.name) for column, _ in values]
    there = " AND ".join(_has(column, literal) for column, literal in values)
    changes = ", ".join(
        f"{name} = {literal}" for name, (_, literal) in zip(names, values, strict=True)
    )
    sql = f"UPDATE {target.sql} SET {changes} WHERE {origin.condition(shard)} AND NOT ({there})"
    subjects = (*(f"column:{column.name.lower()}" for column, _ in values), _subject(shard))
    return TargetStatement(sql, StatementKind.ROWS, reason, subjects, shard=shard)


def value_literal(fill: str, column: Column) -> str | None:
    """The SQL literal of a fill (``row_fills.fill_text``); None where SQL may not find it again.

    Args:
        fill: What rows hold.
        column: Of the target.
    """
    kind = column.type
    if fill == "NULL":
        return fill if column.nullable else None
    if not fill.startswith(_VALUE):
        return None
    text = fill.removeprefix(_VALUE)
    if kind.is_integer or kind.name in _AS_NUMBERS:
        return text
    if kind.name in _AS_TEXT or kind.is_string or kind.name in ("enum", "set"):
        return string_literal(text)
    return None


def _has(column: Column, literal: str) -> str:
    """The condition that a row has the value already, to the byte."""
    name = quote_identifier(column.name)
    if literal == "NULL" or column.type.is_integer or column.type.name in _AS_NUMBERS | _AS_TEXT:
        return f"{name} <=> {literal}"
    return f"{_bytes(name)} <=> {_bytes(literal)}"


def _bytes(text: str) -> str:
    return f"CAST(CONVERT({text} USING utf8mb4) AS BINARY)"


def _subject(shard: ShardId) -> str:
    return f"rows:{shard}"
