"""Statements that change rows in the target where no row event does. Pure.

Such a statement changes rows of one shard or of all shards. A statement for all shards is a debt:
it runs when older rows are applied, and no row waits for it.

The sink may repeat such a statement, with a LIMIT, until it changes no row. So each statement must
find fewer rows the next time, and must be idempotent: after a crash it is executed again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from shardmerge.schemas.model.actions import (
    ColumnLiteral,
    ColumnText,
    DefaultFill,
    RowAction,
    RowFill,
    RowRemoval,
    ValueMove,
)
from shardmerge.schemas.model.coded_text import CodedText
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.names import ShardId, TargetTable, quote_identifier
from shardmerge.schemas.model.origin import Origin
from shardmerge.schemas.model.tables import Column
from shardmerge.schemas.records.decisions import StatementKind, TargetStatement
from shardmerge.schemas.target.dialects.dialect import Dialect


def removal(target: TargetTable, shard: ShardId, origin: Origin, why: CodedText) -> TargetStatement:
    """Deletes the rows of a shard; the origin columns identify them."""
    return replace(deletion(target, (shard,), origin, why), shard=shard)


def deletion(
    target: TargetTable, shards: Collection[ShardId], origin: Origin, why: CodedText
) -> TargetStatement:
    """Deletes the rows of some shards, at least one."""
    found = [origin.condition(shard) for shard in shards]
    condition = found[0] if len(found) == 1 else " OR ".join(f"({text})" for text in found)
    return TargetStatement(
        f"DELETE FROM {target.sql} WHERE {condition}",
        StatementKind.ROWS,
        why.text,
        tuple(map(_subject, shards)),
        actions=(RowRemoval(tuple(_rows_of(shard, origin) for shard in shards)),),
        code=why.code,
    )


def clearing(target: TargetTable, why: CodedText) -> TargetStatement:
    """Deletes all rows of a target."""
    sql = f"DELETE FROM {target.sql}"
    action = RowRemoval(())
    return _statement(sql, why, ("table",), action)


def filling(
    target: TargetTable,
    shard: ShardId,
    origin: Origin,
    values: Sequence[tuple[Column, str]],
    why: CodedText,
    *,
    dialect: Dialect,
    columns: Sequence[Column] = (),
) -> TargetStatement:
    """Gives the rows of a shard one value per column.

    Args:
        target: The merged table.
        shard: The shard whose rows change.
        origin: The target's origin columns; they must tell shards apart.
        values: Columns of the target, at least one, and their SQL literals (``Dialect.row_value``).
        why: Why, for people.
        dialect: The target's kind and version.
        columns: All columns of the target; those not in ``values`` do not change.
    """
    given = {column.name for column, _ in values}
    names = [quote_identifier(column.name) for column, _ in values]
    there = " AND ".join(dialect.has_value(column, literal) for column, literal in values)
    changes = [f"{name} = {literal}" for name, (_, literal) in zip(names, values, strict=True)]
    changes += _unchanged([column for column in columns if column.name not in given])
    sql = (
        f"UPDATE {target.sql} SET {', '.join(changes)} WHERE {origin.condition(shard)} "
        f"AND NOT ({there})"
    )
    subjects = (*(f"column:{column.name.lower()}" for column, _ in values), _subject(shard))
    literals = tuple(ColumnLiteral(column.name, literal) for column, literal in values)
    action = RowFill(_rows_of(shard, origin), literals)
    return replace(_statement(sql, why, subjects, action), shard=shard)


def copying(
    target: TargetTable, gone: Column, kept: Column, others: Sequence[Column], *, overwrites: bool
) -> TargetStatement:
    """Copies the values of a column that is dropped to the one that stays, in rows of all shards.

    Args:
        target: The merged table.
        gone: The column that is dropped; a row that holds NULL in it does not change.
        kept: The column that stays and gets the values.
        others: The target's other columns; none changes.
        overwrites: Whether rows that already have a value in ``kept`` change too. Then ``gone`` is
            set to NULL, so that the repeated statement finds other rows.
    """
    from_name, to_name = quote_identifier(gone.name), quote_identifier(kept.name)
    changes, where = [f"{to_name} = {from_name}"], f"{from_name} IS NOT NULL"
    if overwrites:
        changes.append(f"{from_name} = NULL")
        text = f"no shard has {gone.name} any more: its values go to {kept.name}"
    else:
        where = f"{to_name} IS NULL AND {where}"
        text = f"no shard calls {kept.name} {gone.name} any more: its values come back"
    changes += _unchanged(others)
    sql = f"UPDATE {target.sql} SET {', '.join(changes)} WHERE {where}"
    subjects = tuple(f"column:{column.name.lower()}" for column in (gone, kept))
    action = ValueMove(gone.name, kept.name, overwrites)
    return _statement(sql, CodedText(text, "SM-1909"), subjects, action)


def defaulting(target: TargetTable, column: Column, others: Sequence[Column]) -> TargetStatement:
    """Gives a column's default to all rows that hold NULL in it, whatever their shard.

    Args:
        target: The merged table.
        column: Nullable, with a default that is not NULL.
        others: The target's other columns; none changes.
    """
    name = quote_identifier(column.name)
    changes = [f"{name} = DEFAULT", *_unchanged(others)]
    sql = f"UPDATE {target.sql} SET {', '.join(changes)} WHERE {name} IS NULL"
    text = f"no shard that has {column.name} has NULL in it: rows of the others get its default"
    subjects = (f"column:{column.name.lower()}",)
    return _statement(sql, CodedText(text, "SM-1922"), subjects, DefaultFill(column.name))


def _statement(
    sql: str, why: CodedText, subjects: tuple[str, ...], action: RowAction
) -> TargetStatement:
    kind = StatementKind.ROWS
    return TargetStatement(sql, kind, why.text, subjects, actions=(action,), code=why.code)


def _unchanged(columns: Sequence[Column]) -> list[str]:
    """Assignments that keep ON UPDATE CURRENT_TIMESTAMP from changing the columns that have it."""
    names = [quote_identifier(column.name) for column in columns if column.on_update]
    return [f"{name} = {name}" for name in names]


def _rows_of(shard: ShardId, origin: Origin) -> tuple[ColumnText, ...]:
    return tuple(ColumnText(c.name, c.part.value_in(shard)) for c in origin.naming)


def _subject(shard: ShardId) -> str:
    return f"rows:{shard}"
