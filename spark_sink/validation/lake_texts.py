"""The values, keys and digests of an Iceberg table, as Spark SQL. Pure.

Spark writes each value as the shards write it for an Iceberg target (``value_texts``), byte by
byte:

* a FLOAT or DOUBLE as the eight bytes of the double, within the bytes of a point;
* a TIME, which the table has as microseconds, as MySQL writes a TIME;
* bytes and spatial values as hexadecimal digits;
* dates and times with the digits behind the second that the joined type has.

Spark's SHA-256 of equal bytes is that of the servers. So the digests of ranges and rows can be
compared, and the table's rows stay in Spark.

Source: Spark SQL Reference, "Built-in Functions" and "Datetime Patterns"; the texts of all types:
tests/integration/spark/test_iceberg_types.py.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace

from shardmerge.schemas.model.types import SPATIAL_NAMES, ColumnType
from shardmerge.spark_sink.rows.values.forms import form_of

from .row_keys import RowKeyColumn
from .value_texts import DATE_NAMES, DOUBLE_NAMES, LONG_NAMES, ValueText

DIGITS = 38
"""Digits of Spark's longest decimal. Iceberg has a longer one as text."""
_KEY_NAMES = frozenset(("decimal", "date", "datetime", "timestamp", "year"))
_SECOND_US, _HOUR_US = 1_000_000, 3_600_000_000
_POINT_HEAD, _POINT_TAIL = "0101000000", "0" * 16
"""Of the WKB of a point, in front of and behind its first coordinate."""


def lake_text(column: str, kind: ColumnType) -> ValueText | None:
    """The text of a column's value.

    Args:
        column: Its quoted name.
        kind: The joined type, which the table's own type holds.

    Returns:
        None for a type whose values cannot be compared.
    """
    if form_of(kind) is None or (kind.name == "decimal" and (kind.length or 10) > DIGITS):
        return None
    return replace(_written(column, kind), value=column)


def _written(column: str, kind: ColumnType) -> ValueText:
    name, is_long = kind.name, kind.name in LONG_NAMES
    if name in DOUBLE_NAMES:
        return ValueText(_double(column))
    if kind.is_binary or name in SPATIAL_NAMES:
        return ValueText(f"hex({column})", is_long=is_long)
    if kind.is_string or name in ("enum", "set"):
        return ValueText(column, f"CAST(char_length({column}) AS string)", is_long=is_long)
    if name == "json":
        return ValueText(column, is_long=True, is_json=True)
    if name == "time":
        return ValueText(_time(column, kind.fsp))
    if name in DATE_NAMES and name != "date":
        return ValueText(_moment(column, kind.fsp))
    return ValueText(f"CAST({column} AS string)")


def _double(column: str) -> str:
    """The bytes of a double from the last to the first, as a point has them."""
    bits = (
        "CAST(java_method('java.lang.Double', 'doubleToRawLongBits',"
        f" CAST({column} AS double) + 0.0D) AS bigint)"
    )
    digits = f"lpad(hex({bits}), 16, '0')"
    turned = ", ".join(f"substring({digits}, {at}, 2)" for at in range(15, 0, -2))
    return f"IF({column} IS NULL, NULL, concat('{_POINT_HEAD}', {turned}, '{_POINT_TAIL}'))"


def _time(column: str, fsp: int) -> str:
    size = f"abs({column})"
    parts = (
        f"IF({column} < 0, '-', ''), {size} div {_HOUR_US},"
        f" {size} div {60 * _SECOND_US} % 60, {size} div {_SECOND_US} % 60"
    )
    text = f"format_string('%s%02d:%02d:%02d', {parts})"
    if fsp:
        fraction = f"lpad(CAST({size} % {_SECOND_US} AS string), 6, '0')"
        text = f"concat({text}, '.', left({fraction}, {fsp}))"
    return f"IF({column} IS NULL, NULL, {text})"


