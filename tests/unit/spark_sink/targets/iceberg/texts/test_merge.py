from __future__ import annotations

from decimal import Decimal

from shardmerge.spark_sink.targets.iceberg.texts.layout import Field
from shardmerge.spark_sink.targets.iceberg.texts.merge import (
    key_bounds,
    key_bounds_sql,
    merge_sql,
)

COLUMNS = (
    Field(1, "id", "long"),
    Field(2, "v", "string"),
    Field(3, "_s", "string"),
    Field(4, "day", "date"),
    Field(5, "d", "decimal(9, 2)"),
)


def test_the_bounds_of_a_key_are_asked_for_in_one_row() -> None:
    assert key_bounds_sql("SELECT 1", COLUMNS, ["id", "day", "_S"]) == (
        "SELECT min(c0), max(c0), min(c2), max(c2) FROM (SELECT 1)"
    )
    assert key_bounds_sql("SELECT 1", COLUMNS, ["day"]) == "SELECT 1 FROM (SELECT 1)"


def test_a_merge_looks_only_for_rows_within_the_bounds() -> None:
    within = key_bounds([1, 9, "a'b\\", "z"], COLUMNS, ["id", "day", "_s"])
    assert within == (
        "t.`id` BETWEEN CAST('1' AS bigint) AND CAST('9' AS bigint)"
        " AND t.`_s` BETWEEN 'a\\'b\\\\' AND 'z'"
    )
    assert key_bounds([Decimal("1.50"), Decimal("2.00")], COLUMNS, ["d"]) == (
        "t.`d` BETWEEN CAST('1.50' AS decimal(9, 2)) AND CAST('2.00' AS decimal(9, 2))"
    )
    sql = merge_sql("lake.m.t", COLUMNS[:1], ["id"], "SELECT 1", within="t.`id` BETWEEN 1 AND 9")
    assert "ON t.`id` = s.c0 AND t.`id` BETWEEN 1 AND 9 WHEN" in sql


def test_keys_without_bounds_are_looked_for_everywhere() -> None:
    assert key_bounds([1], COLUMNS, ["day"]) == ""
    assert key_bounds([None, None], COLUMNS, ["id"]) == ""
    assert "ON t.`id` = s.c0 WHEN" in merge_sql("lake.m.t", COLUMNS[:1], ["id"], "SELECT 1")
