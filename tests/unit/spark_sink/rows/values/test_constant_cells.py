"""The cells that ADD COLUMN puts into the rows that are there."""

from __future__ import annotations

import pytest

from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import Column, Default, DefaultKind, Generated
from shardmerge.schemas.model.types import ColumnType
from shardmerge.spark_sink.rows.values.columns import Form
from shardmerge.spark_sink.rows.values.constant_cells import ConstantCell, added_cell


def _literal(text: str) -> Default:
    return Default(DefaultKind.LITERAL, text)


def _expression(text: str) -> Default:
    return Default(DefaultKind.EXPRESSION, text)


@pytest.mark.parametrize(
    ("kind", "nullable", "default", "expected"),
    [
        (ColumnType("int"), True, None, ConstantCell(Form.NUMBER, None)),
        (ColumnType("int"), True, Default(DefaultKind.NULL), ConstantCell(Form.NUMBER, None)),
        (ColumnType("int"), True, _literal("5"), ConstantCell(Form.NUMBER, "5")),
        (ColumnType("int"), False, None, ConstantCell(Form.NUMBER, "0")),
        (ColumnType("decimal", 5, 2), False, None, ConstantCell(Form.NUMBER, "0.00")),
        (ColumnType("varchar", 9), False, _literal("it's"), ConstantCell(Form.TEXT, "it's")),
        (ColumnType("text"), False, None, ConstantCell(Form.TEXT, "")),
        (ColumnType("blob"), False, None, ConstantCell(Form.HEX, "")),
        (ColumnType("json"), False, None, ConstantCell(Form.JSON, "null")),
        (ColumnType("binary", 2), False, None, ConstantCell(Form.HEX, "0000")),
        (ColumnType("bit", 8), False, _literal("b'101'"), ConstantCell(Form.BITS, "5")),
        (ColumnType("enum", elements=("a", "b")), False, None, ConstantCell(Form.TEXT, "a")),
        (ColumnType("date"), False, None, ConstantCell(Form.DATE, "0000-00-00")),
        (ColumnType("blob"), True, _expression("'x'"), ConstantCell(Form.HEX, "78")),
        (ColumnType("text"), True, _expression("'it'"), ConstantCell(Form.TEXT, "it")),
        (ColumnType("json"), True, _expression("json_array()"), None),
        (ColumnType("point"), False, None, None),
        (ColumnType("datetime"), False, _expression("now()"), None),
    ],
)
def test_a_row_gets_the_default_or_the_zero_value_of_its_type(
    kind: ColumnType, nullable: bool, default: Default | None, expected: ConstantCell | None
) -> None:
    column = Column("c", kind, nullable=nullable, default=default)
    assert added_cell(ShardColumn("c#1", column)) == expected


def test_what_the_server_computes_is_left_to_the_target() -> None:
    made = Column("c", ColumnType("int"), generated=Generated("a + 1", stored=True))
    counted = Column("c", ColumnType("int"), nullable=False, auto_increment=True)
    assert [added_cell(ShardColumn("c#1", column)) for column in (made, counted)] == [None, None]
