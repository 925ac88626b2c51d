"""Neutral values of what Debezium writes."""

from __future__ import annotations

import base64
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardmerge.schemas.model.types import ColumnType
from shardmerge.spark_sink.rows.values.column_values import UnfitValue
from shardmerge.spark_sink.rows.values.forms import Form, form_of
from shardmerge.spark_sink.rows.values.readers import reader


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.mark.parametrize(
    ("kind", "form", "given_", "neutral"),
    [
        (ColumnType("tinyint", 1), Form.INTEGER, True, 1),
        (ColumnType("bigint", unsigned=True), Form.INTEGER, 2**64 - 1, 2**64 - 1),
        (ColumnType("year"), Form.YEAR, 1900, 0),
        (ColumnType("decimal", 5, 2), Form.DECIMAL, "-0.10", "-0.10"),
        (ColumnType("double"), Form.FLOAT, 5, 5.0),
        (ColumnType("float"), Form.FLOAT, 0.1, struct.unpack("<f", struct.pack("<f", 0.1))[0]),
        (ColumnType("bit", 1), Form.BITS, True, 1),
        (ColumnType("bit", 16), Form.BITS, b64(b"\x01\x02"), 0x0201),
        (ColumnType("date"), Form.DATE, 5, 5),
        (ColumnType("time", fsp=3), Form.TIME, -1_000, -1_000),
        (ColumnType("datetime", fsp=3), Form.DATETIME_MS, -1, -1),
        (ColumnType("datetime", fsp=6), Form.DATETIME_US, -1, -1),
        (ColumnType("timestamp"), Form.TIMESTAMP, "2021-03-28T01:30:00+00:00",
         "2021-03-28T01:30:00Z"),
        (ColumnType("timestamp"), Form.TIMESTAMP, "1970-01-01T00:00:00Z", "0000-00-00T00:00:00Z"),
        (ColumnType("varchar", 9), Form.TEXT, "x", "x"),
        (ColumnType("set", elements=("a", "b")), Form.TEXT, "a,b", "a,b"),
        (ColumnType("enum", elements=("a", "b")), Form.ENUM, "", ""),
        (ColumnType("enum", elements=("a", "")), Form.TEXT, "", ""),
        (ColumnType("json"), Form.JSON, "[1]", "[1]"),
        (ColumnType("uuid"), Form.TEXT, "0a2b-", "0a2b-"),
        (ColumnType("binary", 3), Form.BYTES, b64(b"a"), b"a\0\0"),
        (ColumnType("blob"), Form.BYTES, b64(b"\0a"), b"\0a"),
        (ColumnType("point"), Form.BYTES, {"wkb": b64(b"\1"), "srid": 4326}, b"\xe6\x10\0\0\1"),
    ],
)  # fmt: skip
def test_each_type_has_a_form_and_neutral_values(
    kind: ColumnType, form: Form, given_: object, neutral: object
) -> None:
    column = reader(kind)
    for values in ([given_], [None, given_]):
        found = [*column.read(values)][-1]
        assert (column.form, type(found), found) == (form, type(neutral), neutral)
    assert form_of(kind) is form


@given(st.binary())
def test_bytes_of_both_formats_are_the_same(data: bytes) -> None:
    kind = ColumnType("varbinary", 300)
    assert [*reader(kind).read([b64(data)])] == [*reader(kind, base64=False).read([data])] == [data]


def test_a_check_of_the_target_sees_neutral_values() -> None:
    seen: list[object] = []
    reader(ColumnType("bit", 8), check=seen.extend).read([b64(b"\5")])
    assert seen == [5]


@pytest.mark.parametrize("name", ["int", "decimal", "double", "bit", "date", "blob", "point"])
def test_null_is_null_in_every_type(name: str) -> None:
    assert [*reader(ColumnType(name)).read([None, None])] == [None, None]


def test_an_unknown_type_has_no_form() -> None:
    assert form_of(ColumnType("vector")) is None
    with pytest.raises(UnfitValue, match="vector"):
        reader(ColumnType("vector"))
