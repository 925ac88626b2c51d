from __future__ import annotations

from dataclasses import replace

from shardmerge.spark_sink.loading.chunk_ranges import KeyRange
from shardmerge.spark_sink.validation.compared_table import compared_table
from shardmerge.spark_sink.validation.validation_queries import (
    digest_counts,
    each_digest,
    next_boundary,
    range_digest,
    row_digests,
    rows_by_key,
)

from .facts import RULE, S1, S2, shard, target

OWN = "CREATE TABLE t (id int PRIMARY KEY, a text)"
TABLE = compared_table(target(OWN), [shard(S1, OWN)])
DIGEST = (
    "CAST(CONV(LEFT(SHA2(CONCAT_WS('#', CAST(`id` + 0 AS CHAR), SHA2(CAST(`a` AS BINARY), 256),"
    " CONCAT(ISNULL(`id`), ISNULL(`a`))), 256), 16), 16, 10)"
    " AS UNSIGNED)"
)


def test_a_range_is_asked_for_its_rows_and_their_digest() -> None:
    found = range_digest(TABLE.shards[0], KeyRange(("3",), ("9",)))
    assert found == (
        f"SELECT COUNT(*), BIT_XOR(IFNULL({DIGEST}, CAST(RAND() * 1e18 AS UNSIGNED)))"
        " FROM `app`.`t_1` WHERE (`id` > 3) AND (`id` <= 9)"
    )


def test_equal_rows_without_a_key_do_not_cancel_each_other() -> None:
    own = "CREATE TABLE t (a int)"
    counted = compared_table(target(own), [shard(S1, own)])
    assert "SUM(" in range_digest(counted.side, KeyRange())
    assert digest_counts(counted.side).endswith("FROM `merged`.`t`) AS rows_of_it GROUP BY d")


def test_ranges_are_cut_in_the_target() -> None:
    assert next_boundary(TABLE.side, ("3",), 100) == (
        "SELECT CAST(`id` + 0 AS CHAR) FROM `merged`.`t` WHERE `id` > 3 ORDER BY `id` LIMIT 99, 1"
    )


def test_the_columns_of_a_condition_come_behind_the_values() -> None:
    rule = replace(RULE, where="a LIKE 'x%'")
    side = compared_table(target(OWN), [shard(S1, OWN, rule)]).shards[0]
    assert row_digests(side, KeyRange()) == (
        f"SELECT CAST(`id` + 0 AS CHAR), {DIGEST}, `a` FROM `app`.`t_1`"
    )
    assert rows_by_key(side, [("7",)]) == (
        "SELECT CAST(`id` + 0 AS CHAR), CAST(`id` + 0 AS CHAR), CAST(`a` AS BINARY), `a`"
        " FROM `app`.`t_1` WHERE (`id` IN (7))"
    )


def test_rows_without_a_key_are_read_one_by_one_for_a_condition_that_sql_cannot_express() -> None:
    own, rule = "CREATE TABLE t (a text, b int)", replace(RULE, where="a LIKE 'x%' AND b > 2")
    side = compared_table(target(own), [shard(S1, own, rule)]).shards[0]
    assert each_digest(side).endswith(" AS UNSIGNED), `a`, `b` FROM `app`.`t_1` WHERE (`b` > 2)")


def test_values_that_are_no_part_of_the_digest_are_read_for_each_row() -> None:
    own = "CREATE TABLE t (id int PRIMARY KEY, a timestamp not null default current_timestamp)"
    less = shard(S2, "CREATE TABLE t (id int PRIMARY KEY)")
    found = compared_table(target(own), [shard(S1, own), less])
    digest = (
        "CAST(CONV(LEFT(SHA2(CONCAT_WS('#', CAST(`id` + 0 AS CHAR), CONCAT(ISNULL(`id`))), 256),"
        " 16), 16, 10) AS UNSIGNED)"
    )
    assert [row_digests(side, KeyRange()) for side in found.shards] == [
        f"SELECT CAST(`id` + 0 AS CHAR), {digest}, CAST(`a` AS CHAR) FROM `app`.`t_1`",
        f"SELECT CAST(`id` + 0 AS CHAR), {digest}, NULL FROM `app`.`t_2`",
    ]
