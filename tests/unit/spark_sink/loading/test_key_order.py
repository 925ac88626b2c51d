from __future__ import annotations

import pytest

from shardmerge.spark_sink.loading.key_order import KeyColumn, key_columns, order_by
from tests.strategies import table


def key(columns: str, parts: str = "k") -> tuple[KeyColumn, ...]:
    return key_columns(table(f"CREATE TABLE t ({columns}, PRIMARY KEY ({parts}))"))


@pytest.mark.parametrize(
    ("definition", "parts", "selected", "value", "literal"),
    [
        ("int", "k", "CAST(`k` + 0 AS CHAR)", "-17", "-17"),
        ("bigint unsigned", "k", "CAST(`k` + 0 AS CHAR)", "18446744073709551615", None),
        ("decimal(30,4)", "k", "CAST(`k` AS CHAR)", "-0.0001", "-0.0001"),
        ("double", "k", "CAST(`k` + 0e0 AS CHAR)", "1.5", "1.5e0"),
        ("double", "k", "CAST(`k` + 0e0 AS CHAR)", "1e100", "1e100"),
        ("bit(9)", "k", "CAST(`k` + 0 AS CHAR)", "300", "300"),
        ("year", "k", "CAST(`k` + 0 AS CHAR)", "1999", "1999"),
        ("date", "k", "CAST(`k` AS CHAR)", "0000-00-00", "'0000-00-00'"),
        ("datetime(6)", "k", "CAST(`k` AS CHAR)", "2020-01-01 00:00:00.5", None),
        ("time", "k", "CAST(`k` AS CHAR)", "-838:59:59", "'-838:59:59'"),
        ("varchar(9)", "k", "HEX(`k`)", "C3A4", "_utf8mb4 X'C3A4'"),
        ("varchar(9) charset latin1", "k", "HEX(`k`)", "E4", "_latin1 X'E4'"),
        ("varchar(9) charset utf8mb3", "k", "HEX(`k`)", "", "_utf8 X''"),
        ("text", "k(5)", "HEX(LEFT(`k`, 5))", "61", "_utf8mb4 X'61'"),
        ("binary(3)", "k", "HEX(`k`)", "00FF00", "X'00FF00'"),
        ("blob", "k(2)", "HEX(LEFT(`k`, 2))", "00", "X'00'"),
        ("enum('b','a')", "k", "CAST(`k` + 0 AS CHAR)", "2", "2"),
    ],
)
def test_a_boundary_is_exact_text(
    definition: str, parts: str, selected: str, value: str, literal: str | None
) -> None:
    (column,) = key(f"k {definition}", parts)
    assert column.selected == selected
    quoted = f"'{value}'" if definition.startswith("datetime") else value
    assert column.literal(value) == (quoted if literal is None else literal)


def test_a_text_of_another_form_is_quoted() -> None:
    (column,) = key("k int")
    assert column.literal("1 OR 1=1") == "'1 OR 1=1'"
    (column,) = key("k varchar(9)")
    assert column.literal("it's") == "'it''s'"


def test_enums_are_compared_in_the_order_that_the_index_has() -> None:
    (column,) = key("k enum('b','a')")
    assert column.compared == "(`k` + 0)"


def test_the_order_is_that_of_the_key() -> None:
    assert order_by(key("a int, `b``c` date", "`b``c` DESC, a")) == "`b``c` DESC, `a`"
    assert key_columns(table("CREATE TABLE t (a int)")) == ()
