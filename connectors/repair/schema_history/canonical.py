"""Writes a table as a CREATE TABLE that Debezium's parser understands. Pure.

Debezium keeps only this of a table: its columns in order, their types, character sets, whether they
may be NULL, their defaults, and its key. So only this is written, with every name quoted and every
literal plain. Indexes, checks, expressions and options are left out: they can hold a word that
Debezium does not know.

Source: Debezium 3.6, the listeners of ``MySqlAntlrDdlParser``; benchmarks/debezium_parsers.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from shardmerge.schemas.ddl.changes import TableName
from shardmerge.schemas.model.mysql_text import column_type, string_literal
from shardmerge.schemas.model.names import quote_identifier
from shardmerge.schemas.model.tables import Column, DefaultKind, Index, IndexKind, TableSchema
from shardmerge.schemas.model.types import ColumnType

_AS_BYTES: Mapping[str, ColumnType] = {
    "inet4": ColumnType("binary", 4),
    "inet6": ColumnType("binary", 16),
}
"""MariaDB's types that Debezium 3.5.0 does not know: in the binlog they are such bytes."""


def create_text(name: TableName, schema: TableSchema) -> str:
    """The CREATE TABLE."""
    lines = [_column(column) for column in schema.columns]
    lines += _keys(schema.indexes)
    option = f" DEFAULT CHARACTER SET {schema.charset}" if schema.charset else ""
    return f"CREATE TABLE {_sql(name)} ({', '.join(lines)}){option}"


def _column(column: Column) -> str:
    known = _AS_BYTES.get(column.type.name, column.type)
    kind = replace(known, collation="", srid=None)
    text = f"{quote_identifier(column.name)} {column_type(kind)}"
    text += " NULL" if column.nullable else " NOT NULL"
    if column.auto_increment:
        text += " AUTO_INCREMENT"
    default = column.default
    # Debezium cannot convert bits and bytes that are a default.
    is_plain = (
        known is column.type and default is not None and not default.text.startswith(("0x", "b'"))
    )
    if default is not None and default.kind is DefaultKind.LITERAL and is_plain:
        text += f" DEFAULT {string_literal(default.text)}"
    return text


def _keys(indexes: Sequence[Index]) -> Iterator[str]:
    """The keys that Debezium can take for a table's key."""
    for index in indexes:
        if not index.is_unique or any(part.expression for part in index.parts):
            continue
        columns = ", ".join(quote_identifier(column) for column in index.columns)
        primary = index.kind is IndexKind.PRIMARY
        yield f"PRIMARY KEY ({columns})" if primary else f"UNIQUE KEY ({columns})"


def _sql(name: TableName) -> str:
    return f"{quote_identifier(name.database)}.{quote_identifier(name.table)}"
