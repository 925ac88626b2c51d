"""All Hypothesis strategies: types, columns, tables, shards of one target.

Tables are made as SQL text and read by the grammar, so that every value is one that the tracker
could give. Each column name has a family of definitions, so that two tables often, but not
always, have a join.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from hypothesis import strategies as st

from shardmerge.schemas.ddl.apply.statements import apply_create
from shardmerge.schemas.ddl.changes import CreateTable
from shardmerge.schemas.ddl.grammar import ServerContext, parse
from shardmerge.schemas.lattice.joined import ShardSchema
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.model.types import ColumnType

SERVER = ServerContext(version=(8, 0, 36))


@cache
def table(sql: str) -> TableSchema:
    """The schema that a CREATE TABLE makes on a MySQL 8.0 server."""
    statement = parse(sql, SERVER)
    assert isinstance(statement, CreateTable), sql
    return apply_create(statement, SERVER)


def by_name(schema: TableSchema) -> ShardSchema:
    """A shard whose columns are identified by their names."""
    return ShardSchema(schema, tuple(c.name.lower() for c in schema.columns))


def names_of(shards: Sequence[ShardSchema]) -> dict[str, str]:
    return {c.id: c.column.name for shard in shards for c in shard.columns}


INTEGERS = ("tinyint", "smallint", "mediumint", "int", "bigint")
TYPES = (
    *INTEGERS, *(f"{name} unsigned" for name in INTEGERS), "tinyint(1)",
    "decimal(5,0)", "decimal(5,2)", "decimal(9,4)", "decimal(65,0)", "decimal(30,30)",
    "decimal(5,2) unsigned", "float", "double", "float(7,4)", "float(9,2)", "bit(1)", "bit(9)",
    "char(3)", "char(9)", "varchar(3)", "varchar(300)", "varchar(20000) charset utf8mb3",
    "varchar(9) charset utf8mb3", "varchar(9) charset utf8mb3 collate utf8mb3_bin",
    "varchar(9) collate utf8mb4_bin", "varchar(9) collate utf8mb4_general_ci",
    "tinytext", "text", "mediumtext", "longtext",
    "text charset utf8mb3", "char(3) charset latin1", "varchar(200) charset latin1",
    "varchar(9000) charset latin1", "tinytext charset latin1", "text charset latin1",
    "binary(3)", "binary(9)", "varbinary(3)", "varbinary(300)", "tinyblob", "blob", "longblob",
    "enum('a','b')", "enum('a','b','c')", "enum('a','c')", "set('a')", "set('a','b')",
    "year", "date", "time", "time(3)", "datetime", "datetime(3)", "datetime(6)", "timestamp",
    "timestamp(6)", "json", "point", "geometry",
)  # fmt: skip


def _type(text: str) -> ColumnType:
    return table(f"create table t (c {text})").columns[0].type


ALL_TYPES = tuple(_type(text) for text in TYPES)
types = st.sampled_from(ALL_TYPES)

# Per name: definitions that mostly have a join, and a few that do not.
DEFINITIONS = {
    "a": ("int", "int not null", "bigint", "bigint not null default 5", "int not null default 5",
          "int default 7", "smallint not null"),
    "b": ("varchar(9) not null", "varchar(20)", "varchar(20) default 'x'", "char(3) not null",
          "varchar(9) charset utf8mb3 not null", "text not null"),
    "c": ("decimal(5,2) not null default 1.5", "decimal(9,4) not null default 1.5", "decimal(5,2)",
          "date not null"),
    "d": ("enum('a','b') not null", "enum('a','b','c')", "set('a') not null", "json not null"),
    "e": ("datetime not null", "datetime(3) default current_timestamp(3)", "datetime(6)",
          "timestamp not null default current_timestamp on update current_timestamp"),
    "g": ("int as (id + 1)", "int as (id + 1) stored", "int as (id + 2)", "int", "int not null"),
}  # fmt: skip
EXTRAS = {
    "ka": ("key ka (a)", "key ka (a, b)", "unique key ka (a)"),
    "kb": ("key kb (b)", "key kb (b(2))", "unique key kb (b, a)"),
    "kc": ("key kc (c desc)", "key kc (c)"),
    "kf": ("key kf ((a + 1))", "key kf ((a + 2))"),
    "ca": ("constraint ca check (a > 0)", "constraint ca check (a > 1)", "check (a > 0)"),
    # What is computed of a text or decimal is not the same in a wider type.
    "cb": ("constraint cb check (b <> 'x')", "check (length(c) < 20)"),
    "h": ("h varchar(40) as (concat(c)) stored", "h varchar(40) as (concat(c)) not null",
          "h varchar(40) not null"),
}  # fmt: skip
_NEEDS = {"ka": "ab", "kb": "ab", "kc": "c", "kf": "a", "ca": "a", "cb": "bc", "h": "c"}


@st.composite
def tables(draw: st.DrawFn, keys: Sequence[str] = ("id",), extras: bool = True) -> TableSchema:
    """A table with a primary key and any of six columns, in any order."""
    chosen = draw(st.lists(st.sampled_from(sorted(DEFINITIONS)), unique=True))
    parts = [f"{name} {draw(st.sampled_from(DEFINITIONS[name]))}" for name in chosen]
    if extras:
        for name in draw(st.lists(st.sampled_from(sorted(EXTRAS)), unique=True, max_size=3)):
            if set(_NEEDS[name]) <= set(chosen) and not _bad_text_key(name, parts):
                parts.append(draw(st.sampled_from(EXTRAS[name])))
    key = draw(st.sampled_from(keys))
    parts.insert(draw(st.integers(0, len(chosen))), "id bigint not null")
    return table(f"create table t ({', '.join(parts)}, primary key ({key}))")


def _bad_text_key(name: str, parts: Sequence[str]) -> bool:
    """A text column is only indexed with a prefix length, which not every form has."""
    return name in ("ka", "kb") and "b text not null" in parts


def shard_tables(max_size: int = 4) -> st.SearchStrategy[list[TableSchema]]:
    """The tables of some shards of one target."""
    return st.lists(tables(), min_size=1, max_size=max_size)
