"""Makes neutral values of what a source's server answers to a SELECT of a first load. Pure.

A client without conversions of its own gives texts, and bytes for binary types
(``loading.chunk_queries`` asks for the columns so that no digit is lost). The neutral values are
those that the shard's stream would have for the same row. For a row must not change by being read
in another way, and a row without a key is found again by all of its values. So dates are what
Debezium makes of them from the binlog: a zero date of a column that may be NULL is NULL.

Source: ``connectors.debezium.value_limits`` for what Debezium makes of dates.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from shardmerge.schemas.model.tables import Column

from .column_values import ColumnValues, UnfitValue, around_nulls
from .forms import Form, form_of
from .readers import Check, Convert, Reader
from .times import (
    DAY_US,
    FIRST_DAY,
    ZERO_DAY,
    ZERO_TIMESTAMP,
    day_of,
    moment_of,
    time_of,
)

_FIRST_READABLE_DAY = FIRST_DAY + 366
"""0001-01-01: from the binlog Debezium reads no date in the year 0000, which has 366 days."""


def server_reader(column: Column, check: Check | None = None) -> Reader:
    """The reader for a column's values as the server sends them.

    Args:
        column: Of the shard.
        check: See ``Reader``.

    Raises:
        UnfitValue: The type is not known here.
    """
    form = form_of(column.type)
    if form is None:
        raise UnfitValue(f"values of type {column.type.name} cannot be applied", code="SM-1509")
    if form is Form.BYTES:
        return Reader(form, frozenset((bytes,)), _as_they_are, check)
    return Reader(form, frozenset((str,)), _convert(form, column), check)


def _convert(form: Form, column: Column) -> Convert:
    zero = None if column.nullable else ZERO_DAY
    match form:
        case Form.INTEGER | Form.YEAR | Form.BITS:
            return _each(int)
        case Form.FLOAT:
            return _each(float)
        case Form.DATE:
            return _each(partial(_days, zero=zero))
        case Form.TIME:
            return _each(time_of)
        case Form.DATETIME_MS:
            return _each(partial(_moment, zero=zero, unit=1_000))
        case Form.DATETIME_US:
            return _each(partial(_moment, zero=zero, unit=1))
        case Form.TIMESTAMP:
            return _each(partial(_timestamp, zero=None if column.nullable else ZERO_TIMESTAMP))
        case _:
            return _as_they_are


def _as_they_are(values: ColumnValues, _: bool) -> ColumnValues:
    return values


def _each(convert: Callable[[str], Any]) -> Convert:
    def convert_all(values: ColumnValues, nulls: bool) -> ColumnValues:
        if nulls:
            return around_nulls(lambda present: [*map(convert, present)], values)
        return [*map(convert, values)]

    return convert_all


def _days(text: str, zero: int | None) -> int | None:
    days = day_of(text)
    return days if days >= _FIRST_READABLE_DAY else zero


def _moment(text: str, zero: int | None, unit: int) -> int | None:
    micros = moment_of(text)
    if micros < _FIRST_READABLE_DAY * DAY_US:
        return None if zero is None else zero * DAY_US // unit
    return micros // unit


def _timestamp(text: str, zero: str | None) -> str | None:
    """ISO 8601 in UTC: the session that reads has the time zone ``+00:00``."""
    return zero if text.startswith("0000") else f"{text.replace(' ', 'T')}Z"
