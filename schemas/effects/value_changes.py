"""Whether a new definition of a column keeps the column's values.

Values are kept when every row shows a client the same value as before. Then the target, which still
holds the values that the rows were written with, is right too. In doubt, values count as not kept.

Source: MySQL Reference Manual, "ALTER TABLE" (conversion of values), "Data Types"; measured on
servers: tests/integration/mysql/test_row_effects.py.
"""

from __future__ import annotations

from shardmerge.schemas.model.mysql_facts import DIGITS, VALUE_BYTES
from shardmerge.schemas.model.tables import Column
from shardmerge.schemas.model.types import (
    BLOB_NAMES,
    INTEGER_NAMES,
    SPATIAL_NAMES,
    TEXT_NAMES,
    ColumnType,
)

_BITS = dict(zip(INTEGER_NAMES, (8, 16, 24, 32, 64), strict=True))
_CHARACTER_BYTES = {"ascii": 1, "latin1": 1, "binary": 1, "utf8mb3": 3}
_SAME_BYTES = {
    ("utf8mb3", "utf8mb4"),
    ("ascii", "utf8mb4"),
    ("ascii", "utf8mb3"),
    ("ascii", "latin1"),
}
_SAME_CHARACTERS = _SAME_BYTES | {("latin1", "utf8mb4"), ("latin1", "utf8mb3")}


def value_change(before: Column, after: Column) -> str:
    """Why values of a column may have changed with its definition; "" when they are kept."""
    if before.generated != after.generated:
        return "its rows' values are computed otherwise"
    if after.auto_increment and not before.auto_increment:
        return "AUTO_INCREMENT gives numbers to rows with 0 or NULL"
    if before.nullable and not after.nullable:
        return "a session without strict mode turns NULL into the type's zero value"
    if not keeps_values(before.type, after.type):
        return "its values are converted to another type"
    return ""


def keeps_values(before: ColumnType, after: ColumnType) -> bool:
    """Whether every value of one type is the same value of another."""
    if before == after:
        return True
    if before.is_integer and after.is_integer:
        return _holds_integers(before, after)
    if before.is_integer and after.name == "decimal":
        whole = (after.length or 10) - (after.scale or 0)
        signs = before.unsigned or not after.unsigned
        return signs and not after.zerofill and DIGITS[before.name][before.unsigned] <= whole
    if before.is_string and after.is_string:
        return _holds_text(before, after)
    if before.is_binary and after.is_binary:
        return _holds_bytes(before, after)
    if before.name != after.name:
        spatial = after.name == "geometry" and before.name in SPATIAL_NAMES
        return spatial and before.srid == after.srid
    return _holds_same(before, after)


def _holds_integers(before: ColumnType, after: ColumnType) -> bool:
    low, high = _BITS[before.name], _BITS[after.name]
    if before.unsigned == after.unsigned:
        return low <= high
    return before.unsigned and low < high


def _holds_text(before: ColumnType, after: ColumnType) -> bool:
    charsets = (before.charset, after.charset)
    if before.charset != after.charset and charsets not in _SAME_CHARACTERS:
        return False
    if after.name == "char":
        # CHAR drops the spaces at the end of a varchar's or text's value.
        return before.name == "char" and (before.length or 0) <= (after.length or 0)
    if after.name == "varchar":
        fits = before.name in ("char", "varchar")
        return fits and (before.length or 0) <= (after.length or 0)
    if before.name in TEXT_NAMES:
        grows = VALUE_BYTES[before.name] < VALUE_BYTES[after.name]
        same_bytes = before.charset == after.charset or charsets in _SAME_BYTES
        return grows or (before.name == after.name and same_bytes)
    width = _CHARACTER_BYTES.get(after.charset, 4)
    return (before.length or 0) * width <= VALUE_BYTES[after.name]


def _holds_bytes(before: ColumnType, after: ColumnType) -> bool:
    if after.name == "binary":
        return False  # pads with zero bytes, or cuts
    if after.name == "varbinary":
        return before.name not in BLOB_NAMES and (before.length or 0) <= (after.length or 0)
    size = VALUE_BYTES.get(before.name, before.length or 0)
    return size <= VALUE_BYTES[after.name]


def _holds_same(before: ColumnType, after: ColumnType) -> bool:
    """Compare two types with the same name that are not integers, strings or bytes."""
    name = before.name
    if name == "decimal":
        scale, scale_after = before.scale or 0, after.scale or 0
        whole = (before.length or 10) - scale
        signs = before.unsigned or not after.unsigned
        return signs and scale <= scale_after and whole <= (after.length or 10) - scale_after
    if name in ("float", "double"):
        digits = (before.length, before.scale) == (after.length, after.scale)
        return digits and (before.unsigned or not after.unsigned)
    if name == "bit":
        return (before.length or 1) <= (after.length or 1)
    if name == "enum":
        # Values are converted by their text, so the order of the elements does not matter.
        return set(before.elements) <= set(after.elements) and _same_charset(before, after)
    if name == "set":
        # A value shows its elements in the order of the definition, so the order matters.
        kept = after.elements[: len(before.elements)] == before.elements
        return kept and _same_charset(before, after)
    if name in ("time", "datetime", "timestamp"):
        return before.fsp <= after.fsp
    return before.srid == after.srid


def _same_charset(before: ColumnType, after: ColumnType) -> bool:
    return before.charset == after.charset or (before.charset, after.charset) in _SAME_CHARACTERS
