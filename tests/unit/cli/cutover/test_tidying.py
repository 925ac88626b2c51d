"""What a target has for the merging alone."""

from __future__ import annotations

from typing import Any

import pytest

from shardmerge.cli.cutover.tidying import DEFAULTS, ORIGIN, MergedTable, id_column, tidying
from shardmerge.schemas.ddl.grammar import ServerContext
from shardmerge.schemas.lattice.joined import ShardSchema
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.spark_sink.targets.mysql.ddl.introspection import schema_of

MERGED = (
    "id BIGINT NOT NULL, a INT NOT NULL DEFAULT 0, n INT, _shard VARCHAR(9) NOT NULL,"
    " PRIMARY KEY (id)"
)
OWN = "id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, a INT NOT NULL, n INT"
PLAIN = "id BIGINT NOT NULL PRIMARY KEY, n INT"


def schema(columns: str) -> TableSchema:
    found = schema_of(f"CREATE TABLE t ({columns})", ServerContext())
    assert found is not None
    return found


def merged(columns: str, *shards: str, **more: Any) -> MergedTable:
    there = schema(columns)
    joined = [ShardColumn(f"{c.name}#1", c) for c in there.columns if c.name != "_shard"]
    own = [
        ShardSchema(found, tuple(f"{c.name}#1" for c in found.columns))
        for found in map(schema, shards)
    ]
    return MergedTable(TargetTable("merged", "t"), there, joined, own, ["_shard"], **more)


def test_each_statement_has_its_way_back_except_the_one_that_drops_values() -> None:
    found = tidying(merged(MERGED, OWN, PLAIN), [DEFAULTS, ORIGIN], 41)
    assert [(t.sql, t.back) for t in found.statements] == [
        (
            "ALTER TABLE `merged`.`t` ALTER COLUMN `a` DROP DEFAULT",
            "ALTER TABLE `merged`.`t` ALTER COLUMN `a` SET DEFAULT '0'",
        ),
        (
            "ALTER TABLE `merged`.`t` MODIFY COLUMN `id` bigint NOT NULL AUTO_INCREMENT,"
            " AUTO_INCREMENT = 42",
            "ALTER TABLE `merged`.`t` MODIFY COLUMN `id` bigint NOT NULL",
        ),
        ("ALTER TABLE `merged`.`t` DROP COLUMN `_shard`", ""),
    ]
    assert found.notes == ()


def test_what_was_not_asked_for_stays_and_is_told() -> None:
    found = tidying(merged(MERGED, PLAIN, "id BIGINT PRIMARY KEY, a INT NOT NULL"), [], 0)
    assert found.statements == ()
    assert ["a" in found.notes[0], "_shard" in found.notes[1]] == [True, True]


def test_a_default_that_a_shard_gave_stays() -> None:
    own = "id BIGINT NOT NULL PRIMARY KEY, a INT NOT NULL DEFAULT 0"
    assert tidying(merged(MERGED, own), [DEFAULTS], 0).statements == ()


@pytest.mark.parametrize(
    ("columns", "kind", "why"),
    [
        ("id DECIMAL(20,0) NOT NULL, PRIMARY KEY (id)", "mysql", "decimal"),
        ("id BIGINT NOT NULL, u INT NOT NULL, PRIMARY KEY (u, id)", "mysql", "no index"),
        ("id BIGINT, KEY (id)", "mysql", "leave it out"),
        ("id BIGINT NOT NULL, PRIMARY KEY (id)", "tidb", "TiDB"),
    ],
)
def test_a_column_that_cannot_count_is_told(columns: str, kind: str, why: str) -> None:
    found = tidying(merged(columns, OWN, kind=kind), [], 0)
    assert found.statements == ()
    assert why in found.notes[0]


def test_a_sequence_of_tidb_begins_behind_the_largest_value() -> None:
    there = "id BIGINT NOT NULL, PRIMARY KEY (id)"
    [note] = tidying(merged(there, OWN, kind="tidb"), [], 41).notes
    assert "CREATE SEQUENCE `merged`.`t_id` START WITH 42; ALTER TABLE `merged`.`t` " in note
    assert "SET DEFAULT (NEXTVAL(`merged`.`t_id`))." in note


def test_a_column_that_counts_already_is_left_alone() -> None:
    assert id_column(merged("id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY", OWN)) is None
    assert id_column(merged(MERGED, PLAIN)) is None


def test_an_origin_column_that_a_key_needs_stays() -> None:
    there = "id BIGINT NOT NULL, _shard VARCHAR(9) NOT NULL, PRIMARY KEY (id, _shard)"
    found = tidying(merged(there, PLAIN), [ORIGIN], 0)
    assert found.statements == ()
    assert found.notes == ("these origin columns stay, because unique keys need them: _shard",)
