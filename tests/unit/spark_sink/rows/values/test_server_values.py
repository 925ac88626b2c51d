from __future__ import annotations

from typing import Any

import pytest

from shardmerge.schemas.model.tables import Column
from shardmerge.spark_sink.rows.values.column_values import UnfitValue
from shardmerge.spark_sink.rows.values.forms import Form
from shardmerge.spark_sink.rows.values.readers import reader
from shardmerge.spark_sink.rows.values.server_values import server_reader
from shardmerge.spark_sink.rows.values.times import ZERO_DAY, ZERO_TIMESTAMP, moment_text
from tests.strategies import table

ZERO_MS = ZERO_DAY * 86_400_000


def column(definition: str) -> Column:
    return table(f"CREATE TABLE t (c {definition})").columns[0]


@pytest.mark.parametrize(
    ("definition", "text", "expected"),
    [
        ("tinyint(1)", "127", 127),
        ("bigint unsigned", "18446744073709551615", (1 << 64) - 1),
        ("year", "0", 0),
        ("bit(9)", "300", 300),
        ("decimal(9,4)", "-0.5000", "-0.5000"),
        ("float", "0.10000000149011612", 0.10000000149011612),
        ("double", "1e100", 1e100),
        ("date", "1970-01-02", 1),
        ("time(3)", "-838:59:59.500", -3_020_399_500_000),
        ("datetime(3)", "1970-01-01 00:00:01.500", 1_500),
        ("datetime(6)", "1970-01-01 00:00:01.500001", 1_500_001),
        ("datetime", "1969-12-31 23:59:59", -1_000),
        ("timestamp(6)", "2020-02-03 04:05:06.000007", "2020-02-03T04:05:06.000007Z"),
        ("varchar(9)", "ä\n", "ä\n"),
        ("enum('a')", "", ""),
        ("set('a','b')", "a,b", "a,b"),
        ("json", '{"a": 1.5}', '{"a": 1.5}'),
        ("varbinary(9)", b"\x00\xff", b"\x00\xff"),
        ("point", b"\x00\x00\x00\x00\x01", b"\x00\x00\x00\x00\x01"),
    ],
)
def test_values_are_neutral(definition: str, text: str | bytes, expected: Any) -> None:
    found, nulls = server_reader(column(definition)).read_column([text, None, text])
    assert list(found) == [expected, None, expected]
    assert nulls
    assert list(server_reader(column(definition)).read([text])) == [expected]


@pytest.mark.parametrize(
    ("definition", "text", "expected"),
    [
        ("date", "0000-00-00", ZERO_DAY),
        ("date", "2026-00-10", ZERO_DAY),
        ("date", "0000-12-31", ZERO_DAY),
        ("datetime", "0000-00-00 00:00:00", ZERO_MS),
        ("datetime", "2026-01-00 10:00:00", ZERO_MS),
        ("datetime(6)", "0000-12-31 23:59:59.999999", ZERO_MS * 1_000),
        ("timestamp", "0000-00-00 00:00:00", ZERO_TIMESTAMP),
    ],
)
def test_dates_that_the_binlog_does_not_give_are_what_debezium_makes_of_them(
    definition: str, text: str, expected: Any
) -> None:
    """docs/reference/values.md."""
    default = " default '2020-01-01'" if definition == "timestamp" else ""
    required = server_reader(column(f"{definition} not null{default}"))
    assert list(required.read([text])) == [expected]
    assert list(server_reader(column(f"{definition} null")).read([text])) == [None]


def test_the_first_date_that_the_binlog_gives_is_given() -> None:
    one = server_reader(column("datetime null"))
    (value,) = one.read(["0001-01-01 00:00:00"])
    assert moment_text(Form.DATETIME_MS, value) == "0001-01-01 00:00:00"


@pytest.mark.parametrize(
    "definition", ["int", "date", "datetime(6)", "varchar(9)", "json", "blob", "point", "double"]
)
def test_the_forms_are_those_of_the_stream(definition: str) -> None:
    one = column(definition)
    assert server_reader(one).form is reader(one.type).form


@pytest.mark.parametrize(
    ("definition", "value"), [("int", "x"), ("int", 5), ("date", "2020-1-1"), ("blob", "text")]
)
def test_another_value_is_refused(definition: str, value: Any) -> None:
    with pytest.raises(UnfitValue):
        server_reader(column(definition)).read([value])
