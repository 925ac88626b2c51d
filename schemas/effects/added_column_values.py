"""What ADD COLUMN puts into the rows that a table has already, as a comparable text.

Two columns, one of a shard and one of the target, fill alike when their texts are equal and not
empty. An empty text means that nobody can tell the values from the definition: they depend on the
moment, on the row, or on the session.

Source: MySQL Reference Manual, "ALTER TABLE", "Data Type Default Values"; measured on servers:
tests/integration/mysql/test_row_effects.py.
"""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

from shardmerge.schemas.ddl.volatile_defaults import volatile_default
from shardmerge.schemas.model.mysql_facts import zero_value
from shardmerge.schemas.model.tables import (
    Column,
    Default,
    DefaultKind,
)
from shardmerge.schemas.model.types import (
    BLOB_NAMES,
    TEXT_NAMES,
)

UNKNOWN = ""
NULL = "NULL"
_NUMBERS = frozenset(("decimal", "float", "double", "year"))
_FRACTIONS = frozenset(("time", "datetime", "timestamp"))
_TEXTS = frozenset((*TEXT_NAMES, "json"))
_BYTES = re.compile(r"0x(?:[0-9A-Fa-f]{2})*")
_PLAIN_STRING = re.compile(r"'([^'\\]*)'")
_ZERO_DATE = "0000-00-00"


def fill_text(column: Column) -> str:
    """The value that existing rows get when a column of this definition is added.

    * ``NULL``, ``value <canonical literal>``, ``expression <text>`` for one that gives every row
      the same on every server, ``generated <text>`` for a generated column.
    * ``UNKNOWN`` for AUTO_INCREMENT, a volatile default, and a TIMESTAMP literal: its instant
      depends on the time zone of the session that executed the ALTER.
    """
    if column.generated is not None:
        return f"generated {column.generated.expression}"
    if column.auto_increment or volatile_default(column) is not None:
        return UNKNOWN
    default = column.default
    if default is None:
        if column.nullable:
            return NULL
        default = zero_value(column.type)
        if default is None:
            return UNKNOWN
    if default.kind is DefaultKind.NULL:
        return NULL
    if default.kind is DefaultKind.EXPRESSION:
        return _expression(default.text, column.type.name)
    return _literal(default, column)


def _expression(text: str, kind: str) -> str:
    """A plain string or number of bytes is a value: MariaDB keeps as a literal what MySQL cannot.

    MySQL takes a literal as the default of text, blobs and JSON in no other way.
    """
    plain = _PLAIN_STRING.fullmatch(text)
    if kind in BLOB_NAMES:
        if plain is not None:
            text = f"0x{plain[1].encode().hex()}"
        if _BYTES.fullmatch(text):
            return f"value {text.lower()}"
    elif plain is not None and kind in _TEXTS:
        return f"value {plain[1]}"
    return f"expression {text}"


def _literal(default: Default, column: Column) -> str:
    kind, text = column.type, default.text
    if kind.name == "timestamp" and not text.startswith(_ZERO_DATE):
        return UNKNOWN
    if kind.is_integer or kind.name in _NUMBERS:
        try:
            number = Decimal(text)
        except InvalidOperation:
            return f"value {text}"
        return f"value {number.normalize() if number else Decimal(0):f}"
    if kind.name in BLOB_NAMES:
        return f"value {text.lower()}"
    if kind.name in _FRACTIONS and "." in text:
        text = text.rstrip("0").rstrip(".")
    if kind.name == "char":
        text = text.rstrip(" ")
    if kind.name == "bit":
        return f"value {int(text.removeprefix('b').strip(chr(39)), 2)}"
    return f"value {text}"
