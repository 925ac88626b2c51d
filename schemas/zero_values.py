"""The value that MySQL gives a NOT NULL column without a default: a type's zero value.

Source: MySQL Reference Manual, "Data Type Default Values"; DESIGN of the semilattice.
"""

from __future__ import annotations

from .model import Default, DefaultKind
from .types import BLOB_NAMES, SPATIAL_NAMES, TEXT_NAMES, ColumnType

_LITERALS = {
    "year": "0000", "date": "0000-00-00", "time": "00:00:00", "datetime": "0000-00-00 00:00:00",
    "timestamp": "0000-00-00 00:00:00", "char": "", "varchar": "", "set": "", "bit": "b'0'",
    "float": "0", "double": "0",
}  # fmt: skip


def zero_value(kind: ColumnType) -> Default | None:
    """The zero value as a default clause; None where there is none (spatial types).

    Text, blob and JSON columns take only an expression as default (MySQL 8.0.13 and later).
    """
    if kind.name in SPATIAL_NAMES:
        return None
    if kind.name == "json":
        return Default(DefaultKind.EXPRESSION, "'null'")
    if kind.name in TEXT_NAMES or kind.name in BLOB_NAMES:
        return Default(DefaultKind.EXPRESSION, "''")
    if kind.name == "enum":
        return Default(DefaultKind.LITERAL, kind.elements[0])
    if kind.name in ("binary", "varbinary"):
        size = (kind.length or 1) if kind.name == "binary" else 0
        return Default(DefaultKind.LITERAL, "0x" + "00" * size)
    text = _LITERALS.get(kind.name, "0")
    if kind.name == "decimal" and kind.scale:
        text = "0." + "0" * kind.scale
    if kind.fsp:
        text += "." + "0" * kind.fsp
    return Default(DefaultKind.LITERAL, text)
