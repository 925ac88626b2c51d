"""Zero values: what a row gets that leaves out a NOT NULL column without a default.

They are also what MySQL fills into existing rows when such a column is added, so that a shard's
old rows and the target's agree.

Source: MySQL Reference Manual, "Data Type Default Values".
"""

from __future__ import annotations

from .tables import (
    Default,
    DefaultKind,
)
from .types import (
    BLOB_NAMES,
    SPATIAL_NAMES,
    TEXT_NAMES,
    ColumnType,
)

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
    """The zero value as a default; None for a type that has none (spatial types).

    * text, blob and JSON take no literal default, an expression has the same effect (8.0.13).
    * an enum's 0 is no value that a strict session accepts as default; MySQL itself fills in
      the first element.
    * a zero date needs a session without NO_ZERO_DATE, which the sink's are.
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
