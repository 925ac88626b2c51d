from __future__ import annotations

from dataclasses import replace

from shardmerge.spark_sink.validation.compared_table import compared_table
from shardmerge.spark_sink.validation.doubts import Difference, DifferenceKind
from shardmerge.spark_sink.validation.sampled_rows import (
    MOST_WRITTEN,
    SampledRow,
    count_statement,
    sample_query,
    sampled_row,
)
from shardmerge.spark_sink.validation.validation_queries import digest_of

from .facts import S1, S2, shard, target

TABLE = compared_table(
    target("CREATE TABLE t (a int, b varbinary(9))"),
    [shard(S1, "CREATE TABLE t (a int)"), shard(S2, "CREATE TABLE t (a int, b varbinary(9))")],
)
SHARD, _ = TABLE.shards
ROW = SampledRow({"a": "7"}, {"`a`": "7"})


def counted(shards: int, target: int) -> Difference:
    return Difference(DifferenceKind.COUNT, ("99",), counts=(shards, target))


def test_of_a_shard_the_columns_that_it_has_are_read_as_texts_and_as_literals() -> None:
    sql = sample_query(TABLE, SHARD, [("99",), ("18446744073709551615",)])
    assert sql.endswith("WHERE d IN (99, 18446744073709551615) GROUP BY d")
    assert "MIN(v1)" in sql
    assert "MIN(v2)" not in sql
    assert sampled_row(TABLE, SHARD, ["7", "7"]) == ROW


def test_of_the_target_only_texts_are_read() -> None:
    sql = sample_query(TABLE, TABLE.side, [("99",)])
    assert "CONCAT('0x', HEX(`b`))" in sql
    assert "MIN(v2)" not in sql
    assert sampled_row(TABLE, TABLE.side, ["7", None]).shown == {"a": "7", "b": None}


def test_rows_that_lack_are_written_and_rows_too_many_removed() -> None:
    written = count_statement(TABLE, counted(3, 1), ROW)
    assert written == "INSERT INTO `merged`.`t` (`a`) VALUES (7), (7);"
    removed = f"DELETE FROM `merged`.`t` WHERE {digest_of(TABLE.side)} = 99 LIMIT 2;"
    assert count_statement(TABLE, counted(1, 3), None) == removed


def test_a_row_that_is_not_known_or_too_often_needed_has_no_statement() -> None:
    assert count_statement(TABLE, counted(3, 1), None) == ""
    assert count_statement(TABLE, counted(MOST_WRITTEN + 1, 0), ROW) == ""
    lake = replace(TABLE, side=replace(TABLE.side, lake=True))
    assert count_statement(lake, counted(1, 3), None) == ""
