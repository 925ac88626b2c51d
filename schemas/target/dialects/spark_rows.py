"""SQL literals and conditions for values of rows in Spark SQL. Pure.

A literal has the column's type in Spark (``spark_types``): a time is a number, and text is compared
byte by byte.

Source: Spark SQL Reference, "Literals", "Operators" (``<=>``).
"""

from __future__ import annotations

import re

from shardmerge.schemas.model.names import quote_identifier
from shardmerge.schemas.model.tables import Column

from .spark_types import has_zero_dates, spark_type

_NULL, _VALUE = "NULL", "value "
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_NUMBERS = ("int", "bigint", "decimal")
_TIME = re.compile(r"(-?)(\d+):(\d\d):(\d\d)(?:\.(\d{1,6}))?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_DATETIME = re.compile(rf"{_DATE.pattern} \d\d:\d\d:\d\d(?:\.\d{{1,6}})?")
_MOMENTS = {"date": ("DATE", _DATE), "datetime": ("TIMESTAMP_NTZ", _DATETIME)}


def row_value(fill: str, column: Column) -> str | None:
    """The literal of a fill (``added_column_values.fill_text``); None when there is none."""
    null = _NULL if column.nullable else None
    if fill == _NULL:
        return null
    if not fill.startswith(_VALUE):
        return None
    text, kind = fill.removeprefix(_VALUE), column.type
    if kind.is_string or kind.name in ("enum", "set"):
        return string_literal(text)
    if kind.name == "time":
        return _microseconds(text)
    if has_zero_dates(kind):
        # A date with month or day 0 becomes NULL, as in rows from the shards.
        return null if "-00" in text[4:10] else _moment(kind.name, text)
    is_number = spark_type(kind).partition("(")[0] in _NUMBERS
    return text if is_number and _NUMBER.fullmatch(text) else None


def has_value(column: Column, literal: str) -> str:
    """The condition that a row already has a literal."""
    return f"{quote_identifier(column.name)} <=> {literal}"


def string_literal(value: str) -> str:
    """A text as a string literal of Spark SQL."""
    return f"'{value.translate(_ESCAPES)}'"


# NUL is written by four digits: \0 before two digits would be another character.
_ESCAPES = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\0": "\\u0000"})


def _moment(kind: str, text: str) -> str | None:
    head, pattern = _MOMENTS.get(kind, ("", None))
    return f"{head} '{text}'" if pattern is not None and pattern.fullmatch(text) else None


def _microseconds(text: str) -> str | None:
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    sign, hours, minutes, seconds, fraction = found.groups()
    total = (int(hours) * 60 + int(minutes)) * 60 + int(seconds)
    return f"{sign}{total * 1_000_000 + int((fraction or '').ljust(6, '0'))}"
