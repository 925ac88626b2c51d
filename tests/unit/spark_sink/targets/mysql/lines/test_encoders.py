"""Values from Debezium's JSON to the texts that a server of the MySQL family reads."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardmerge.schemas.model.types import ColumnType
from shardmerge.spark_sink.rows.values.column_values import UnfitValue
from shardmerge.spark_sink.rows.values.readers import reader
from tests.unit.spark_sink.row_events import mysql_texts


def one(column_type: ColumnType, value: object) -> str | None:
    return mysql_texts(column_type, [value])[0]


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.mark.parametrize(("value", "text"), [(0, "0000"), (1900, "0000"), (2155, "2155")])
def test_a_year_has_four_digits(value: int, text: str) -> None:
    assert one(ColumnType("year"), value) == text


def test_a_float_is_written_as_the_number_that_it_is() -> None:
    assert one(ColumnType("float"), 3.4028235e38) == "3.4028234663852886e38"
    assert one(ColumnType("float"), -0.1) == "-0.10000000149011612"
    assert one(ColumnType("double"), -0.1) == "-0.1"


def test_bits_are_little_endian_bytes_or_a_boolean() -> None:
    assert one(ColumnType("bit", 1), True) == "1"
    assert one(ColumnType("bit", 64), b64(bytes(range(8, 0, -1)))) == str(0x0102030405060708)


@given(st.binary())
def test_every_byte_travels_as_hexadecimal(data: bytes) -> None:
    assert one(ColumnType("varbinary", 300), b64(data)) == data.hex()


def test_binary_gets_back_the_zeros_that_the_binlog_cuts() -> None:
    assert one(ColumnType("binary", 4), b64(b"a")) == "61000000"


def test_geometry_becomes_the_internal_form() -> None:
    value = {"x": 1.0, "wkb": b64(b"\x01\x02"), "srid": 4326}

    assert one(ColumnType("point"), value) == "e61000000102"
    assert one(ColumnType("geometry"), {"wkb": b64(b"\x01"), "srid": None}) == "0000000001"


def test_integers_are_written_whole_and_booleans_as_numbers() -> None:
    column = ColumnType("bigint", unsigned=True)

    assert mysql_texts(column, [2**64 - 1, None, True, False]) == [str(2**64 - 1), None, "1", "0"]


@pytest.mark.parametrize("value", ["99999.000000000000000000000000000001", "-0.10", "0"])
def test_decimals_keep_every_digit(value: str) -> None:
    assert one(ColumnType("decimal", 65, 30), value) == value


@pytest.mark.parametrize("value", ["1); DROP TABLE t", "1e5", "", "1,2", "٣", "1\n"])
def test_what_is_no_decimal_never_reaches_a_statement(value: str) -> None:
    with pytest.raises(UnfitValue, match="not a decimal"):
        mysql_texts(ColumnType("decimal", 10, 2), ["1.00", value])


def test_the_error_value_of_an_enum_is_index_0() -> None:
    assert one(ColumnType("enum", elements=("a", "b")), "") == "0"
    assert one(ColumnType("enum", elements=("a", "")), "") == ""
    with pytest.raises(UnfitValue, match="index 0"):
        one(ColumnType("enum", elements=("0", "1")), "")


@pytest.mark.parametrize(
    ("column_type", "value"),
    [
        (ColumnType("int"), "5"),
        (ColumnType("int"), 5.0),
        (ColumnType("varchar", 5), 5),
        (ColumnType("date"), "2020-01-01"),
        (ColumnType("blob"), "not base64!"),
        (ColumnType("point"), {"srid": 0}),
        (ColumnType("double"), "1.5"),
        (ColumnType("year"), 10_000),
    ],
)
def test_a_value_of_another_type_is_refused(column_type: ColumnType, value: object) -> None:
    with pytest.raises(UnfitValue):
        mysql_texts(column_type, [None, value])


@pytest.mark.parametrize(
    "name", ["int", "decimal", "double", "bit", "date", "json", "blob", "point"]
)
def test_null_is_null_in_every_type(name: str) -> None:
    assert mysql_texts(ColumnType(name), [None, None]) == [None, None]


def test_an_unknown_type_is_refused() -> None:
    with pytest.raises(UnfitValue, match="vector"):
        reader(ColumnType("vector"))


@given(st.lists(st.none() | st.integers(-(2**63), 2**64 - 1), max_size=20))
def test_integers_are_those_that_python_writes(values: list[int | None]) -> None:
    if values:
        assert mysql_texts(ColumnType("bigint"), values) == [
            None if v is None else str(v) for v in values
        ]
    assert reader(ColumnType("bigint")).read_column(values)[1] == (None in values)


@given(
    st.lists(st.none() | st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20)
)
def test_the_text_of_a_double_names_that_number(values: list[float | None]) -> None:
    cells = mysql_texts(ColumnType("double"), values)
    assert [None if c is None else float(c).hex() for c in cells] == [
        None if v is None else v.hex() for v in values
    ]


@pytest.mark.parametrize(
    ("column_type", "good", "bad"),
    [
        (ColumnType("timestamp"), "2021-03-28T01:30:00Z", "2021-03-28 01:30:00"),
        (ColumnType("timestamp"), "2021-03-28T01:30:00Z", "2021-03-28T01:30:00Z,"),
        (ColumnType("decimal", 9, 2), "1.00", "1..0"),
        (ColumnType("date"), 5, 2_932_897),
        (ColumnType("datetime", fsp=6), 5, 10**18),
        (ColumnType("float"), 1.5, 1e300),
    ],
)
def test_one_bad_value_among_good_ones_and_nulls_is_found(
    column_type: ColumnType, good: object, bad: object
) -> None:
    assert mysql_texts(column_type, [good, None])[1] is None
    with pytest.raises(UnfitValue):
        mysql_texts(column_type, [good, None, bad, good])


def test_the_year_0_comes_in_two_ways() -> None:
    assert mysql_texts(ColumnType("year"), [0, 1900, 1901]) == ["0000", "0000", "1901"]
