"""How the columns of a primary key are compared in SQL, and how a boundary is written. Pure.

A boundary is one value for each column of the key, as text that the server gave. Only the server
compares boundaries with keys. Nothing here does, so no collation has to be known here.

The server gives texts and bytes as hexadecimal digits of the bytes that the column stores. They go
back to it as a literal of the column's character set. So the server converts neither side of a
comparison, and can use the index.

Source: MySQL Reference Manual, "Character Set Introducers", "Hexadecimal Literals", "The ENUM Type"
(an ENUM is sorted by its number, and compared with a text as text).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from shardmerge.schemas.model.mysql_text import string_literal
from shardmerge.schemas.model.names import quote_identifier
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.model.types import ColumnType

Boundary: TypeAlias = tuple[str, ...]
"""A text for each column of the key, as ``KeyColumn.selected`` gives it."""
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_HEX = re.compile(r"(?:[0-9A-F]{2})*")
_BY_NUMBER = frozenset(("bit", "enum", "set", "year"))
_AS_TEXT = frozenset(("decimal", "date", "time", "datetime", "timestamp"))
_DOUBLES = frozenset(("float", "double"))


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column of a primary key.

    Attributes:
        prefix: How many characters, or bytes, of the column the key has; None for all.
        descending: Whether the key has the column in descending order.
    """

    name: str
    kind: ColumnType
    prefix: int | None = None
    descending: bool = False

    @property
    def is_bytes(self) -> bool:
        """Whether a boundary's value is hexadecimal digits."""
        return self.kind.is_string or self.kind.is_binary

    @property
    def compared(self) -> str:
        """SQL that comparisons and ORDER BY use."""
        quoted = quote_identifier(self.name)
        return f"({quoted} + 0)" if self.kind.name in ("enum", "set") else quoted

    @property
    def selected(self) -> str:
        """SQL that gives the column's value for a boundary, in ASCII."""
        quoted = quote_identifier(self.name)
        if self.is_bytes:
            return (
                f"HEX({quoted})" if self.prefix is None else f"HEX(LEFT({quoted}, {self.prefix}))"
            )
        if self.kind.name in _DOUBLES:
            return f"CAST({quoted} + 0e0 AS CHAR)"
        if self.kind.name in _AS_TEXT:
            return f"CAST({quoted} AS CHAR)"
        return f"CAST({quoted} + 0 AS CHAR)"

    def literal(self, value: str) -> str:
        """SQL of a boundary's value.

        A text that does not have the form of the type's values becomes a quoted literal. Chunks may
        get other sizes by it, but no row is missed: see ``chunk_ranges``.
        """
        name = self.kind.name
        if self.is_bytes and _HEX.fullmatch(value):
            return f"{_introducer(self.kind)}X'{value}'"
        if (self.kind.is_integer or name in _BY_NUMBER or name == "decimal") and _NUMBER.fullmatch(
            value
        ):
            return value
        if name in _DOUBLES and _NUMBER.fullmatch(value):
            return value if "e" in value else f"{value}e0"
        return string_literal(value)


def _introducer(kind: ColumnType) -> str:
    if kind.is_binary or kind.charset in ("", "binary"):
        return ""
    # Servers before MySQL 8.0 and MariaDB 10.6 do not know the name utf8mb3 here.
    # Without the space ``_utf8mb4X`` would be a name.
    return "_utf8 " if kind.charset == "utf8mb3" else f"_{kind.charset} "


def key_columns(schema: TableSchema) -> tuple[KeyColumn, ...]:
    """The columns of a table's primary key, in order; empty without one."""
    if schema.primary_key is None:
        return ()
    found = []
    for part in schema.primary_key.parts:
        column = schema.column(part.column)
        assert column is not None
        found.append(KeyColumn(column.name, column.type, part.length, part.descending))
    return tuple(found)


def order_by(key: Sequence[KeyColumn]) -> str:
    """The terms of ORDER BY that give the key's own order."""
    return ", ".join(c.compared + (" DESC" if c.descending else "") for c in key)
