"""gh-ost and pt-online-schema-change: their runs are one schema change of the shard."""

from __future__ import annotations

import re

import pytest

from shardmerge.schemas.effects.row_effects import arrival_effects
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.pipeline.routing import RoutingRule, route
from shardmerge.schemas.records.schema_changes import SchemaChange
from tests.unit.agents.tracking.tracked_source import Source, names

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


def run(source: Source, statements: tuple[str, ...], *, apart: bool = True) -> list[SchemaChange]:
    """Debezium gives a RENAME of several tables in a record for each, at one place."""
    found: list[SchemaChange] = []
    for number, ddl in enumerate(statements):
        pairs = re.findall(r"`shop`.`(\w+)` TO `shop`.`(\w+)`", ddl)
        if len(pairs) < 2 or not apart:
            found += source.run(ddl).changes
            continue
        pos = 10_000 + 1_000 * source.offset + number
        table = ",".join(sorted(new for _, new in pairs))
        for old, new in pairs:
            record = f"RENAME TABLE `{old}` TO `{new}`"
            found += source.run(record, table=table, pos=pos).changes
        source.offset = pos  # what follows stands behind it
    return found


@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize("statements", [GH_OST, PT_OSC], ids=["gh-ost", "pt-osc"])
def test_a_run_is_one_change_of_the_shard(statements: tuple[str, ...], apart: bool) -> None:
    source = Source(EVERYTHING)
    source.run("CREATE TABLE t (id INT PRIMARY KEY, a INT)")

    (change,) = run(source, statements, apart=apart)
    assert source.last is not None
    assert source.last.parted == ()

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


def test_shards_that_swap_their_names_change_and_none_of_them_leaves() -> None:
    source = Source(EVERYTHING)
    source.run("CREATE TABLE a (id INT PRIMARY KEY, x INT)")
    source.run("CREATE TABLE b (id INT PRIMARY KEY, y INT)")

    swap = "RENAME TABLE `shop`.`a` TO `shop`.`_t_old`, `shop`.`b` TO `shop`.`a`, "
    changes = run(source, (swap + "`shop`.`_t_old` TO `shop`.`b`",))

    assert [(c.shard.table, names(c.before), names(c.after)) for c in changes] == [
        ("a", ["id", "x"], ["id", "y"]),
        ("b", ["id", "y"], ["id", "x"]),
    ]


def test_a_table_whose_name_nobody_gets_after_all_leaves_with_the_next_statement() -> None:
    source = Source(EVERYTHING)
    source.run("CREATE TABLE t (id INT PRIMARY KEY)")
    assert source.run("RENAME TABLE t TO _t_del", table="_t_del,t", pos=900).changes == ()

    (change,) = source.run("CREATE TABLE `_x_gho` (id INT)", pos=950).changes

    assert (change.shard.table, change.after) == ("t", None)
    assert source.last is not None
    assert source.last.parted == ()


@pytest.mark.parametrize(
    ("ddl", "table"),
    [("RENAME TABLE t TO u", "u"), ("RENAME TABLE t TO other.t", "t"),
     ("RENAME TABLE t TO `t,u`", "t,u")],
)  # fmt: skip
def test_a_table_that_is_renamed_alone_leaves_at_once(ddl: str, table: str) -> None:
    source = Source(EVERYTHING)
    source.run("CREATE TABLE t (id INT PRIMARY KEY)")

    changes = source.run(ddl, table=table).changes

    assert [c.after for c in changes if c.shard.table == "t"] == [None]


TOOLS = {"gh-ost": "_t_gho", "pt-osc": "_t_new"}
COLUMNS = "(id INT PRIMARY KEY, a INT, b INT)"


def copied(source: Source, tool: str, *alters: str) -> None:
    """A tool makes and alters its copy of t; pt-online-schema-change writes its columns out."""
    table = f"`shop`.`{TOOLS[tool]}`"
    created = "LIKE `shop`.`t`" if tool == "gh-ost" else COLUMNS
    source.run(f"CREATE TABLE {table} {created}")
    for alter in alters:
        source.run(f"ALTER TABLE {table} {alter}")


