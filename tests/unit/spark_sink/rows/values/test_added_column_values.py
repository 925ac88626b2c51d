"""What ADD COLUMN puts into the rows that are there."""

from __future__ import annotations

import pytest

from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import (
    Column,
    Default,
    DefaultKind,
    Generated,
)
from shardmerge.schemas.model.types import ColumnType
from shardmerge.spark_sink.rows.values.added_column_values import (
    Fill,
    fill_of,
)
from shardmerge.spark_sink.rows.values.columns import Form


def _literal(text: str) -> Default:
    return Default(DefaultKind.LITERAL, text)


@pytest.mark.parametrize(
    ("kind", "nullable", "default", "expected"),
    [
        (ColumnType("int"), True, None, Fill(Form.NUMBER, None)),
        (ColumnType("int"), True, Default(DefaultKind.NULL), Fill(Form.NUMBER, None)),
        (ColumnType("int"), True, _literal("5"), Fill(Form.NUMBER, "5")),
        (ColumnType("int"), False, None, Fill(Form.NUMBER, "0")),
        (ColumnType("decimal", 5, 2), False, None, Fill(Form.NUMBER, "0.00")),
        (ColumnType("varchar", 9), False, _literal("it's"), Fill(Form.TEXT, "it's")),
        (ColumnType("text"), False, None, Fill(Form.TEXT, "")),
        (ColumnType("blob"), False, None, Fill(Form.HEX, "")),
        (ColumnType("json"), False, None, Fill(Form.JSON, "null")),
        (ColumnType("binary", 2), False, None, Fill(Form.HEX, "0000")),
        (ColumnType("bit", 8), False, _literal("b'101'"), Fill(Form.BITS, "5")),
        (ColumnType("enum", elements=("a", "b")), False, None, Fill(Form.TEXT, "a")),
        (ColumnType("date"), False, None, Fill(Form.DATE, "0000-00-00")),
        (ColumnType("point"), False, None, None),
        (ColumnType("datetime"), False, Default(DefaultKind.EXPRESSION, "now()"), None),
    ],
)
def test_a_row_gets_the_default_or_the_zero_value_of_its_type(
    kind: ColumnType, nullable: bool, default: Default | None, expected: Fill | None
) -> None:
    column = Column("c", kind, nullable=nullable, default=default)
    assert fill_of(ShardColumn("c#1", column)) == expected


def test_what_the_server_computes_is_left_to_the_target() -> None:
    made = Column("c", ColumnType("int"), generated=Generated("a + 1", stored=True))
    counted = Column("c", ColumnType("int"), nullable=False, auto_increment=True)
    assert [fill_of(ShardColumn("c#1", column)) for column in (made, counted)] == [None, None]
