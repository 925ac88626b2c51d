from __future__ import annotations

from shardmerge.spark_sink.validation.compared_table import compared_table
from shardmerge.spark_sink.validation.doubts import Difference, DifferenceKind
from shardmerge.spark_sink.validation.repair_statements import (
    delete_statement,
    literals_query,
    write_statement,
)

from .facts import S1, S2, shard, target

OWN = "CREATE TABLE t (id int PRIMARY KEY, a varchar(9), b blob)"
TABLE = compared_table(
    target(OWN), [shard(S1, OWN), shard(S2, "CREATE TABLE t (id int PRIMARY KEY, b blob)")]
)


def test_the_shard_gives_the_literals_of_its_row() -> None:
    found = Difference(DifferenceKind.MISSING, ("7",), S2)
    assert literals_query(TABLE, TABLE.shards[1], found) == (
        "SELECT IFNULL(CAST(`id` + 0 AS CHAR), 'NULL'),"
        " IFNULL(CONCAT('X''', HEX(`b`), ''''), 'NULL') FROM `app`.`t_2` WHERE `id` IN (7)"
    )
    assert write_statement(TABLE, TABLE.shards[1], found, ["7", "X'00'"]) == (
        "INSERT INTO `merged`.`t` (`id`, `b`) VALUES (7, X'00');"
    )


def test_only_the_columns_that_differ_are_updated() -> None:
    found = Difference(DifferenceKind.DIFFERS, ("7",), S1, ("a",))
    assert write_statement(TABLE, TABLE.shards[0], found, ["7", "_utf8mb4 X'41'", "NULL"]) == (
        "UPDATE `merged`.`t` SET `a` = _utf8mb4 X'41' WHERE `id` IN (7);"
    )


def test_a_row_that_no_shard_has_is_deleted() -> None:
    assert delete_statement(TABLE, Difference(DifferenceKind.EXTRA, ("7",))) == (
        "DELETE FROM `merged`.`t` WHERE `id` IN (7) LIMIT 1;"
    )
