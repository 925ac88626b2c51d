"""MySQL's sizes and zero values."""

from __future__ import annotations

import pytest

from shardmerge.schemas.model.mysql_facts import VALUE_BYTES, size_index, zero_value
from shardmerge.schemas.model.tables import Default, DefaultKind
from shardmerge.schemas.model.types import BLOB_NAMES, TEXT_NAMES, ColumnType


def test_a_value_of_a_text_type_has_as_many_bytes_as_one_of_its_blob_type() -> None:
    assert [VALUE_BYTES[name] for name in TEXT_NAMES] == [VALUE_BYTES[name] for name in BLOB_NAMES]
    assert VALUE_BYTES["mediumtext"] == 2**24 - 1


@pytest.mark.parametrize(
    ("size_bytes", "index"), [(0, 0), (255, 0), (256, 1), (65_535, 1), (65_536, 2), (2**40, 3)]
)
def test_the_least_size_that_holds_so_many_bytes_is_found(size_bytes: int, index: int) -> None:
    assert size_index(size_bytes) == index


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (ColumnType("int"), Default(DefaultKind.LITERAL, "0")),
        (ColumnType("decimal", 10, 2), Default(DefaultKind.LITERAL, "0.00")),
        (ColumnType("datetime", fsp=3), Default(DefaultKind.LITERAL, "0000-00-00 00:00:00.000")),
        (ColumnType("binary", 2), Default(DefaultKind.LITERAL, "0x0000")),
        (ColumnType("enum", elements=("x", "y")), Default(DefaultKind.LITERAL, "x")),
        (ColumnType("text"), Default(DefaultKind.EXPRESSION, "''")),
        (ColumnType("json"), Default(DefaultKind.EXPRESSION, "'null'")),
        (ColumnType("point"), None),
    ],
)
def test_a_type_has_the_zero_value_that_mysql_fills_in(
    kind: ColumnType, expected: Default | None
) -> None:
    assert zero_value(kind) == expected