def swapped(source: Source, tool: str, *, apart: bool = True) -> list[tuple[str, str]]:
    """The cut-over of a copy: whose values the columns of t have then."""
    swap = f"RENAME TABLE `shop`.`t` TO `shop`.`_t_old`, `shop`.`{TOOLS[tool]}` TO `shop`.`t`"
    (change,) = run(source, (swap,), apart=apart)
    assert change.before is not None
    assert change.after is not None
    return [(line.name, line.before) for line in change.lineage]


def a_table() -> Source:
    source = Source(EVERYTHING)
    source.run(f"CREATE TABLE t {COLUMNS}")
    return source


@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize(
    ("alters", "lineage"),
    [
        (("CHANGE a c INT",), {"c": "a", "b": "b"}),
        (("CHANGE `A` `C` BIGINT FIRST",), {"C": "a", "b": "b"}),
        (("CHANGE a c INT, ADD a INT",), {"a": "", "b": "b", "c": "a"}),
        (("CHANGE a b INT, CHANGE b a INT",), {"a": "b", "b": "a"}),
        (("CHANGE a c INT", "ADD d INT", "CHANGE c e INT"), {"b": "b", "d": "", "e": "a"}),
        (("CHANGE a a BIGINT, DROP b",), {"a": "a"}),
        (("DROP a, CHANGE b a INT",), {"a": "b"}),
        # Neither tool knows RENAME COLUMN: the values stay behind, or go where the name is.
        (("RENAME COLUMN a TO c",), {"b": "b", "c": ""}),
        (("RENAME COLUMN a TO b, RENAME COLUMN b TO a",), {"a": "a", "b": "b"}),
    ],
)
def test_columns_have_the_values_that_the_tool_copies(
    tool: str, alters: tuple[str, ...], lineage: dict[str, str], apart: bool
) -> None:
    source = a_table()
    copied(source, tool, *alters)

    found = swapped(source, tool, apart=apart)

    assert dict(found) == {"id": "id", **lineage}


@pytest.mark.parametrize(("tool", "origin"), [("gh-ost", ""), ("pt-osc", "a")])
def test_a_column_that_is_dropped_and_added_again_is_new_to_gh_ost_only(
    tool: str, origin: str
) -> None:
    source = a_table()
    copied(source, tool, "DROP COLUMN a, ADD COLUMN a VARCHAR(9)")

    assert dict(swapped(source, tool))["a"] == origin


def test_what_a_broken_off_run_altered_is_forgotten() -> None:
    source = a_table()
    copied(source, "gh-ost", "CHANGE a c INT")
    source.run("DROP TABLE IF EXISTS `shop`.`_t_gho`")
    copied(source, "gh-ost", "DROP a, ADD c INT")

    assert dict(swapped(source, "gh-ost")) == {"id": "id", "b": "b", "c": ""}
    assert {shard.table for shard in source.schemas} == {"t", "_t_old"}


def test_a_table_that_changes_while_its_copy_is_filled() -> None:
    source = a_table()
    copied(source, "gh-ost", "CHANGE a c INT")
    source.run("ALTER TABLE t ADD d INT, CHANGE b e INT")

    assert swapped(source, "gh-ost") == [("id", "id"), ("c", "a"), ("b", "")]


def test_tables_that_are_swapped_back_are_the_same_by_name() -> None:
    source = a_table()
    copied(source, "gh-ost", "CHANGE a c INT")
    swapped(source, "gh-ost")

    back = "RENAME TABLE `shop`.`t` TO `shop`.`_t_gho`, `shop`.`_t_old` TO `shop`.`t`"
    (change,) = run(source, (back,))
    assert [(x.name, x.before) for x in change.lineage] == [("id", "id"), ("a", ""), ("b", "b")]
    assert change.after is not None
    columns = [ShardColumn(c.name, c) for c in change.after.columns]
    assert len(arrival_effects(columns, change.actions)) == 3  # so its rows are read again

    # What has the copy's name now is not the copy: CHANGE a c does not count a second time.
    assert swapped(source, "gh-ost") == [("id", "id"), ("c", ""), ("b", "b")]


def test_a_copy_that_a_snapshot_found_may_have_been_altered_before() -> None:
    source = a_table()
    source.run("CREATE TABLE `_t_gho` (id INT PRIMARY KEY, c INT, b INT)", snapshot=True)
    source.run("ALTER TABLE `shop`.`_t_gho` CHANGE c d INT")

    assert dict(swapped(source, "gh-ost")) == {"id": "id", "d": "", "b": "b"}
