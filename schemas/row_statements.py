"""Statements that change the rows of one shard in the target, where no row event does. Pure.

The sink may repeat such a statement, with a LIMIT, until it changes no row any more: each one has
to find fewer rows the next time, and to be right when it is begun anew after a crash.
"""

from __future__ import annotations

from collections.abc import Sequence

from .events import StatementKind, TargetStatement
from .model import Column
from .names import ShardId, TargetTable, quote_identifier
from .origin import Origin
from .render.dialect import Dialect


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
    *,
    dialect: Dialect,
) -> TargetStatement:
    """Gives the rows of a shard one value per column.

    Args:
        target: The merged table.
        shard: Whose rows.
        origin: The target's origin columns; they tell shards apart.
        values: Columns of the target, one at least, and their SQL literals (``Dialect.row_value``).
        reason: For people.
        dialect: The target's kind and version.
    """
    names = [quote_identifier(column.name) for column, _ in values]
    there = " AND ".join(dialect.has_value(column, literal) for column, literal in values)
    changes = ", ".join(
        f"{name} = {literal}" for name, (_, literal) in zip(names, values, strict=True)
    )
    sql = f"UPDATE {target.sql} SET {changes} WHERE {origin.condition(shard)} AND NOT ({there})"
    subjects = (*(f"column:{column.name.lower()}" for column, _ in values), _subject(shard))
    return TargetStatement(sql, StatementKind.ROWS, reason, subjects, shard=shard)


def _subject(shard: ShardId) -> str:
    return f"rows:{shard}"
