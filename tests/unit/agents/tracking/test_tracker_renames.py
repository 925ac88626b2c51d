"""Tables that get another name, change places with partitions, or go with their database."""

from __future__ import annotations

import pytest

from shardmerge.schemas.ddl.grammar import ServerContext
from shardmerge.schemas.effects.row_effects import moved_rows
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.pipeline.routing import RoutingRule
from tests.unit.agents.tracking.tracked_source import CREATE, Source, names, shard


def test_unrouted_tables_are_tracked_for_a_rename_into_a_shard(source):
    source.run("CREATE TABLE _tbl00_gho LIKE tbl00")
    ignored = source.run("ALTER TABLE _tbl00_gho ADD z INT").ignored
    assert ignored is not None and "no routing rule matches s1/shop._tbl00_gho" in ignored.reason
    left = source.run("RENAME TABLE tbl00 TO _tbl00_del").changes
    assert [(c.shard, c.after) for c in left] == [(shard("tbl00"), None)]
    (arrived,) = source.run("RENAME TABLE _tbl00_gho TO tbl00").changes
    assert arrived.before is None and names(arrived.after) == ["ID", "NAME", "z"]


def test_a_renamed_shard_arrives_before_it_leaves(source):
    changes = source.run("ALTER TABLE tbl00 RENAME TO tbl01, ADD z INT").changes
    assert [(c.shard.table, c.id.ordinal, c.id.count) for c in changes] == [
        ("tbl01", 0, 2), ("tbl00", 1, 2),
    ]  # fmt: skip
    assert names(changes[0].after) == ["ID", "NAME", "z"]
    assert changes[1].after is None and not changes[1].error


def test_tables_can_change_places_in_one_statement(source):
    source.run("CREATE TABLE tbl01 (ID INT PRIMARY KEY, other INT)")
    changes = source.run("RENAME TABLE tbl00 TO t, tbl01 TO tbl00, t TO tbl01").changes
    found = {c.shard.table: (names(c.before), names(c.after)) for c in changes}
    assert found == {
        "tbl00": (["ID", "NAME"], ["ID", "other"]),
        "tbl01": (["ID", "other"], ["ID", "NAME"]),
    }


def test_a_rename_of_a_table_whose_database_is_told_nowhere_holds_all_it_can_mean(source):
    source.run("CREATE TABLE tbl00 (ID INT PRIMARY KEY)", database="other")
    changes = source.run("RENAME TABLE tbl00 TO shop.tbl01", database="shop").changes
    assert {c.shard for c in changes} == {shard("tbl00"), shard("tbl01")}
    assert all("does not tell which table" in c.error for c in changes)


def test_a_table_that_changes_places_with_a_partition_is_told_that_its_rows_moved(source):
    source.run("CREATE TABLE parted (ID INT PRIMARY KEY) PARTITION BY HASH (ID)")
    (change,) = source.run("ALTER TABLE parted EXCHANGE PARTITION p0 WITH TABLE tbl00").changes
    assert change.shard == shard("tbl00") and change.before == change.after is not None
    assert moved_rows(change.actions) == ("EXCHANGE PARTITION p0 WITH TABLE tbl00",)


@pytest.fixture
def mariadb() -> Source:
    made = Source(context=ServerContext("mariadb", (10, 11)))
    made.run(CREATE)
    made.run("CREATE TABLE tbl07 (ID INT PRIMARY KEY) PARTITION BY HASH (ID)")
    return made


def test_a_table_that_becomes_a_partition_is_gone(mariadb):
    ddl = "ALTER TABLE tbl07 CONVERT TABLE tbl00 TO PARTITION p VALUES LESS THAN (5)"
    changed, gone = mariadb.run(ddl).changes
    assert changed.shard == shard("tbl07") and len(moved_rows(changed.actions)) == 1
    assert (gone.shard, gone.after, gone.error) == (shard("tbl00"), None, "")


def test_a_partition_that_becomes_a_table_holds_that_table(mariadb):
    changed, made = mariadb.run("ALTER TABLE tbl07 CONVERT PARTITION p TO TABLE tbl09").changes
    if changed.shard != shard("tbl07"):
        changed, made = made, changed
    assert len(moved_rows(changed.actions)) == 1 and not changed.error
    assert made.shard == shard("tbl09") and "partition of another table" in made.error


