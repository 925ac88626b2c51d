"""Encodes neutral values for an Iceberg table: texts in lines, and the Spark SQL that reads them.

A date travels as its number of days, a DATETIME as its number of microseconds; Spark makes values
of these numbers. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from shardmerge.spark_sink.rows.values.column_values import ColumnValues
from shardmerge.spark_sink.rows.values.forms import Form
from shardmerge.spark_sink.rows.values.times import (
    DAY_US,
    ZERO_DAY,
    datetime_texts_us,
    moment_of,
)

Encode: TypeAlias = Callable[[ColumnValues], Sequence[str | None]]


class Unwritable(Exception):
    """A value cannot be stored in its column of the table. ``code``: see ``schemas.codes``."""

    def __init__(self, reason: str, hint: str, code: str = "SM-1521") -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint
        self.code = code


def encoding_of(form: Form, kind: str) -> Encode:
    """The function that makes texts of values.

    Args:
        form: Of the values.
        kind: Iceberg's type of the table's column; ``value_sql`` reads the texts.

    Raises:
        Unwritable: Values of this form have no place in such a column.
    """
    encode = _ENCODINGS.get((form, _family(kind)))
    if encode is None:
        raise Unwritable(
            f"a value of form {form.value} has no place in a column of type {kind}",
            "somebody changed the type of the target's column",
        )
    return encode


def value_sql(text: str, kind: str) -> str:
    """Spark SQL for the value of a column of Iceberg's type ``kind``; ``text``: SQL of its text."""
    return _READ.get(_family(kind), "CAST({} AS {kind})").format(text, kind=kind)


def _family(kind: str) -> str:
    return kind.partition("(")[0]


def _as_they_are(values: ColumnValues) -> Sequence[str | None]:
    return values


def _each(convert: Callable[[Any], str | None]) -> Encode:
    return lambda values: [None if v is None else convert(v) for v in values]


def _day(value: int) -> str | None:
    """NULL for a date whose month or day is 0: Spark has no such dates."""
    return None if value <= ZERO_DAY else str(value)


def _moment(value: int) -> str | None:
    return None if value < _AFTER_ZERO_DATES else str(value)


_AFTER_ZERO_DATES = (ZERO_DAY + 1) * DAY_US


def _is_zero(value: str) -> bool:
    return "-00" in value[4:10]


def _instant(value: str) -> str | None:
    return None if _is_zero(value) else value


def _moment_of_instant(value: str) -> str | None:
    """A TIMESTAMP in a column without time zone: the microseconds of its time in UTC."""
    return None if _is_zero(value) else str(moment_of(value[:-1].replace("T", " ")))


def _instant_of_moment(value: int) -> str | None:
    if value < _AFTER_ZERO_DATES:
        return None
    return f"{datetime_texts_us([value], nulls=False)[0]}Z"


_ENCODINGS: dict[tuple[Form, str], Encode] = {
    (Form.TEXT, "string"): _as_they_are,
    (Form.ENUM, "string"): _as_they_are,
    (Form.JSON, "string"): _as_they_are,
    (Form.BITS, "long"): _each(str),
    (Form.BITS, "decimal"): _each(str),
    (Form.BYTES, "binary"): _each(bytes.hex),
    (Form.TIME, "long"): _each(str),
    (Form.DATE, "date"): _each(_day),
    (Form.DATETIME_MS, "timestamp"): _each(lambda v: _moment(v * 1_000)),
    (Form.DATETIME_MS, "timestamptz"): _each(lambda v: _instant_of_moment(v * 1_000)),
    (Form.DATETIME_US, "timestamp"): _each(_moment),
    (Form.DATETIME_US, "timestamptz"): _each(_instant_of_moment),
    (Form.TIMESTAMP, "timestamp"): _each(_moment_of_instant),
    (Form.TIMESTAMP, "timestamptz"): _each(_instant),
}
"""Form and family of the column's type → encoding; other pairs are unwritable."""
for _kind in ("string", "int", "long", "float", "double", "decimal"):
    _ENCODINGS |= {(form, _kind): _each(str) for form in (Form.INTEGER, Form.YEAR)}
    _ENCODINGS |= {(Form.FLOAT, _kind): _each(repr), (Form.DECIMAL, _kind): _as_they_are}
_READ = {
    "string": "{}",
    "long": "CAST({} AS bigint)",
    "binary": "unhex({})",
    "date": "date_from_unix_date(CAST({} AS int))",
    # The session's time zone is UTC (``IcebergTarget``), so the cast changes nothing.
    "timestamp": "CAST(timestamp_micros(CAST({} AS bigint)) AS timestamp_ntz)",
    "timestamptz": "CAST({} AS timestamp)",
}
