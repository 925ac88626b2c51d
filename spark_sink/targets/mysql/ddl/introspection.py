"""Reads a MySQL target's tables into ``schemas.model.tables``, and compares them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from shardmerge.schemas.ddl.apply.actions import schema_after
from shardmerge.schemas.ddl.apply.statements import apply_create
from shardmerge.schemas.ddl.changes import CreateTable
from shardmerge.schemas.ddl.grammar import ServerContext, parse
from shardmerge.schemas.lattice.join import compare_tables, join_tables
from shardmerge.schemas.lattice.joined import Conflict
from shardmerge.schemas.model.actions import (
    Action,
    CheckRemoval,
    ColumnAddition,
    ColumnRemoval,
    IndexRemoval,
)
from shardmerge.schemas.model.charsets import charset_name, collation_name
from shardmerge.schemas.model.mysql_text import check_clause, column_definition, index_clause
from shardmerge.schemas.model.names import TargetTable, quote_identifier
from shardmerge.schemas.model.tables import Column, TableSchema
from shardmerge.spark_sink.targets.mysql.session import MySqlSession

_UNKNOWN_TABLE, _UNKNOWN_DATABASE = 1146, 1049


def server_context(session: MySqlSession, database: str) -> ServerContext:
    """The settings with which the target reads DDL in the sink's own sessions."""
    defaults = session.query(
        "SELECT DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME FROM"
        " information_schema.SCHEMATA WHERE SCHEMA_NAME = %s",
        (database,),
    )
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


def make_database(session: MySqlSession, name: str) -> None:
    """Create the database if it is missing."""
    if not session.query(
        "SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = %s", (name,)
    ):
        session.execute(f"CREATE DATABASE IF NOT EXISTS {quote_identifier(name)}")


def schema_of(create: str, context: ServerContext) -> TableSchema | None:
    """The schema that a CREATE statement describes; None for "".

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
    """Whether the column that a statement adds exists already, or what it drops is gone already.

    Returns:
        None when neither is so: the statement must be executed. "" when the table is as good as
        after it. Otherwise why the existing column does not fit.

    Raises:
        UnsupportedDDL: The statement contradicts the rest of the table.
    """
    match actions:
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


def is_same(a: TableSchema | None, b: TableSchema | None) -> bool:
    """Whether two schemas accept the same rows; comments and options do not count."""
    if a is None or b is None:
        return a is b
    a, b = _bare(a), _bare(b)
    return a == b or compare_tables(a, b).is_equal


def misfit(wanted: TableSchema, there: TableSchema) -> str:
    """Why an existing table does not accept every row of the wanted one; "" if it does."""
    wanted, there = _in_utf8mb4(_bare(wanted), _bare(there)), _bare(there)
    if compare_tables(wanted, there).is_at_most:
        return ""
    joined = join_tables([wanted, there])
    return str(joined) if isinstance(joined, Conflict) else difference(wanted, there)


def _in_utf8mb4(wanted: TableSchema, there: TableSchema) -> TableSchema:
    """The wanted table, with utf8mb4 for each column that has it in an existing table.

    A column that is part of a unique key stays as it is: under another collation two of its values
    could be equal.
    """
    keys = [index for index in (*wanted.indexes, *there.indexes) if index.is_unique]
    in_keys = {name.lower() for index in keys for name in index.columns}
    columns = []
    for column in wanted.columns:
        found = there.column(column.name)
        if (
            column.type.charset
            and found is not None
            and found.type.charset == "utf8mb4"
            and column.name.lower() not in in_keys
        ):
            kind = replace(column.type, charset="utf8mb4", collation=found.type.collation)
            columns.append(replace(column, type=kind))
        else:
            columns.append(column)
    return replace(wanted, columns=tuple(columns))


def difference(expected: TableSchema | None, real: TableSchema | None) -> str:
    """The first differences between two schemas, for people."""
    if expected is None or real is None:
        return "the table is missing" if real is None else "the table is still there"
    wanted, found = _texts(expected), _texts(real)
    parts = [
        f"{what}: expected {wanted.get(what, 'none')}, found {found.get(what, 'none')}"
        for what in {**wanted, **found}
        if wanted.get(what) != found.get(what)
    ]
    return "; ".join(parts[:3]) or "the order of columns, or the default charset"


def _texts(schema: TableSchema) -> dict[str, str]:
    """Kind and name of each part of a schema → its definition."""
    return {
        **{f"column {c.name.lower()}": column_definition(c) for c in schema.columns},
        **{f"index {i.name.lower()}": index_clause(i) for i in schema.indexes},
        **{f"check {c.name.lower()}": check_clause(c) for c in schema.checks},
        **{f"foreign key {k.name.lower()}": str(k) for k in schema.foreign_keys},
    }


def _bare(schema: TableSchema) -> TableSchema:
    return replace(
        schema,
        columns=tuple(_bare_column(c) for c in schema.columns),
        checks=tuple(replace(c, expression=_shown(c.expression)) for c in schema.checks),
        comment="",
        options=(),
        partitioning="",
    )


def _bare_column(column: Column) -> Column:
    default, generated = column.default, column.generated
    elements = tuple(map(_shown, column.type.elements))
    return replace(
        column,
        type=replace(column.type, elements=elements),
        default=default and replace(default, text=_shown(default.text)),
        generated=generated and replace(generated, expression=_shown(generated.expression)),
        comment="",
    )


def _shown(text: str) -> str:
    """A text as MySQL's SHOW CREATE shows it, which has no characters beyond U+FFFF.

    Source: measured, MySQL 8.0: ``DEFAULT '😀'`` is stored, but shown as ``'?'``; in a generated
    column's expression it is shown as ``'????'``.
    """
    return _BEYOND.sub("?", text)


_BEYOND = re.compile("[?\U00010000-\U0010ffff]+")


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
