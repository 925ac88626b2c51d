"""Qualified names: ``database.table``, ``table.column``."""

from __future__ import annotations

from shardmerge.schemas.ddl.changes import TableName

from .lexer import Cursor


def table_name(cursor: Cursor) -> TableName:
    """Read ``[database.]table``."""
    named = cursor.context.as_named
    if cursor.accept("."):
        return TableName("", named(cursor.identifier("a table name", reserved=True)))
    first = named(cursor.identifier("a table name"))
    if cursor.accept("."):
        return TableName(first, named(cursor.identifier("a table name", reserved=True)))
    return TableName("", first)


def database_name(cursor: Cursor) -> str:
    """Read the name of a database."""
    return cursor.context.as_named(cursor.identifier("a database name"))


def field_name(cursor: Cursor, what: str) -> str:
    """Read ``[[database.]table.]name`` and keep the last part.

    MySQL before 8.0 and MariaDB accept such a name for a column, index or constraint of the table.

    Source: sql_yacc.yy of 5.7, rule ``field_ident``.
    """
    cursor.accept(".")
    name = cursor.identifier(what)
    for _ in range(2):
        if cursor.accept("."):
            name = cursor.identifier(what, reserved=True)
    return name
