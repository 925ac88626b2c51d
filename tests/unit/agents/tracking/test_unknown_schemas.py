"""Statements after which nobody knows a table's schema: they hold its shard and say why."""

from __future__ import annotations

from shardmerge.agents.tracking.tracked import Unknown
from shardmerge.connectors.debezium.envelope import ColumnImage, TableChange
from shardmerge.schemas.model.tables import TableSchema
from tests.unit.agents.tracking.tracked_source import CREATE, Source, image, names, shard


def test_a_statement_that_nobody_could_tell_holds_its_shards_alone(source: Source):
    source.run("CREATE TABLE tbl01 (ID INT PRIMARY KEY)")

    result = source.run("ALTER TABLE tbl00 ADD a INT", unread="nobody knows tbl00")

    (change,) = result.changes
    assert change.shard == shard("tbl00") and change.error == "nobody knows tbl00"
    assert "set-schema" in change.hint and "reread" in change.hint
    assert isinstance(source.schemas[shard("tbl00")], Unknown)
    assert isinstance(source.schemas[shard("tbl01")], TableSchema)


def test_a_text_that_the_connector_decodes_wrongly_holds_its_shard():
    source = Source()
    source.run("CREATE DATABASE shop CHARACTER SET utf8mb4")
    columns = (ColumnImage("ID", "INT"), ColumnImage("NAME", "VARCHAR", "latin1"))
    told = TableChange("CREATE", "shop", "tbl00", columns, "latin1")

    (change,) = source.run(CREATE, told).changes

    assert "NAME is utf8mb4, not latin1" in change.error and change.code == "SM-1115"
    assert isinstance(source.schemas[shard("tbl00")], Unknown)
    columns = (columns[0], ColumnImage("NAME", "VARCHAR", "utf8mb4"))
    source.run("DROP TABLE tbl00")
    (again,) = source.run(CREATE, TableChange("CREATE", "shop", "tbl00", columns)).changes
    assert not again.error


def test_a_statement_that_is_not_understood_holds_its_shard_with_place_and_remedy(source):
    (change,) = source.run("ALTER TABLE tbl00 FROBNICATE x", table="tbl00").changes
    assert "at character 19" in change.error
    assert change.error.endswith("\n                  ^")
    assert change.hint and change.after is None
    assert isinstance(source.schemas[shard("tbl00")], Unknown)


def test_later_changes_of_an_unknown_table_hold_too_until_it_is_described(source):
    source.run("ALTER TABLE tbl00 FROBNICATE x", table="tbl00")
    (change,) = source.run("ALTER TABLE tbl00 ADD z INT").changes
    assert "FROBNICATE" in change.error and "binlog.000001:101" in change.error
    (change,) = source.run(CREATE, snapshot=True).changes
    assert not change.error and names(change.after) == ["ID", "NAME"]


def test_an_unknown_table_can_be_dropped(source):
    source.run("ALTER TABLE tbl00 FROBNICATE x", table="tbl00")
    (change,) = source.run("DROP TABLE `shop`.`tbl00`").changes
    assert not change.error and change.after is None


def test_a_statement_of_which_no_table_is_known_holds_every_shard_of_its_database(source):
    source.run("CREATE TABLE tbl01 (ID INT PRIMARY KEY)")
    source.run("CREATE TABLE tbl02 (ID INT PRIMARY KEY)", database="other")
    changes = source.run("FROBNICATE ALL").changes
    assert [c.shard for c in changes] == [shard("tbl00"), shard("tbl01")]
    assert all("not clear which tables" in c.hint for c in changes)


def test_columns_that_debezium_reads_otherwise_make_the_schema_unknown(source):
    ddl = "ALTER TABLE tbl00 ADD z INT"
    (change,) = source.run(ddl, image("ALTER", "tbl00", "ID", "z", "NAME")).changes
    assert "not certain" in change.error
    assert isinstance(source.schemas[shard("tbl00")], Unknown)


def test_the_text_counts_where_debezium_reads_another_number_of_columns(source):
    ddl = "ALTER TABLE tbl00 RENAME COLUMN ID TO x, ADD z INT, RENAME COLUMN NAME TO ID"
    (change,) = source.run(ddl, image("ALTER", "tbl00", "ID", "z")).changes
    assert not change.error and change.after is not None
    assert [column.name for column in change.after.columns] == ["x", "ID", "z"]


def test_a_column_that_only_debezium_sees_is_found_after_any_statement(source):
    (change,) = source.run("FLUSH TABLES", image("ALTER", "tbl00", "ID", "NAME", "z")).changes
    assert "not certain" in change.error


def test_an_alter_of_a_table_that_was_never_described_is_an_error():
    (change,) = Source().run("ALTER TABLE tbl00 ADD z INT").changes
    assert "its CREATE TABLE was not seen" in change.error
