"""What a change did to existing rows, and when the target shows it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from shardmerge.schemas.ddl.apply.statements import apply_alter
from shardmerge.schemas.ddl.changes import AlterTable
from shardmerge.schemas.ddl.grammar import parse
from shardmerge.schemas.effects.added_column_values import fill_text
from shardmerge.schemas.effects.row_effect import RowEffect
from shardmerge.schemas.effects.row_effects import (
    arrival_effects,
    differing,
    held_effects,
    moved_rows,
    next_fills,
    row_effects,
)
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.target.dialects.dialect import FittedColumn, Place
from shardmerge.schemas.target.dialects.dialects import dialect_of
from tests.strategies import SERVER, table


class Shard:
    """A shard whose columns are identified by their names; a second one of a name gets ``'``."""

    def __init__(self, definition: str) -> None:
        self.schema = table(f"create table t ({definition})")
        self.columns = columns(self.schema)

    def alter(self, actions: str) -> tuple[RowEffect, ...]:
        statement = parse(f"alter table t {actions}", SERVER)
        assert isinstance(statement, AlterTable)
        result = apply_alter(self.schema, statement, "t", SERVER)
        before, ids = self.columns, {c.column.name.lower(): c.id for c in self.columns}
        self.schema = result.schema
        self.columns = tuple(
            ShardColumn(ids.get(line.before.lower(), line.name), column)
            for column, line in zip(result.schema.columns, result.lineage, strict=True)
        )
        self.effects = row_effects(before, self.columns, result.lineage)
        return self.effects


def columns(schema: TableSchema) -> tuple[ShardColumn, ...]:
    return tuple(ShardColumn(c.name, c) for c in schema.columns)


def target(definition: str) -> tuple[ShardColumn, ...]:
    return columns(table(f"create table t ({definition})"))


def names(effects: Iterable[RowEffect]) -> list[str]:
    return [effect.name for effect in effects]


BASE = "id int primary key, a int"


@pytest.mark.parametrize(
    "definition",
    [
        "int", "int default 5", "int not null", "varchar(9) not null", "text not null", "json",
        "enum('x','y') not null", "datetime default '2020-01-01 00:00:00'", "date not null",
        "int generated always as (a + 1) virtual", "int default (1 + 1)",
    ],
)  # fmt: skip
def test_a_column_that_the_target_adds_alike_is_equal(definition: str) -> None:
    shard = Shard(BASE)
    effects = shard.alter(f"add column c {definition}")
    after = target(f"{BASE}, c {definition}")
    assert names(effects) == ["c"]
    assert differing(effects, shard.columns, target(BASE), after, {}) == ()


@pytest.mark.parametrize(
    ("definition", "there"),
    [
        ("int not null default 0", "int default null"),
        ("int not null", "int"),
        ("int default 5", "int default 6"),
        ("datetime default current_timestamp", "datetime default current_timestamp"),
        ("varchar(36) default (uuid())", "varchar(36) default (uuid())"),
        ("int not null auto_increment unique", "int not null"),
        ("timestamp null default '2020-01-01 00:00:00'", "timestamp null default '2020-01-01'"),
        ("int generated always as (a + 1) stored", "int"),
        ("int generated always as (a + 1) stored", "int generated always as (a + 2) stored"),
    ],
)
def test_a_column_that_the_target_adds_otherwise_differs(definition: str, there: str) -> None:
    shard = Shard("id int not null, a int")
    effects = shard.alter(f"add column c {definition}")
    after = target(f"id int not null, a int, c {there}")
    found = differing(effects, shard.columns, target("id int not null, a int"), after, {})
    assert names(found) == ["c"]


def test_a_second_shard_adds_what_the_first_did() -> None:
    before, after = target(BASE), target(f"{BASE}, c int not null default 5")
    fills = next_fills({}, before, after)
    assert fills["c"] == "value 5"

    alike = Shard(BASE)
    effects = alike.alter("add column c int not null default 5")
    assert differing(effects, alike.columns, after, after, fills) == ()
    # A wider target holds the same value.
    wide = target(f"{BASE}, c bigint not null default 5")
    assert differing(effects, alike.columns, after, wide, fills) == ()

    other = Shard(BASE)
    effects = other.alter("add column c int not null")
    (found,) = differing(effects, other.columns, after, after, fills)
    assert found.reason == "it was added, its rows have value 0, the target's value 5"