def test_it_holds_all_tables_that_the_statement_can_mean(source):
    source.run("CREATE TABLE parted (ID INT PRIMARY KEY) PARTITION BY HASH (ID)")
    source.run("CREATE TABLE tbl00 (ID INT PRIMARY KEY)", database="other")
    ddl = "ALTER TABLE shop.parted EXCHANGE PARTITION p0 WITH TABLE tbl00"
    (change,) = source.run(ddl).changes
    assert "does not tell which table it means" in change.error


def test_dropping_a_database_ends_every_shard_in_it(source):
    source.run("CREATE TABLE tbl01 (ID INT PRIMARY KEY)")
    changes = source.run("DROP DATABASE shop").changes
    assert [(c.shard.table, c.after) for c in changes] == [("tbl00", None), ("tbl01", None)]
    assert source.schemas == {}


def test_foreign_keys_follow_their_parent() -> None:
    source = Source(rules=(RoutingRule("s1", "shop|old", r"\w+", "merged", "tbl"),))
    source.run("CREATE TABLE p (id INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES p (id))")
    source.run("CREATE TABLE c (p INT, FOREIGN KEY (p) REFERENCES p (id))")
    source.run("CREATE TABLE x (p INT, FOREIGN KEY (p) REFERENCES shop.p (id))", database="old")

    def parents() -> list[tuple[str, str, tuple[str, ...]]]:
        tables = [s for s in source.schemas.values() if isinstance(s, TableSchema)]
        keys = [key for table in tables for key in table.foreign_keys]
        return [(key.parent_database, key.parent_table, key.parent_columns) for key in keys]

    result = source.run("RENAME TABLE p TO q")
    assert parents() == [("", "q", ("id",)), ("shop", "q", ("id",)), ("", "q", ("id",))]
    changed = {change.shard.table: change.actions for change in result.changes}
    assert changed["c"] == changed["x"] == ("FOREIGN KEY follows shop.q",)
    source.run("ALTER TABLE q RENAME COLUMN id TO ident, RENAME TO old.r")
    both = {("", "r", ("ident",)), ("old", "r", ("ident",))}
    assert set(parents()) == both
    source.run("RENAME TABLE c TO old.c")
    assert set(parents()) == {("", "r", ("ident",))}


@pytest.fixture
def both() -> Source:
    """A source with a table in one of two databases, whose tables are shards."""
    made = Source(rules=(RoutingRule("s1", "shop|old", r"tbl\d\d", "merged", "tbl"),))
    made.run(CREATE)
    return made


# The event's database is that of the new name, not the session's (measured, Debezium 3.6.1).
@pytest.mark.parametrize(
    "ddl",
    [
        "ALTER TABLE shop.tbl00 RENAME tbl01",
        "ALTER TABLE shop.tbl00 RENAME TO tbl01, ADD z INT",
        "ALTER TABLE tbl00 RENAME old.tbl01",
        "ALTER TABLE tbl00 RENAME AS old.tbl01, ADD z INT",
        "RENAME TABLE tbl00 TO old.tbl01",
        "RENAME TABLE shop.tbl00 TO tbl01",
    ],
)
def test_a_table_that_gets_another_database_is_followed_there(both: Source, ddl: str) -> None:
    arrived, left = both.run(ddl, database="old", table="tbl01").changes

    assert (arrived.shard, arrived.error) == (shard("tbl01", "old"), "")
    assert arrived.after is not None
    assert [c.name for c in arrived.after.columns[:2]] == ["ID", "NAME"]
    assert (left.shard, left.after, left.error) == (shard("tbl00"), None, "")
    assert set(both.schemas) == {shard("tbl01", "old")}


def test_an_alter_that_moves_one_of_several_tables_of_a_name_holds_them_all(both: Source) -> None:
    both.run(CREATE, database="more")

    changes = both.run("ALTER TABLE tbl00 RENAME old.tbl01", database="old").changes

    # The rules have no route for the one in the database "more".
    assert {c.shard for c in changes} == {shard("tbl00"), shard("tbl01", "old")}
    assert all("does not tell which table it means" in c.error for c in changes)
