"""Statements whose actions are remembered are read as if they were not."""

from __future__ import annotations

import pytest

from shardmerge.schemas.ddl.changes import AlterTable, TableName
from shardmerge.schemas.ddl.grammar import ServerContext, parse
from shardmerge.schemas.model.errors import UnparsableDDL

MYSQL = ServerContext(default_database="app")
MARIADB = ServerContext(flavour="mariadb", version=(11, 8))


def test_the_same_actions_have_each_tables_name() -> None:
    one = parse("ALTER TABLE t_1 ADD COLUMN a INT", MYSQL)
    two = parse("alter  table `T 2` ADD COLUMN a INT", MYSQL)
    assert isinstance(one, AlterTable)
    assert isinstance(two, AlterTable)
    assert (one.name, two.name) == (TableName("", "t_1"), TableName("", "T 2"))
    assert one.actions == two.actions
    whole = parse("/* why */ ALTER TABLE t_1 ADD COLUMN a INT", MYSQL)
    assert one == whole


def test_servers_keep_their_own_reading() -> None:
    sql = 'ALTER TABLE t ALTER COLUMN a SET DEFAULT "x"'
    assert isinstance(parse(sql, MYSQL), AlterTable)
    with pytest.raises(UnparsableDDL):
        parse(sql, ServerContext(sql_mode=frozenset({"ANSI_QUOTES"}), default_database="app"))


def test_words_that_are_no_names_stay_none() -> None:
    found = parse("ALTER TABLE IF EXISTS t ADD a INT", MARIADB)
    assert isinstance(found, AlterTable)
    assert found.if_exists
    parse("ALTER TABLE x ADD a INT", MYSQL)
    for word in ("SELECT", "if"):
        with pytest.raises(UnparsableDDL):
            parse(f"ALTER TABLE {word} EXISTS t ADD a INT", MYSQL)


def test_an_error_tells_its_place_in_the_statement() -> None:
    sql = "ALTER TABLE a_long_name WOBBLE x"
    with pytest.raises(UnparsableDDL) as caught:
        parse(sql, MYSQL)
    assert sql[caught.value.offset :].startswith("WOBBLE")
