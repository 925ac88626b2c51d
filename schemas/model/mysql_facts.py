"""MySQL's sizes, limits and zero values, each with its source."""

from __future__ import annotations

from .tables import Default, DefaultKind
from .types import BLOB_NAMES, SPATIAL_NAMES, TEXT_NAMES, ColumnType

NULL_DEFAULT = Default(DefaultKind.NULL)
"""The default of a nullable column that has no DEFAULT clause."""

# Source: MySQL Reference Manual, "Identifier Length Limits".
MAX_NAME_CHARACTERS = 64
"""Longest name of a database, table, column, index or constraint."""

# Source: MySQL Reference Manual, "Data Type Storage Requirements".
SIZES_BYTES = (255, 65_535, 16_777_215, 4_294_967_295)
"""Largest value of tinytext and tinyblob, text and blob, mediumtext and mediumblob, longtext and
longblob."""
VALUE_BYTES = {
    name: size
    for names in (TEXT_NAMES, BLOB_NAMES)
    for name, size in zip(names, SIZES_BYTES, strict=True)
}
"""Name of a text or blob type → its largest value in bytes."""

# Source: MySQL Reference Manual, "Limits on Table Column Count and Row Size", "InnoDB Limits".
MAX_ROW_BYTES = 65_535
"""Largest row. Values of text, blob and JSON do not count: they are stored outside the row."""
MAX_VARCHAR_BYTES = MAX_ROW_BYTES
"""Longest varchar, in a table without other columns: it is part of the row."""
MAX_KEY_BYTES = 3_072
"""Largest index entry of InnoDB, in pages of 16 KiB, with the row formats that are the default
since 5.7."""

# Source: MySQL Reference Manual, "Fixed-Point Types", "Integer Types".
MAX_PRECISION, MAX_SCALE = 65, 30
"""Most digits of a decimal, and most of them behind the point."""
DIGITS = {
    "tinyint": (3, 3), "smallint": (5, 5), "mediumint": (7, 8), "int": (10, 10), "bigint": (19, 20)
}  # fmt: skip
"""Decimal digits of the greatest value: (signed, unsigned)."""


def size_index(size_bytes: int) -> int:
    """Index in ``SIZES_BYTES`` of the smallest size that holds this many bytes; else the last."""
    fitting = (i for i, size in enumerate(SIZES_BYTES) if size_bytes <= size)
    return next(fitting, len(SIZES_BYTES) - 1)


# Source of the zero values: MySQL Reference Manual, "Data Type Default Values".
_LITERALS = {
    "float": "0",
    "double": "0",
    "bit": "b'0'",
    "char": "",
    "varchar": "",
    "set": "",
    "year": "0000",
    "date": "0000-00-00",
    "time": "00:00:00",
    "datetime": "0000-00-00 00:00:00",
    "timestamp": "0000-00-00 00:00:00",
}


def zero_value(kind: ColumnType) -> Default | None:
    """The implicit default: what an INSERT puts into a NOT NULL column that it leaves out.

    MySQL also fills it into existing rows when such a column is added. With it as the target's
    default, old rows of a shard and of the target agree. None for a type without one (spatial
    types).

    * text, blob and JSON take no literal default; an expression has the same effect (8.0.13).
    * enum: MySQL itself fills in the first element. Its 0 would be refused as a default by a
      strict session.
    * a zero date needs a session without NO_ZERO_DATE; the sink's sessions are without it.
    """
    name = kind.name
    if name in SPATIAL_NAMES:
        return None
    if name == "json":
        return Default(DefaultKind.EXPRESSION, "'null'")
    if name in TEXT_NAMES or name in BLOB_NAMES:
        return Default(DefaultKind.EXPRESSION, "''")
    if name == "enum":
        return Default(DefaultKind.LITERAL, kind.elements[0])
    if name in ("binary", "varbinary"):
        # MySQL pads a binary default to the column's length before it stores it.
        return Default(DefaultKind.LITERAL, "0x" + "00" * _padding(kind))
    text = _LITERALS.get(name, "0")
    fraction = kind.fsp or (kind.scale or 0)
    return Default(DefaultKind.LITERAL, text + ("." + "0" * fraction if fraction else ""))


def _padding(kind: ColumnType) -> int:
    return (kind.length or 1) if kind.name == "binary" else 0
