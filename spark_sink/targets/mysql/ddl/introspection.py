"""Reads a MySQL target's tables into ``schemas.model.tables``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from shardmerge.schemas.ddl.apply.actions import schema_after
from shardmerge.schemas.ddl.apply.statements import apply_create
from shardmerge.schemas.ddl.apply.stored_texts import stored_check, stored_index
from shardmerge.schemas.ddl.changes import CreateTable
from shardmerge.schemas.ddl.grammar import ServerContext, parse
from shardmerge.schemas.model.actions import (
    Action,
    Adoption,
    CheckAddition,
    CheckRemoval,
    ColumnAddition,
    ColumnRemoval,
    IndexAddition,
    IndexRemoval,
)
from shardmerge.schemas.model.charsets import charset_name, collation_name
from shardmerge.schemas.model.names import TargetTable, quote_identifier
from shardmerge.schemas.model.tables import Column, IndexKind, TableSchema
from shardmerge.schemas.target.table_comparison import bare, misfit
from shardmerge.schemas.target.target_change import plain_index
from shardmerge.spark_sink.targets.mysql.server_notes import Statement
from shardmerge.spark_sink.targets.mysql.session import MySqlSession

_UNKNOWN_TABLE, _UNKNOWN_DATABASE = 1146, 1049


def server_context(session: MySqlSession, database: str) -> ServerContext:
    """The settings with which the target reads DDL in the sink's own sessions."""
    return _context(session, database, session.query(*_defaults_query(database)))


def made_database(session: MySqlSession, database: str) -> ServerContext:
    """As ``server_context``; the database is created if it is missing."""
    defaults = session.query(*_defaults_query(database))
    if not defaults:
        session.execute(f"CREATE DATABASE IF NOT EXISTS {quote_identifier(database)}")
        return server_context(session, database)
    return _context(session, database, defaults)


def _defaults_query(database: str) -> Statement:
    return Statement(
        "SELECT DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME FROM"
        " information_schema.SCHEMATA WHERE SCHEMA_NAME = %s",
        (database,),
    )


def _context(
    session: MySqlSession, database: str, defaults: Sequence[tuple[str, str]]
) -> ServerContext:
    charset, collation = defaults[0] if defaults else ("", "")
    return session.facts.context(database, charset_name(charset), collation_name(collation))


def show_create(session: MySqlSession, table: TargetTable) -> str:
    """The table's CREATE statement without its counter of AUTO_INCREMENT; "" without a table."""
    if not session.query(
        "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s",
        (table.database, table.table),
    ):
        return ""
    ((_, text),) = session.query(f"SHOW CREATE TABLE {table.sql}")
    # Inserted rows move the counter, which must not look like a change of the schema.
    return re.sub(r"(?m)^(\).*?) AUTO_INCREMENT=\d+", r"\1", text)


@lru_cache(maxsize=32)
def schema_of(create: str, context: ServerContext) -> TableSchema | None:
    """The schema that a CREATE statement describes; None for "".

    The last ones are remembered: a statement's table is read several times.

    Raises:
        UnparsableDDL, UnsupportedDDL: The statement has something that the grammar does not know.
    """
    if not create:
        return None
    statement = parse(create, context)
    assert isinstance(statement, CreateTable)
    return apply_create(statement, context)


def there_already(
    there: TableSchema, actions: Sequence[Action], table: TargetTable, context: ServerContext
) -> str | None:
    """Whether what a statement adds is there already, or what it drops is gone already.

    Returns:
        None when neither is so: the statement must be executed. "" when the table is as good as
        after it. Otherwise why the existing column does not fit (only for ADD COLUMN).

    Raises:
        UnsupportedDDL: The statement contradicts the rest of the table.
    """
    match actions:
        case [Adoption()]:
            return ""
        case [IndexAddition(index=index)] if index.kind is not IndexKind.PRIMARY:
            found_index = there.index(index.name)
            same = found_index is not None and plain_index(found_index) == plain_index(
                stored_index(index, context)
            )
            return "" if same else None
        case [CheckAddition(check=check)]:
            return "" if stored_check(check, context) in bare(there).checks else None
        case [ColumnRemoval(name=name)]:
            return "" if there.column(name) is None else None
        case [IndexRemoval(name=name)]:
            return "" if there.index(name) is None else None
        case [CheckRemoval(name=name)]:
            names = (check.name.lower() for check in there.checks)
            return None if name.lower() in names else ""
        case [ColumnAddition(column=column) as action]:
            found = there.column(column.name)
            return None if found is None else _column_misfit(there, found, action, table, context)
        case _:
            return None


def _column_misfit(
    there: TableSchema,
    found: Column,
    action: ColumnAddition,
    table: TargetTable,
    context: ServerContext,
) -> str:
    """Why an existing column does not accept the rows of the one to be added; "" if it does."""
    rest = TableSchema(
        tuple(c for c in there.columns if c is not found),
        charset=there.charset,
        collation=there.collation,
    )
    name = found.name.lower()
    wanted = schema_after(rest, (action,), table, context).column(name)
    assert wanted is not None
    named = tuple(i for i in there.indexes if i.is_unique and name in map(str.lower, i.columns))
    reason = misfit(TableSchema((wanted,), named), TableSchema((found,), named))
    return f"column {found.name} is there already and does not fit: {reason}" if reason else ""


_ENDED = frozenset({"synced", "done", "cancelled", "rollback done"})
_MOST_JOBS = 1_000


def unfinished_job(session: MySqlSession, target: TargetTable) -> str:
    """Type and state of a statement on a table in a TiDB's DDL queue; "" without one.

    Source: TiDB documentation, "DDL_JOBS". The queue comes before the history, which may be long,
    so the first rows are enough.
    """
    rows = session.query(
        "SELECT DB_NAME, TABLE_NAME, JOB_TYPE, STATE FROM information_schema.DDL_JOBS"
        f" LIMIT {_MOST_JOBS}"
    )
    place = (target.database.lower(), target.table.lower())
    for database, table, kind, state in rows:
        found = (str(database).lower(), str(table).lower())
        if found == place and str(state).lower() not in _ENDED:
            return f"{kind}, {state}"
    return ""