def test_a_column_whose_default_changed_holds_mixed_values() -> None:
    five, six = target(f"{BASE}, c int default 5"), target(f"{BASE}, c int default 6")
    fills = next_fills(next_fills({}, target(BASE), five), five, six)
    assert "c" not in fills
    assert "c" not in next_fills(fills, six, six)

    shard = Shard(BASE)
    effects = shard.alter("add column c int default 6")
    assert names(differing(effects, shard.columns, six, six, fills)) == ["c"]


def test_a_column_that_a_shard_gave_up_holds_mixed_values() -> None:
    there = target(f"{BASE}, c int default 5")
    fills = next_fills(next_fills({}, (), there), there, there, given_up=["c"])
    assert "c" not in fills and fills["a"] == "NULL"

    shard = Shard(BASE)
    effects = shard.alter("add column c int default 5")
    assert names(differing(effects, shard.columns, there, there, fills)) == ["c"]


def test_a_default_of_the_target_that_goes_away_with_the_last_shard_still_counts() -> None:
    before = target(f"{BASE}, c int not null default 0")
    after = target(f"{BASE}, c int not null")
    shard = Shard(BASE)
    effects = shard.alter("add column c int not null")
    fills = next_fills({}, target(BASE), before)
    assert differing(effects, shard.columns, before, after, fills) == ()
    assert next_fills(fills, before, after)["c"] == "value 0"


def test_drop_and_add_again_in_one_statement_differs() -> None:
    shard = Shard(f"{BASE}, c int")
    effects = shard.alter("drop column c, add column c int")
    there = target(f"{BASE}, c int")
    (found,) = differing(effects, shard.columns, there, there, next_fills({}, (), there))
    # Although the target's rows of shards without the column hold just that.
    assert (found.id, found.fill, found.anew) == ("c", "NULL", True)
    assert found.reason.startswith("it was dropped and added again")


@pytest.mark.parametrize(
    "definition",
    ["bigint", "int null default 4", "int comment 'x'", "int null first", "int unsigned", "int"],
)
def test_a_modify_that_keeps_values_has_no_effect(definition: str) -> None:
    start = "int unsigned" if definition in ("bigint", "int unsigned") else "int"
    shard = Shard(f"id int primary key, c {start} not null")
    assert shard.alter(f"modify c {definition}") == ()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("int", "varchar(20)"), ("int", "tinyint"), ("int", "int unsigned"),
        ("int", "int not null"), ("varchar(9)", "varchar(8)"), ("varchar(9)", "char(9)"),
        ("datetime(3)", "datetime"),
        ("decimal(9,2)", "decimal(9,1)"), ("decimal(9,2)", "decimal(9,3)"),
        ("enum('a','b')", "enum('a')"), ("set('a','b')", "set('b','a')"), ("float", "double"),
        ("varchar(9)", "varchar(9) charset latin1"), ("binary(3)", "binary(4)"),
        ("text charset latin1", "text charset utf8mb4"), ("datetime", "timestamp null"),
    ],
)  # fmt: skip
def test_a_modify_that_can_change_values_differs(before: str, after: str) -> None:
    shard = Shard(f"id int primary key, c {before}")
    effects = shard.alter(f"modify c {after}")
    there = target(f"id int primary key, c {after}")
    assert names(differing(effects, shard.columns, shard.columns, there, {"c": "NULL"})) == ["c"]


def test_convert_to_another_charset_concerns_the_text_that_it_may_change() -> None:
    shard = Shard("id int primary key, a int, b varchar(9), c text, d varchar(9) charset ascii")
    assert names(shard.alter("convert to character set latin1")) == ["b", "c"]


def test_a_renamed_column_has_no_effect_and_a_renamed_target_is_followed() -> None:
    shard = Shard(BASE)
    assert shard.alter("rename column a to b") == ()
    assert shard.alter("change b c bigint") == ()


def test_a_column_that_the_target_does_not_have_differs_nowhere() -> None:
    shard = Shard(BASE)
    effects = shard.alter("add column c datetime default current_timestamp")
    assert differing(effects, shard.columns, target(BASE), target(BASE), {}) == ()


def test_changes_of_a_held_shard_add_up() -> None:
    shard = Shard(f"{BASE}, c int, d int")
    effects: tuple[RowEffect, ...] = ()
    for actions in (
        "drop column c",
        "add column c int",
        "modify d varchar(9)",
        "add column e int default 5",
        "add column gone int default 5",
        "drop column gone",
        "rename column e to f",
    ):
        before = shard.columns
        effects = held_effects(effects, shard.alter(actions), before, shard.columns)
    there = target(f"{BASE}, c int, d varchar(9)")
    after = target(f"{BASE}, c int, d varchar(9), e int default 5, gone int default 5")
    found = differing(effects, shard.columns, there, after, next_fills({}, (), there))
    assert names(found) == ["c", "d"]


