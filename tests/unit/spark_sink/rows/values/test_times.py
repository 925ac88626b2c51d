"""Dates and times from Debezium's numbers and texts to MySQL's."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardmerge.schemas.model.types import ColumnType
from shardmerge.spark_sink.rows.values.column_values import UnfitValue
from shardmerge.spark_sink.rows.values.times import ZERO_DAY, date_text, day_of, moment_of, time_of
from tests.unit.spark_sink.row_events import mysql_texts


def one(column_type: ColumnType, value: object) -> str | None:
    return mysql_texts(column_type, [value])[0]


@given(st.dates())
def test_a_date_is_read_back_from_its_text(day: dt.date) -> None:
    assert day_of(day.isoformat()) == (day - dt.date(1970, 1, 1)).days


@pytest.mark.parametrize("text", ["0000-00-00", "2026-00-10", "2026-10-00", "9999-00-00"])
def test_a_date_whose_month_or_day_is_0_has_a_number_too(text: str) -> None:
    assert date_text(day_of(text)) == text
    assert day_of(text) <= ZERO_DAY
    assert moment_of(f"{text} 23:59:59.999999") // 86_400_000_000 == day_of(text)


@given(st.dates())
def test_days_become_the_date_that_python_gives(day: dt.date) -> None:
    assert date_text((day - dt.date(1970, 1, 1)).days) == day.isoformat()


def test_the_year_0_and_the_last_day_are_dates_too() -> None:
    assert date_text(-719_528) == "0000-01-01"
    assert date_text(2_932_896) == "9999-12-31"


@pytest.mark.parametrize("days", [-719_529, 2_932_897])
def test_a_day_outside_mysqls_years_is_refused(days: int) -> None:
    with pytest.raises(UnfitValue, match="outside"):
        one(ColumnType("date"), days)


@given(st.datetimes())
def test_microseconds_become_the_datetime_that_python_gives(moment: dt.datetime) -> None:
    micros = (moment - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)

    text = one(ColumnType("datetime", fsp=6), micros)
    assert text is not None
    assert text == moment.isoformat(" ")
    assert moment_of(text) == micros
    text = one(ColumnType("datetime", fsp=3), micros // 1000)
    assert text is not None
    assert text[:19] == moment.isoformat(" ")[:19]


def test_a_datetime_before_1970_keeps_its_fraction() -> None:
    assert one(ColumnType("datetime", fsp=3), -1) == "1969-12-31 23:59:59.999"


@pytest.mark.parametrize(
    ("micros", "fsp", "text"),
    [
        (0, 0, "00:00:00"),
        (-1, 6, "-00:00:00.000001"),
        (3_020_399_000_000, 0, "838:59:59"),
        (-3_020_398_999_999, 6, "-838:59:58.999999"),
    ],
)
def test_times_may_be_negative_and_longer_than_a_day(micros: int, fsp: int, text: str) -> None:
    assert one(ColumnType("time", fsp=fsp), micros) == text
    assert time_of(text) == micros


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("2021-03-28T01:30:00Z", "2021-03-28 01:30:00"),
        ("2038-01-19T03:14:07.999999Z", "2038-01-19 03:14:07.999999"),
        ("2021-03-28T01:30:00+00:00", "2021-03-28 01:30:00"),
        ("1970-01-01T00:00:00Z", "0000-00-00 00:00:00"),
    ],
)
def test_timestamps_are_utc_and_the_impossible_one_is_zero(value: str, text: str) -> None:
    assert one(ColumnType("timestamp"), value) == text


def test_a_timestamp_of_another_zone_is_refused() -> None:
    with pytest.raises(UnfitValue, match="UTC"):
        one(ColumnType("timestamp"), "2021-03-28T01:30:00+02:00")


def test_timestamps_of_both_spellings_of_utc_and_null_may_be_mixed() -> None:
    values = ["2021-03-28T01:30:00Z", None, "2021-03-28T01:30:00.5+00:00", "1970-01-01T00:00:00Z"]
    assert mysql_texts(ColumnType("timestamp"), values) == [
        "2021-03-28 01:30:00", None, "2021-03-28 01:30:00.5", "0000-00-00 00:00:00",
    ]  # fmt: skip


def test_the_converters_zero_day_is_the_zero_date() -> None:
    assert one(ColumnType("date"), ZERO_DAY) == "0000-00-00"
    assert one(ColumnType("datetime", fsp=3), ZERO_DAY * 86_400_000) == "0000-00-00 00:00:00"
    assert one(ColumnType("datetime", fsp=6), ZERO_DAY * 86_400_000_000) == "0000-00-00 00:00:00"
