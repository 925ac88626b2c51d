"""What the target's table is called by, and has, beside what its shards have."""

from __future__ import annotations

import re

import pytest

from shardmerge.schemas.ddl.apply.statements import apply_create
from shardmerge.schemas.ddl.changes import CreateTable
from shardmerge.schemas.ddl.grammar import parse
from shardmerge.schemas.lattice.join import join_tables
from shardmerge.schemas.lattice.joined import JoinedTable
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.server_context import ServerContext
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import IndexKind, TableSchema
from shardmerge.schemas.model.types import ColumnType
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


DEFAULTS_8, DEFAULTS_5 = frozenset({"utf8mb4_0900_ai_ci"}), frozenset({"utf8mb4_general_ci"})
TEXTS = (
    "create table t (id int primary key, a varchar(9), l int as (char_length(a)) stored,"
    " e int as (a = 'ss') stored, check (a <> 's'), check (char_length(a) > 0),"
    " unique u ((concat(a,'x'))), key k ((concat(a,'y'))))"
)


def _made(target: str, collations: frozenset[str], there: TableSchema | None = None) -> list[str]:
    """The names and texts of what the target computes, checks and indexes by expressions."""
    schema = table(TEXTS)
    joined = join_tables([schema])
    assert isinstance(joined, JoinedTable)
    before = tuple(ShardColumn(c.name, c) for c in there.columns) if there is not None else ()
    to = target_schema(
        joined, before, "t", dialect=dialect_of(*target.split()), collations=collations, there=there
    )
    found = [c.name for c in to.schema.columns if c.generated]
    found += [check.expression for check in to.schema.checks]
    return found + [i.name for i in to.schema.indexes if i.parts[0].expression]


@pytest.mark.parametrize("collations", [DEFAULTS_5, DEFAULTS_5 | DEFAULTS_8])
def test_what_compares_texts_that_name_no_collation_needs_the_shards_default(
    collations: frozenset[str],
) -> None:
    target = "mysql 8.0.36"
    alike = ["l", "e", "(`a` <> 's')", "(char_length(`a`) > 0)", "k", "u"]
    assert sorted(_made(target, DEFAULTS_8)) == sorted(alike)
    assert sorted(_made(target, frozenset())) == sorted(alike), "the servers are not known"
    # A row that passes on a shard could be refused by the target, for ever.
    assert _made(target, collations) == ["l", "(char_length(`a`) > 0)", "k"]


def test_a_column_that_the_target_computes_in_its_collation_stays_so_and_it_is_told() -> None:
    schema = table(TEXTS)
    assert _made("mysql 8.0.36", DEFAULTS_5, schema)[:2] == ["l", "e"]
    joined = join_tables([schema])
    assert isinstance(joined, JoinedTable)
    before = tuple(ShardColumn(c.name, c) for c in schema.columns)
    to = target_schema(joined, before, "t", collations=DEFAULTS_5, there=schema)
    assert any(told.startswith("e: the target may compute other") for told in to.sentences)
    made = target_schema(joined, (), "t", collations=DEFAULTS_5)
    assert any(told.startswith("e: its values come with the rows") for told in made.sentences)


def test_a_stated_collation_that_the_target_lacks_counts_like_another_default() -> None:
    schema = table(
        "create table t (id int primary key, a varchar(9) collate utf8mb4_0900_ai_ci,"
        " check (a <> 's'))"
    )
    joined = join_tables([schema])
    assert isinstance(joined, JoinedTable)
    for target, checks in (("mysql 8.0.36", 1), ("mariadb 10.11", 0), ("tidb 8.5.0", 0)):
        to = target_schema(
            joined, (), "t", dialect=dialect_of(*target.split()), collations=DEFAULTS_8
        )
        assert len(to.schema.checks) == checks, target


def test_two_names_of_one_collation_compare_alike() -> None:
    dialect = dialect_of("mariadb", "10.11")
    mysql, maria = (
        ColumnType("varchar", 9, charset="utf8mb4", collation=name)
        for name in ("utf8mb4_0900_bin", "utf8mb4_nopad_bin")
    )
    assert not dialect.reorders(mysql, maria, DEFAULTS_8)
    assert dialect.reorders(mysql, replace(maria, collation="utf8mb4_bin"), DEFAULTS_8)
    assert not dialect.reorders(ColumnType("int"), ColumnType("int"), DEFAULTS_8)


@pytest.mark.parametrize("kind", ["unique ", ""])
def test_an_index_of_an_expression_goes_where_the_join_converts_its_columns(kind: str) -> None:
    def shard(charset: str, number: str) -> TableSchema:
        return table(
            f"create table t (id int primary key, a varchar(9) character set {charset},"
            f" n {number}, {kind}index u ((lower(a))), {kind}index v ((n + 1)), {kind}index w (a))"
        )

    joined = join_tables([shard("latin1", "int"), shard("utf8mb4", "bigint")])
    assert isinstance(joined, JoinedTable)
    to = target_schema(joined, (), "t")
    assert [i.name for i in to.schema.indexes if i.kind is not IndexKind.PRIMARY] == ["v", "w"]
    (told,) = [sentence for sentence in to.sentences if "index u" in sentence]
    assert told.startswith("index u is left out: on a shard a has another type")


def test_an_escape_that_the_target_would_not_store_comes_with_the_rows() -> None:
    schema = table(
        "create table t (id int primary key, a varchar(9), e int as (a like 'x|%' escape '|'),"
        " l int as (a like ' escape ') stored, unique index u ((a like 'y|%' escape '|')))"
    )
    joined = join_tables([schema])
    assert isinstance(joined, JoinedTable)
    for target, computed in (
        ("mysql 8.0.16", ["e", "l"]),
        ("mariadb 10.11", ["e", "l"]),
        ("mysql 8.0.15", ["l"]),
        ("mysql 5.7.44", ["l"]),
    ):
        to = target_schema(joined, (), "t", dialect=dialect_of(*target.split()))
        assert [c.name for c in to.schema.columns if c.generated] == computed, target
        told = [sentence for sentence in to.sentences if "without its ESCAPE" in sentence]
        assert len(told) == (2 if target == "mysql 8.0.15" else len(computed) == 1), target
    before = tuple(ShardColumn(c.name, c) for c in schema.columns)
    stays = target_schema(joined, before, "t", dialect=dialect_of("mysql", "8.0.15"), there=schema)
    assert stays.schema.columns[2].generated is not None
