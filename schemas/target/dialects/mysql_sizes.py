"""How many bytes MySQL counts for a row and for an index entry. Pure.

A join can be larger than the table of any shard, since each may have long columns of its own. This
module never counts more bytes than the server, so it refuses no table that the server would take.

Source: MySQL Reference Manual, "Data Type Storage Requirements", "Limits on Table Column Count and
Row Size", "InnoDB Limits"; measured on servers: tests/integration/mysql/test_target_ddl.py.
"""

from __future__ import annotations

from shardmerge.schemas.model.tables import Column, Index, IndexKind, IndexPart, TableSchema
from shardmerge.schemas.model.types import ColumnType

_CHARACTER_BYTES = {"utf8mb4": 4, "utf8mb3": 3, "ucs2": 2, "utf16": 4, "utf32": 4}
_FIXED = {
    "tinyint": 1, "smallint": 2, "mediumint": 3, "int": 4, "bigint": 8, "float": 4, "double": 8,
    "year": 1, "date": 3, "time": 3, "datetime": 5, "timestamp": 4, "json": 12,
    "tinytext": 9, "text": 10, "mediumtext": 11, "longtext": 12,
    "tinyblob": 9, "blob": 10, "mediumblob": 11, "longblob": 12, "enum": 1, "set": 1,
}  # fmt: skip


def row_bytes(schema: TableSchema) -> int:
    """The least bytes that the server counts for a row. Virtual columns are not stored."""
    return sum(_stored(c) for c in schema.columns if c.generated is None or c.generated.stored)


def key_bytes(index: Index, schema: TableSchema) -> int:
    """The least bytes that the server counts for an index entry; 0 for a FULLTEXT index etc."""
    if index.kind not in (IndexKind.PLAIN, IndexKind.UNIQUE, IndexKind.PRIMARY):
        return 0
    return sum(_part(part, schema) for part in index.parts)


def _part(part: IndexPart, schema: TableSchema) -> int:
    column = schema.column(part.column) if part.column else None
    if column is None:
        return 0
    kind = column.type
    if kind.is_string:
        return (part.length or kind.length or 0) * _CHARACTER_BYTES.get(kind.charset, 1)
    if kind.is_binary:
        return part.length or kind.length or 0
    return _FIXED.get(kind.name, 0)


def _stored(column: Column) -> int:
    kind = column.type
    match kind.name:
        case "char" | "varchar":
            size = (kind.length or 0) * _CHARACTER_BYTES.get(kind.charset, 1)
            return size + _length_bytes(kind, size)
        case "binary" | "varbinary":
            return (kind.length or 0) + _length_bytes(kind, kind.length or 0)
        case "bit":
            return ((kind.length or 1) + 7) // 8
        case "decimal":
            return (kind.length or 10) * 4 // 9
        case _:
            return _FIXED.get(kind.name, 0)


def _length_bytes(kind: ColumnType, size: int) -> int:
    if not kind.name.startswith("var"):
        return 0
    return 1 if size < 256 else 2
