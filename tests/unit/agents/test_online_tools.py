"""gh-ost and pt-online-schema-change: their runs are one schema change of the shard."""

from __future__ import annotations

import pytest

from shardmerge.schemas.events import SchemaChange
from shardmerge.schemas.names import ShardId
from shardmerge.schemas.routing import RoutingRule, route

from .test_tracker import Source, names

EVERYTHING = (RoutingRule("s1", "shop", ".*", "merged", "t"),)
GH_OST = (
    "CREATE TABLE `shop`.`_t_ghc` (id bigint unsigned auto_increment, hint varchar(64) charset "
    "ascii not null, value varchar(4096) charset ascii not null, primary key(id)) "
    "auto_increment=256",
    "CREATE TABLE `shop`.`_t_gho` LIKE `shop`.`t`",
    "ALTER TABLE `shop`.`_t_gho` ADD COLUMN c int NOT NULL DEFAULT 5",
    "CREATE TABLE `shop`.`_t_20261121090000_del` (id int auto_increment primary key) engine=InnoDB"
    " comment='ghost-cut-over-sentry'",
    "DROP TABLE IF EXISTS `shop`.`_t_20261121090000_del`",
    "RENAME TABLE `shop`.`t` TO `shop`.`_t_20261121090000_del`, `shop`.`_t_gho` TO `shop`.`t`",
    "DROP TABLE IF EXISTS `shop`.`_t_ghc`",
    "DROP TABLE IF EXISTS `shop`.`_t_20261121090000_del`",
)
PT_OSC = (
    "CREATE TABLE `shop`.`_t_new` (id INT PRIMARY KEY, a INT)",
    "ALTER TABLE `shop`.`_t_new` ADD COLUMN c int NOT NULL DEFAULT 5",
    "CREATE TRIGGER `pt_osc_shop_t_ins` AFTER INSERT ON `shop`.`t` FOR EACH ROW "
    "REPLACE INTO `shop`.`_t_new` (`id`, `a`) VALUES (NEW.`id`, NEW.`a`)",
    "ANALYZE TABLE `shop`.`_t_new`",
    "RENAME TABLE `shop`.`t` TO `shop`.`_t_old`, `shop`.`_t_new` TO `shop`.`t`",
    "DROP TABLE IF EXISTS `shop`.`_t_old`",
    "DROP TRIGGER IF EXISTS `shop`.`pt_osc_shop_t_ins`",
)


def run(source: Source, statements: tuple[str, ...]) -> list[SchemaChange]:
    return [change for ddl in statements for change in source.run(ddl).changes]


@pytest.mark.parametrize("statements", [GH_OST, PT_OSC], ids=["gh-ost", "pt-osc"])
def test_a_run_is_one_change_of_the_shard(statements: tuple[str, ...]) -> None:
    source = Source(EVERYTHING)
    source.run("CREATE TABLE t (id INT PRIMARY KEY, a INT)")

    (change,) = run(source, statements)

    assert change.shard == ShardId("s1", "shop", "t")
    assert names(change.before) == ["id", "a"]
    assert names(change.after) == ["id", "a", "c"]
    assert [(x.name, x.before) for x in change.lineage] == [("id", "id"), ("a", "a"), ("c", "")]


@pytest.mark.parametrize("statements", [GH_OST, PT_OSC], ids=["gh-ost", "pt-osc"])
def test_a_run_that_is_broken_off_and_repeated_is_one_change(statements: tuple[str, ...]) -> None:
    source = Source(EVERYTHING)
    source.run("CREATE TABLE t (id INT PRIMARY KEY, a INT)")
    tables = ("_t_ghc", "_t_gho", "_t_new", "_t_20261121090000_del")
    leftovers = tuple(f"DROP TABLE IF EXISTS `shop`.`{name}`" for name in tables)

    assert run(source, (*statements[:3], *leftovers)) == []
    assert len(run(source, statements)) == 1


@pytest.mark.parametrize(
    "table", ["_t_gho", "_t_ghc", "_t_ghr", "_t_del", "_t_20261121090000_del", "_t_new", "__t_old"]
)
def test_the_tables_of_the_tools_are_no_shards_unless_the_route_says_so(table: str) -> None:
    shard = ShardId("s1", "shop", table)

    assert route(EVERYTHING, shard) == ()
    assert len(route((RoutingRule("s1", "shop", ".*", "merged", "t", skip=""),), shard)) == 1


@pytest.mark.parametrize("table", ["t_new", "renew", "_new", "t_gho", "_t_newer"])
def test_other_tables_are_shards(table: str) -> None:
    assert len(route(EVERYTHING, ShardId("s1", "shop", table))) == 1