def _moment(column: str, fsp: int) -> str:
    pattern = "yyyy-MM-dd HH:mm:ss" + (f".{'S' * fsp}" if fsp else "")
    return f"date_format({column}, '{pattern}')"


def is_lake_key(kind: ColumnType) -> bool:
    """Whether ranges of an Iceberg table can be cut by a column of this joined type."""
    if kind.name == "decimal":
        return (kind.length or 10) <= DIGITS
    return kind.is_integer or kind.is_string or kind.is_binary or kind.name in _KEY_NAMES


@dataclass(frozen=True, slots=True)
class LakeKeyColumn(RowKeyColumn):
    """A column of an Iceberg table's key; its texts are those of ``RowKeyColumn``."""

    @property
    def compared(self) -> str:
        """SQL by which ranges are compared and ordered. Spark orders texts by their bytes."""
        return self.value

    @property
    def equality_value(self) -> str:
        """SQL that ``equal_to`` is compared with."""
        return self.value

    @property
    def selected(self) -> str:
        """SQL that gives the key's text."""
        if self.is_bytes:
            return f"hex({self.value})"
        text = lake_text(self.value, self.target_type)
        assert text is not None, self.kind
        return text.sql

    def literal(self, value: str) -> str:
        """SQL of a key's text, for ranges."""
        return self.equal_to(value)

    def equal_to(self, value: str) -> str:
        """SQL of a key's text."""
        return key_literal(self.target_type, value)


def key_literal(kind: ColumnType, text: str) -> str:
    """Spark SQL of a key's text.

    Args:
        kind: The joined type.
        text: As ``RowKeyColumn.selected`` gives it.
    """
    if kind.is_string:
        return f"CAST(X'{text}' AS string)"
    if kind.is_binary:
        return f"X'{text}'"
    return lake_literal(kind, text)


def lake_literal(kind: ColumnType, text: str) -> str:
    """Spark SQL of the text of a value, for the table's column.

    Args:
        kind: The joined type.
        text: As ``value_texts.value_text`` gives it for an Iceberg target.
    """
    name = kind.name
    if kind.is_string or name in ("enum", "set", "json", "uuid"):
        return f"CAST(X'{text.encode().hex().upper()}' AS string)"
    if kind.is_binary or name in SPATIAL_NAMES:
        return f"X'{text}'"
    if name in DOUBLE_NAMES:
        digits = text[len(_POINT_HEAD) : -len(_POINT_TAIL)]
        return f"CAST('{_double_of(digits)!r}' AS {name})"
    if name == "decimal":
        return f"CAST('{text}' AS decimal({kind.length or 10},{kind.scale or 0}))"
    if name == "time":
        return str(_micros(text))
    if name in DATE_NAMES:
        spark = {"datetime": "timestamp_ntz"}.get(name, name)
        return f"CAST('{text}' AS {spark})"
    return text


def _double_of(digits: str) -> float:
    (value,) = struct.unpack("<d", bytes.fromhex(digits))
    return float(value)


def _micros(text: str) -> int:
    hours, minutes, seconds = text.lstrip("-").split(":")
    whole, _, fraction = seconds.partition(".")
    size = (int(hours) * 3600 + int(minutes) * 60 + int(whole)) * _SECOND_US
    size += int(fraction.ljust(6, "0") or 0)
    return -size if text.startswith("-") else size


def lake_digest(hashed: Sequence[ValueText]) -> str:
    """SQL of the first 64 bits of a row's SHA-256, as 16 hexadecimal digits.

    The digest is that of ``validation_queries.row_digest``.
    """
    values = [text.in_row for text in hashed]
    nulls = ", ".join(f"IF({text.value} IS NULL, '1', '0')" for text in hashed)
    lengths = [text.length for text in hashed if text.length and not text.is_long]
    parts = ", ".join(["'#'", *values, f"concat({nulls})", *lengths])
    return f"left(SHA2(concat_ws({parts}), 256), 16)"
