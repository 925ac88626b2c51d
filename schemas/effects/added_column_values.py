"""The value that ADD COLUMN puts into existing rows: as a default, and as a text. Pure.

The texts are for comparison. A shard's column and the target's column get the same value in
existing rows when their texts are equal and not empty. An empty text means that the definition does
not determine the values: they depend on the time, on the row, or on the session.

Source: MySQL Reference Manual, "ALTER TABLE", "Data Type Default Values"; measured on servers:
tests/integration/mysql/test_row_effects.py.
"""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

from shardmerge.schemas.ddl.volatile_defaults import volatile_default
from shardmerge.schemas.model.mysql_facts import zero_value
from shardmerge.schemas.model.tables import Column, Default, DefaultKind
from shardmerge.schemas.model.types import BLOB_NAMES, TEXT_NAMES

UNKNOWN = ""
NULL = "NULL"
_NUMBERS = frozenset(("decimal", "float", "double", "year"))
_FRACTIONS = frozenset(("time", "datetime", "timestamp"))
_TEXTS = frozenset((*TEXT_NAMES, "json"))
_BYTES = re.compile(r"0x(?:[0-9A-Fa-f]{2})*")
_PLAIN_STRING = re.compile(r"'([^'\\]*)'")
_ZERO_DATE = "0000-00-00"


def added_default(column: Column) -> Default | None:
    """The default whose value existing rows get when a column with this definition is added.

    It is the column's own default, or the zero value of its type. A constant string or byte string
    is returned as a literal, even if it is written as an expression. MySQL takes a default of TEXT,
    BLOB and JSON only as an expression, and MariaDB stores the same default as a literal.

    Returns:
        None when the definition does not determine one value for all rows: for a generated column,
        AUTO_INCREMENT, a volatile default, and a NOT NULL spatial column.
    """
    if column.generated is not None or column.auto_increment:
        return None
    if volatile_default(column) is not None:
        return None
    default = column.default
    if default is None:
        if column.nullable:
            return Default(DefaultKind.NULL)
        default = zero_value(column.type)
    if default is None or default.kind is not DefaultKind.EXPRESSION:
        return default
    literal = _plain_value(default.text, column.type.name)
    return default if literal is None else Default(DefaultKind.LITERAL, literal)


def _plain_value(text: str, kind: str) -> str | None:
    """The literal that is the whole expression; None when the expression is not a literal."""
    plain = _PLAIN_STRING.fullmatch(text)
    if kind in BLOB_NAMES:
        if plain is not None:
            return f"0x{plain[1].encode().hex()}"
        return text.lower() if _BYTES.fullmatch(text) else None
    return plain[1] if plain is not None and kind in _TEXTS else None


def fill_text(column: Column) -> str:
    """The value that existing rows get when a column with this definition is added, as text.

    * ``NULL``; ``value <canonical literal>``; ``expression <text>`` for an expression that gives
      every row the same value on every server; ``generated <text>`` for a generated column.
    * ``UNKNOWN`` for AUTO_INCREMENT, a volatile default, and a TIMESTAMP literal: its instant
      depends on the time zone of the session that executed the ALTER.
    """
    if column.generated is not None:
        return f"generated {column.generated.expression}"
    default = added_default(column)
    if default is None:
        return UNKNOWN
    if default.kind is DefaultKind.NULL:
        return NULL
    if default.kind is DefaultKind.EXPRESSION:
        return f"expression {default.text}"
    return _literal(default, column)


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
