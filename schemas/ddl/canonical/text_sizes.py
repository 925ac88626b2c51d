"""How long MySQL 8 expects a column's text to be when one statement makes it TEXT and converts it.

In ``CONVERT TO CHARACTER SET …, MODIFY c TEXT`` the written size (TEXT) does not count. The server
looks at the column's type before the statement, and takes the size that holds its text in the new
charset. It divides the old length by the bytes of the old charset's characters, even if that length
is in characters already.

Source: measured on MySQL 8.0.15 and 9.7; 5.7 and MariaDB take the class that is written.
"""

from __future__ import annotations

from shardmerge.schemas.model.charsets import max_bytes
from shardmerge.schemas.model.mysql_facts import SIZES_BYTES, VALUE_BYTES
from shardmerge.schemas.model.types import ColumnType

_WIDEST_NUMBER = 24
"""Characters of the longest number, date or time whose type has no length."""


def expected_characters(kind: ColumnType) -> int:
    """The number of characters that the server expects in a column of this type."""
    return _length(kind) // max_bytes(kind.charset)


def _length(kind: ColumnType) -> int:
    name = kind.name
    if name in VALUE_BYTES:
        return VALUE_BYTES[name]
    if name == "enum":
        return max(map(len, kind.elements))
    if name == "set":
        return sum(map(len, kind.elements)) + len(kind.elements) - 1
    if name == "decimal":
        return (kind.length or 0) + bool(kind.scale) + (not kind.unsigned)
    if kind.is_integer or name in ("date", "datetime", "timestamp", "time", "year"):
        return _WIDEST_NUMBER
    if name in ("float", "double"):
        return kind.length or _WIDEST_NUMBER
    if name in ("char", "varchar", "binary", "varbinary", "bit"):
        return kind.length or 1
    return SIZES_BYTES[-1]
