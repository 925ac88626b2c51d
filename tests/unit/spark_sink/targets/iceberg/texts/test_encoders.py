"""Neutral values as texts in lines for Spark, and the SQL that reads them."""

from __future__ import annotations

import pytest

from shardmerge.spark_sink.rows.values.forms import Form
from shardmerge.spark_sink.rows.values.times import ZERO_DAY, day_of, moment_of
from shardmerge.spark_sink.targets.iceberg.texts.encoders import (
    Unwritable,
    encoding_of,
    value_sql,
)


def texts(form: Form, kind: str, *values: object) -> list[str | None]:
    return [*encoding_of(form, kind)(values)]


def test_times_are_microseconds() -> None:
    values = (3_020_399_000_000, -3_020_398_999_999, -1, 1_500_000, None)

    assert texts(Form.TIME, "long", *values) == [
        "3020399000000", "-3020398999999", "-1", "1500000", None,
    ]  # fmt: skip


def test_dates_of_month_or_day_0_are_null() -> None:
    dates = ("0000-00-00", "2020-00-01", "2020-01-00", "0000-01-01", "2020-10-10")
    days = [*map(day_of, dates)]
    moments = [moment_of(f"{date} 23:59:59.5") for date in dates]
    instants = [f"{date}T00:00:00.5Z" for date in dates]

    assert days[0] == ZERO_DAY
    assert texts(Form.DATE, "date", *days, None) == [None, None, None, "-719528", "18545", None]
    assert texts(Form.DATETIME_US, "timestamp", *moments, None) == [
        None, None, None, str(moments[3]), str(moments[4]), None,
    ]  # fmt: skip
    assert texts(Form.TIMESTAMP, "timestamptz", *instants, None) == [
        None, None, None, "0000-01-01T00:00:00.5Z", "2020-10-10T00:00:00.5Z", None,
    ]  # fmt: skip


def test_a_moment_has_a_place_in_a_column_with_or_without_a_time_zone() -> None:
    moment = moment_of("2020-10-10 01:02:03.5")
    zero = moment_of("0000-00-00")

    assert texts(Form.TIMESTAMP, "timestamp", "2020-10-10T01:02:03.5Z") == [str(moment)]
    assert texts(Form.DATETIME_US, "timestamptz", moment, zero) == [
        "2020-10-10 01:02:03.500000Z",
        None,
    ]
    assert texts(Form.DATETIME_MS, "timestamp", 1, zero // 1_000) == ["1000", None]


@pytest.mark.parametrize(
    ("form", "kind", "value", "text"),
    [
        (Form.ENUM, "string", "", ""),
        (Form.INTEGER, "decimal(20, 0)", 2**64 - 1, str(2**64 - 1)),
        (Form.INTEGER, "string", -1, "-1"),
        (Form.YEAR, "int", 0, "0"),
        (Form.FLOAT, "double", 0.1, "0.1"),
        (Form.DECIMAL, "decimal(5, 2)", "-0.10", "-0.10"),
        (Form.BITS, "long", 5, "5"),
        (Form.BYTES, "binary", b"\0\xff", "00ff"),
    ],
)
def test_values_become_texts_that_spark_reads(
    form: Form, kind: str, value: object, text: str
) -> None:
    assert texts(form, kind, value, None) == [text, None]


def test_a_value_of_another_form_is_unwritable() -> None:
    with pytest.raises(Unwritable, match="form text has no place in a column of type int"):
        encoding_of(Form.TEXT, "int")


def test_spark_reads_each_text_by_the_columns_type() -> None:
    assert value_sql("a[2]", "string") == "a[2]"
    assert value_sql("a[2]", "decimal(5, 2)") == "CAST(a[2] AS decimal(5, 2))"
    assert value_sql("a[2]", "date") == "date_from_unix_date(CAST(a[2] AS int))"
