"""SQL literals and conditions for values of rows in MySQL. Pure."""

from __future__ import annotations

from shardmerge.schemas.model.mysql_text import string_literal
from shardmerge.schemas.model.names import quote_identifier
from shardmerge.schemas.model.tables import Column

_AS_NUMBERS = frozenset(("decimal", "bit"))
_AS_TEXT = frozenset(("date", "time", "datetime"))
_VALUE = "value "


def row_value(fill: str, column: Column) -> str | None:
    """The SQL literal of a fill (``fill_text``); None when a comparison may not find it again.

    Args:
        fill: What rows hold.
        column: The target's column.
    """
    kind = column.type
    if fill == "NULL":
        return fill if column.nullable else None
    if not fill.startswith(_VALUE):
        return None
    text = fill.removeprefix(_VALUE)
    if kind.is_integer or kind.name in _AS_NUMBERS:
        return text
    if kind.name in _AS_TEXT or kind.is_string or kind.name in ("enum", "set"):
        return string_literal(text)
    return None


def has_value(column: Column, literal: str) -> str:
    """The condition that a row already has the value, compared byte by byte."""
    name = quote_identifier(column.name)
    if literal == "NULL" or column.type.is_integer or column.type.name in _AS_NUMBERS | _AS_TEXT:
        return f"{name} <=> {literal}"
    return f"{_bytes(name)} <=> {_bytes(literal)}"


def _bytes(text: str) -> str:
    return f"CAST(CONVERT({text} USING utf8mb4) AS BINARY)"
