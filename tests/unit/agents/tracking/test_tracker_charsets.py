"""The character set of a new table: from its statement, its database, its server, or Debezium."""

from __future__ import annotations

import pytest

from shardmerge.connectors.debezium.envelope import TableChange
from tests.unit.agents.tracking.tracked_source import CREATE, Source, image


def test_a_database_default_is_inherited_by_new_tables():
    source = Source()
    source.run("CREATE DATABASE shop CHARACTER SET latin1")
    (change,) = source.run(CREATE).changes
    assert change.after is not None and change.after.charset == "latin1"


def charset(source: Source, ddl: str = CREATE, *tables: TableChange) -> tuple[str, str]:
    (change,) = source.run(ddl, *tables).changes
    assert change.after is not None and not change.error
    return change.after.charset, change.after.collation


SERVER_LATIN1 = "SET character_set_server=latin1, collation_server=latin1_bin"


def test_a_database_that_says_no_charset_has_the_servers_as_the_snapshot_tells_it():
    source = Source()
    result = source.run(SERVER_LATIN1, snapshot=True, database="")
    assert result.ignored is not None and "is not executed" in result.ignored.reason
    source.run("CREATE DATABASE shop")
    assert charset(source) == ("latin1", "latin1_bin")


@pytest.mark.parametrize("told", ["latin1", "LATIN1"])
def test_a_new_table_of_an_unknown_database_has_the_charset_that_debezium_tells(told):
    # The database had no table when the snapshot was taken: that tells nothing about it.
    created = image("CREATE", "tbl00", "ID", "NAME", charset=told)
    assert charset(Source(), CREATE, created) == ("latin1", "")


def test_without_a_word_of_debezium_it_has_the_servers():
    source = Source()
    source.run(SERVER_LATIN1, snapshot=True, database="")
    assert charset(source) == ("latin1", "latin1_bin")


def test_debeziums_word_for_the_servers_charset_leaves_its_collation():
    source = Source()
    source.run(SERVER_LATIN1, snapshot=True, database="")
    created = image("CREATE", "tbl00", "ID", "NAME", charset="latin1")
    assert charset(source, CREATE, created) == ("latin1", "latin1_bin")


@pytest.mark.parametrize(
    ("ddl", "expected"),
    [
        (f"{CREATE} CHARSET utf8mb4", ("utf8mb4", "")),
        (f"{CREATE} COLLATE ucs2_bin", ("ucs2", "ucs2_bin")),
        ("CREATE TABLE tbl00 LIKE tbl07", ("utf8mb4", "")),
    ],
)
def test_what_a_statement_says_goes_before_debeziums_word(ddl, expected):
    source = Source()
    source.run("CREATE TABLE tbl07 (ID INT, NAME CHAR(5)) CHARSET utf8mb4")
    created = image("CREATE", "tbl00", "ID", "NAME", charset="latin1")
    assert charset(source, ddl, created) == expected


def test_what_is_known_of_a_database_goes_before_debeziums_word():
    source = Source()
    source.run("CREATE DATABASE shop COLLATE latin1_bin")
    created = image("CREATE", "tbl00", "ID", "NAME", charset="utf8mb4")
    assert charset(source, CREATE, created) == ("latin1", "latin1_bin")


@pytest.mark.parametrize(
    "before", ["CREATE DATABASE shop", "CREATE TABLE tbl07 (ID INT)", "CREATE SCHEMA shop"]
)
def test_a_database_that_exists_is_not_made_again(before):
    source = Source()
    source.run(before)
    result = source.run("CREATE DATABASE IF NOT EXISTS shop CHARSET latin1")
    assert result.ignored is not None and "exists already" in result.ignored.reason
    assert charset(source) == ("utf8mb4", "")


def test_a_database_that_is_made_anew_after_its_drop_has_new_defaults(source):
    source.run("DROP DATABASE shop")
    source.run("CREATE DATABASE IF NOT EXISTS shop CHARSET latin1")
    assert charset(source) == ("latin1", "")


def test_a_database_that_nothing_names_is_not_the_server():
    source = Source()
    result = source.run("ALTER DATABASE CHARSET latin1", database="")
    assert result.puts == {}
    assert result.ignored is not None and "tells no database" in result.ignored.reason


def test_replacing_a_database_ends_every_shard_in_it(source):
    changes = source.run("CREATE OR REPLACE DATABASE shop CHARSET latin1").changes
    assert [(c.shard.table, c.after) for c in changes] == [("tbl00", None)]
    assert charset(source) == ("latin1", "")


def test_an_alter_that_asks_for_the_default_gets_the_databases():
    source = Source()
    source.run("CREATE DATABASE shop CHARSET latin1")
    source.run(f"{CREATE} CHARSET ucs2")
    assert charset(source, "ALTER TABLE tbl00 CONVERT TO CHARACTER SET DEFAULT") == ("latin1", "")
