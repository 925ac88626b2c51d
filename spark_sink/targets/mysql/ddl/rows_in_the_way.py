"""The rows because of which the target refuses a statement, as text for people.

The server's error names at most one value. An operator needs the rows: their primary keys, and the
columns that tell their shard, if the target has such columns.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from shardmerge.schemas.model.actions import Action, ColumnChange, IndexAddition
from shardmerge.schemas.model.errors import TargetError
from shardmerge.schemas.model.names import TargetTable, quote_identifier
from shardmerge.schemas.model.tables import Index, IndexKind, TableSchema
from shardmerge.spark_sink.targets.mysql.session import MySqlSession

_DUPLICATE = frozenset({1062, 1586})
_NULL = frozenset({1048, 1138, 1265})
"""1265 (data truncated) is among them: MODIFY … NOT NULL that copies the table gives it for a NULL.
"""
_SHOWN = 3
_SECONDS = 10
_HINT = f"SELECT /*+ MAX_EXECUTION_TIME({_SECONDS * 1000}) */"
"""MariaDB ignores the hint, so there the query takes as long as it takes."""
_WAY_OUT = (
    "change these rows on their shards, or undo the change on one of them; the statement is tried "
    "again by itself"
)


def rows_in_the_way(
    session: MySqlSession,
    target: TargetTable,
    schema: TableSchema,
    actions: Sequence[Action],
    error: TargetError,
    *,
    shard_columns: Collection[str] = (),
) -> str:
    """The first rows because of which a statement was refused, and the remedy; "" if not known.

    Args:
        session: Outside a transaction.
        target: The merged table.
        schema: The table's present schema.
        actions: Of the statement that was refused.
        error: The error with which it was refused.
        shard_columns: Names of columns that tell a row's shard; the target may lack them.
    """
    key = schema.primary_key
    names = list(key.columns) if key is not None else []
    names += [c.name for c in schema.columns if c.name in shard_columns and c.name not in names]
    if not names:
        return ""
    try:
        if error.number in _DUPLICATE:
            found = _alike(session, target, actions, names)
        elif error.number in _NULL:
            found = _without_value(session, target, schema, actions, names)
        else:
            return ""
    except TargetError:
        # The query takes too long, or the server is away: then only the error itself is shown.
        return ""
    return f"{found}; {_WAY_OUT}" if found else ""


def _without_value(
    session: MySqlSession,
    target: TargetTable,
    schema: TableSchema,
    actions: Sequence[Action],
    names: Sequence[str],
) -> str:
    for action in actions:
        if isinstance(action, ColumnChange) and not action.column.nullable:
            there = schema.column(action.name)
            if there is None or not there.nullable:
                continue
            rows = _rows(session, target, names, f"{quote_identifier(there.name)} IS NULL")
            if rows:
                return f"rows with NULL in {there.name}: {rows}"
    return ""


def _alike(
    session: MySqlSession, target: TargetTable, actions: Sequence[Action], names: Sequence[str]
) -> str:
    for action in actions:
        if not isinstance(action, IndexAddition) or action.index.kind is not IndexKind.UNIQUE:
            continue
        parts = _parts(action.index)
        if not parts:
            continue
        listed = ", ".join(parts)
        filled = " AND ".join(f"{part} IS NOT NULL" for part in parts)
        groups = session.query(
            f"{_HINT} {listed} FROM {target.sql} WHERE {filled} GROUP BY {listed}"
            f" HAVING COUNT(*) > 1 LIMIT {_SHOWN}"
        )
        found = []
        for values in groups:
            same = " AND ".join(f"{part.replace('%', '%%')} = %s" for part in parts)
            rows = _rows(session, target, names, same, values)
            found.append(f"{', '.join(map(_shown, values))} in {rows}")
        if found:
            columns = ", ".join(part.column for part in action.index.parts)
            return f"rows alike in ({columns}): {'; '.join(found)}"
    return ""


def _parts(index: Index) -> list[str]:
    """The SQL of each part of an index; empty if a part is an expression."""
    if any(not part.column for part in index.parts):
        return []
    return [
        f"LEFT({quote_identifier(part.column)}, {part.length})"
        if part.length
        else quote_identifier(part.column)
        for part in index.parts
    ]


def _rows(
    session: MySqlSession,
    target: TargetTable,
    names: Sequence[str],
    where: str,
    values: Sequence[object] = (),
) -> str:
    """The first rows, each with its key and the columns that tell its shard."""
    listed = ", ".join(map(quote_identifier, names))
    if values:
        listed = listed.replace("%", "%%")
    rows = session.query(
        f"{_HINT} {listed} FROM {target.sql} WHERE {where} LIMIT {_SHOWN + 1}", values
    )
    texts = [
        "(" + ", ".join(f"{n}={_shown(v)}" for n, v in zip(names, row, strict=True)) + ")"
        for row in rows[:_SHOWN]
    ]
    return " and ".join(texts) + (" and more" if len(rows) > _SHOWN else "")


def _shown(value: object) -> str:
    return f"0x{value.hex()}" if isinstance(value, bytes) else repr(value)
