"""Qualified names: ``database.table``, ``table.column``."""

from __future__ import annotations

from shardmerge.schemas.ddl.changes import TableName

from .lexer import Cursor


def table_name(cursor: Cursor) -> TableName:
    """Read ``[database.]table``."""
    if cursor.accept("."):
        return TableName("", cursor.identifier("a table name", reserved=True))
    first = cursor.identifier("a table name")
    if cursor.accept("."):
        return TableName(first, cursor.identifier("a table name", reserved=True))
    return TableName("", first)


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