def test_a_table_that_comes_under_a_shards_name_brings_rows() -> None:
    shard = Shard(BASE)
    found = arrival_effects(shard.columns, ["RENAME FROM app.new_t"])
    assert names(found) == ["id", "a"]
    assert found[0].reason == "the table came with its rows from app.new_t"
    assert arrival_effects(shard.columns, ["CREATE TABLE"]) == ()


@pytest.mark.parametrize("copy", ["_t_gho", "_t_new"])
def test_a_copy_that_a_tool_swaps_in_brings_the_shards_own_rows(copy: str) -> None:
    assert arrival_effects(Shard(BASE).columns, [f"RENAME FROM app.{copy}"]) == ()


@pytest.mark.parametrize(
    ("action", "moves"),
    [
        ("DROP PARTITION p0", True), ("TRUNCATE PARTITION ALL", True),
        ("EXCHANGE PARTITION p0 WITH TABLE t2", True), ("IMPORT TABLESPACE", True),
        ("CONVERT TABLE t2 TO PARTITION p VALUES LESS THAN (5)", True),
        ("CONVERT PARTITION p TO TABLE t2", True), ("CONVERT TO CHARACTER SET latin1", False),
        ("ADD PARTITION (PARTITION p1 VALUES LESS THAN (5))", False),
        ("REORGANIZE PARTITION p0 INTO (PARTITION p1 VALUES LESS THAN (5))", False),
        ("COALESCE PARTITION 2", False), ("DROP COLUMN `partition`", False),
    ],
)  # fmt: skip
def test_partitions_that_go_take_rows_along(action: str, moves: bool) -> None:
    assert moved_rows([action]) == ((action,) if moves else ())


@pytest.mark.parametrize(
    ("definition", "fill"),
    [
        ("int", "NULL"), ("int default null", "NULL"), ("decimal(9,4) default 1.5", "value 1.5"),
        ("int default 100", "value 100"), ("bit(9) default b'101'", "value 5"),
        ("time(3) default '10:00:00'", "value 10:00:00"), ("char(9) default 'a '", "value a"),
        ("int not null auto_increment unique", ""), ("datetime default now()", ""),
        ("point not null", ""), ("json not null", "value null"),
        ("text not null", "value "), ("blob not null", "value 0x"),
        ("blob default ('x')", "value 0x78"), ("blob default (0x6A)", "value 0x6a"),
        ("json default (json_array())", "expression json_array()"),
    ],
)  # fmt: skip
def test_fills_are_told_alike_whatever_the_type_writes(definition: str, fill: str) -> None:
    column = table(f"create table t (c {definition})").columns[0]
    assert fill_text(column) == fill


@pytest.mark.parametrize("kind", ["text", "blob", "json", "longtext", "varbinary(9)"])
@pytest.mark.parametrize("target", ["mysql 8.0.36", "mariadb 10.11"])
def test_a_zero_value_is_the_same_in_the_form_of_every_target(kind: str, target: str) -> None:
    column = table(f"create table t (c {kind} not null)").columns[0]
    name, _, version = target.partition(" ")
    dialect = dialect_of(name, version)
    given = replace(column, default=dialect.zero_value(column.type))
    fitted = dialect.fit_column(given, Place(optional=True))
    assert isinstance(fitted, FittedColumn)
    assert fitted.column.default is not None
    assert fill_text(fitted.column) == fill_text(column)


COMPUTED = "id int primary key, v varchar(9) charset latin1, h char(32) as (md5(v)) stored"


@pytest.mark.parametrize(
    ("actions", "found"),
    [
        ("modify v varchar(9) charset utf8mb4", ["h"]), ("modify v varchar(20) charset latin1", []),
        ("modify v text charset latin1", []), ("add b int", ["b"]), ("modify v date", ["v", "h"]),
        ("modify id bigint", []),
    ],
)  # fmt: skip
def test_what_is_computed_of_a_converted_column_has_other_values(
    actions: str, found: list[str]
) -> None:
    assert names(Shard(COMPUTED).alter(actions)) == found


def test_a_target_that_computes_the_column_has_the_other_values_too() -> None:
    shard = Shard(COMPUTED)
    effects = shard.alter("modify v varchar(9) charset utf8mb4")
    computing = target(COMPUTED.replace("latin1", "utf8mb4"))
    keeping = target("id int primary key, v varchar(9), h char(32)")
    assert differing(effects, shard.columns, computing, computing, {}) == ()
    assert names(differing(effects, shard.columns, keeping, keeping, {})) == ["h"]
