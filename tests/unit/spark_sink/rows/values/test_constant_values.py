"""The values that ADD COLUMN puts into the rows that are there."""

from __future__ import annotations

import pytest

from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import Column, Default, DefaultKind, Generated
from shardmerge.schemas.model.types import ColumnType
from shardmerge.spark_sink.rows.values.constant_values import ConstantValue, added_value
from shardmerge.spark_sink.rows.values.forms import Form
from shardmerge.spark_sink.rows.values.times import DAY_MS, ZERO_DAY


def _literal(text: str) -> Default:
    return Default(DefaultKind.LITERAL, text)


def _expression(text: str) -> Default:
    return Default(DefaultKind.EXPRESSION, text)


@pytest.mark.parametrize(
    ("kind", "nullable", "default", "expected"),
    [
        (ColumnType("int"), True, None, ConstantValue(Form.INTEGER, None)),
        (ColumnType("int"), True, Default(DefaultKind.NULL), ConstantValue(Form.INTEGER, None)),
        (ColumnType("int"), True, _literal("5"), ConstantValue(Form.INTEGER, 5)),
        (ColumnType("int"), False, None, ConstantValue(Form.INTEGER, 0)),
        (ColumnType("decimal", 5, 2), False, None, ConstantValue(Form.DECIMAL, "0.00")),
        (ColumnType("varchar", 9), False, _literal("it's"), ConstantValue(Form.TEXT, "it's")),
        (ColumnType("text"), False, None, ConstantValue(Form.TEXT, "")),
        (ColumnType("blob"), False, None, ConstantValue(Form.BYTES, b"")),
        (ColumnType("json"), False, None, ConstantValue(Form.JSON, "null")),
        (ColumnType("binary", 2), False, None, ConstantValue(Form.BYTES, b"\0\0")),
        (ColumnType("bit", 8), False, _literal("b'101'"), ConstantValue(Form.BITS, 5)),
        (ColumnType("enum", elements=("a", "b")), False, None, ConstantValue(Form.ENUM, "a")),
        (ColumnType("date"), False, None, ConstantValue(Form.DATE, ZERO_DAY)),
        (
            ColumnType("date"),
            False,
            _literal("2026-00-10"),
            ConstantValue(Form.DATE, ZERO_DAY - 20_260_010),
        ),
        (
            ColumnType("datetime", fsp=3),
            False,
            None,
            ConstantValue(Form.DATETIME_MS, ZERO_DAY * DAY_MS),
        ),
        (
            ColumnType("time"),
            False,
            _literal("-10:00:00"),
            ConstantValue(Form.TIME, -36_000_000_000),
        ),
        (
            ColumnType("timestamp"),
            False,
            _literal("2026-01-02 03:04:05"),
            ConstantValue(Form.TIMESTAMP, "2026-01-02T03:04:05Z"),
        ),
        (ColumnType("year"), False, None, ConstantValue(Form.YEAR, 0)),
        (ColumnType("double"), False, _literal("0.5"), ConstantValue(Form.FLOAT, 0.5)),
        (ColumnType("blob"), True, _expression("'x'"), ConstantValue(Form.BYTES, b"x")),
        (ColumnType("text"), True, _expression("'it'"), ConstantValue(Form.TEXT, "it")),
        (ColumnType("json"), True, _expression("json_array()"), None),
        (ColumnType("point"), False, None, None),
        (ColumnType("datetime"), False, _expression("now()"), None),
    ],
)
def test_a_row_gets_the_default_or_the_zero_value_of_its_type(
    kind: ColumnType, nullable: bool, default: Default | None, expected: ConstantValue | None
) -> None:
    column = Column("c", kind, nullable=nullable, default=default)
    assert added_value(ShardColumn("c#1", column)) == expected


def test_what_the_server_computes_is_left_to_the_target() -> None:
    made = Column("c", ColumnType("int"), generated=Generated("a + 1", stored=True))
    counted = Column("c", ColumnType("int"), nullable=False, auto_increment=True)
    assert [added_value(ShardColumn("c#1", column)) for column in (made, counted)] == [None, None]
