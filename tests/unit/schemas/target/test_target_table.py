"""What the target's table is called by, and has, beside what its shards have."""

from __future__ import annotations

import re

import pytest

from shardmerge.schemas.ddl.apply.statements import apply_create
from shardmerge.schemas.ddl.changes import CreateTable
from shardmerge.schemas.ddl.grammar import parse
from shardmerge.schemas.lattice.join import join_tables
from shardmerge.schemas.lattice.joined import JoinedTable
from shardmerge.schemas.model.server_context import ServerContext
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.target.dialects.dialects import dialect_of
from shardmerge.schemas.target.dialects.spark import SparkDialect
from shardmerge.schemas.target.target_table import target_schema
from tests.strategies import table

MARIADB = ServerContext("mariadb", (10, 11, 6))
NAMED = "id int primary key, data json, n int check (n > 0), constraint own check (n < 9)"


def _checks(target: str, joined: JoinedTable, there: TableSchema | None = None) -> list[str]:
    to = target_schema(joined, (), "orders", dialect=dialect_of(*target.split()), there=there)
    return [check.name for check in to.schema.checks]


def test_a_check_named_like_its_column_gets_a_name_of_the_target_where_names_are_shared() -> None:
    statement = parse(f"create table t ({NAMED})", MARIADB)
    assert isinstance(statement, CreateTable)
    schema = apply_create(statement, MARIADB)
    assert [check.name for check in schema.checks] == ["data", "n", "own"]
    joined = join_tables([schema])
    assert isinstance(joined, JoinedTable)

    data, n, own = _checks("mysql 8.0.36", joined)
    assert own == "own"
    assert data != n and all(re.fullmatch(r"orders_chk_\d+", name) for name in (data, n))
    # MariaDB has such names in each table, and a target that has them keeps them.
    assert _checks("mariadb 10.11", joined) == ["data", "n", "own"]
    assert _checks("mysql 8.0.36", joined, schema) == ["data", "n", "own"]


ZONED = "create table t (id int primary key, ts timestamp null, d date as (date(ts)) stored)"


def test_a_column_that_the_target_computes_in_its_time_zone_stays_so_and_it_is_told() -> None:
    schema = table(ZONED)
    joined = join_tables([schema])
    assert isinstance(joined, JoinedTable)
    before = tuple(ShardColumn(c.name, c) for c in schema.columns)
    to = target_schema(joined, before, "t")
    assert to.schema.columns == schema.columns
    (told,) = to.sentences
    assert told.startswith("d: the target may compute other values") and "time zone" in told

    made = target_schema(joined, (), "t")
    assert made.columns[2].column.generated is None
    assert made.sentences[0].startswith("d: its values come with the rows")


def test_a_target_that_computes_nothing_says_it_as_ever() -> None:
    joined = join_tables([table(ZONED)])
    assert isinstance(joined, JoinedTable)
    to = target_schema(joined, (), "t", dialect=SparkDialect())
    assert [note for name, note in to.notes if name == "column:d"][-1].startswith(
        "the shards compute it (cast(`ts` as date))"
    )


@pytest.mark.parametrize("kind", ["char(32)", "json"])
def test_a_column_that_rows_bring_may_be_left_out_by_others(kind: str) -> None:
    columns = f"id int primary key, v varchar(9) charset %s, h {kind} as (v) not null"
    shards = [table(f"create table t ({columns % charset})") for charset in ("latin1", "utf8mb4")]
    joined = join_tables(shards)
    assert isinstance(joined, JoinedTable)
    column = target_schema(joined, (), "t").schema.column("h")
    assert column is not None and column.generated is None and not column.is_required
