"""Statements whose rest is remembered are read as if it were not."""

from __future__ import annotations

import pytest

from shardmerge.schemas.ddl.changes import AlterTable, CreateTable, CreateTableLike, TableName
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


@pytest.mark.parametrize(
    ("rest", "kind"),
    [
        ("(id INT PRIMARY KEY, a VARCHAR(9), KEY (a), CHECK (a > 'x'))", CreateTable),
        ("(id INT, p INT, FOREIGN KEY (p) REFERENCES t_1 (id))", CreateTable),
        (" LIKE other", CreateTableLike),
        ("(LIKE t_1)", CreateTableLike),
        (" AS SELECT 1 AS a", CreateTable),
    ],
)
def test_the_same_definition_has_each_tables_name(rest: str, kind: type) -> None:
    one, two = parse(f"CREATE TABLE t_1 {rest}", MYSQL), parse(f"create table `T 2`{rest}", MYSQL)
    assert isinstance(one, CreateTable | CreateTableLike)
    assert isinstance(two, CreateTable | CreateTableLike)
    assert type(one) is type(two) is kind
    assert (one.name, two.name) == (TableName("", "t_1"), TableName("", "T 2"))
    assert one == parse(f"/* why */ CREATE TABLE t_1 {rest}", MYSQL)
    assert two == parse(f"/* why */ CREATE TABLE `T 2` {rest}", MYSQL)


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
