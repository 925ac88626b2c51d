"""Tables in words that Debezium's parser understands."""

from __future__ import annotations

import pytest

from shardmerge.connectors.repair.schema_history.canonical import create_text
from shardmerge.schemas.ddl.apply.statements import apply_create
from shardmerge.schemas.ddl.changes import CreateTable, TableName
from shardmerge.schemas.ddl.grammar import ServerContext, parse
from tests.strategies import table


def written(columns: str, options: str = "") -> str:
    text = create_text(TableName("app", "t"), table(f"CREATE TABLE t ({columns}) {options}"))
    begin, end = "CREATE TABLE `app`.`t` (", ") DEFAULT CHARACTER SET utf8mb4"
    assert text.startswith(begin) and text.endswith(end)
    return text.removeprefix(begin).removesuffix(end)


@pytest.mark.parametrize(
    ("column", "text"),
    [
        ("url INT", "`url` int NULL"),
        ("`a``b` INT NOT NULL", "`a``b` int NOT NULL"),
        ("a INT UNSIGNED DEFAULT 7", "`a` int unsigned NULL DEFAULT '7'"),
        ("a CHAR(3) DEFAULT 'it''s'", "`a` char(3) CHARACTER SET utf8mb4 NULL DEFAULT 'it''s'"),
        ("a DECIMAL(5,2) NOT NULL DEFAULT 1.5", "`a` decimal(5,2) NOT NULL DEFAULT '1.50'"),
        ("a DATE DEFAULT '2020-01-01'", "`a` date NULL DEFAULT '2020-01-01'"),
        # Debezium cannot convert these defaults.
        ("a BIT(3) DEFAULT b'101'", "`a` bit(3) NULL"),
        ("a BINARY(2) DEFAULT 0x4142", "`a` binary(2) NULL"),
        # Expressions and options, in which a word can be that it does not know.
        ("a DATETIME DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP", "`a` datetime NULL"),
        ("a INT DEFAULT (1 + 1)", "`a` int NULL"),
        ("a INT COMMENT 'url' CHECK (a > 1)", "`a` int NULL"),
        ("a INT INVISIBLE, b INT", "`a` int NULL, `b` int NULL"),
        ("a INT, b INT AS (a + 1) STORED NOT NULL", "`a` int NULL, `b` int NOT NULL"),
        ("a VARCHAR(3) COLLATE utf8mb4_bin", "`a` varchar(3) CHARACTER SET utf8mb4 NULL"),
        ("a POINT NOT NULL SRID 4326", "`a` point NOT NULL"),
        ("a ENUM('x','y''z') CHARACTER SET latin1",
         "`a` enum('x','y''z') CHARACTER SET latin1 NULL"),
    ],
)  # fmt: skip
def test_of_a_column_only_what_debezium_keeps_is_written(column: str, text: str) -> None:
    assert written(column) == text


@pytest.mark.parametrize(
    ("columns", "keys"),
    [
        ("a INT, PRIMARY KEY (a)", "PRIMARY KEY (`a`)"),
        ("a INT, b INT, UNIQUE KEY u (b, a), PRIMARY KEY (a)",
         "PRIMARY KEY (`a`), UNIQUE KEY (`b`, `a`)"),
        ("a INT NOT NULL, b INT, UNIQUE u (a), KEY (b)", "UNIQUE KEY (`a`)"),
        ("a CHAR(9) NOT NULL, UNIQUE u (a(3))", "UNIQUE KEY (`a`)"),
        ("a INT NOT NULL, UNIQUE u ((a + 1))", ""),
        ("a INT, KEY (a)", ""),
    ],
)  # fmt: skip
def test_of_the_indexes_only_keys_are_written(columns: str, keys: str) -> None:
    text = written(columns)
    assert text[text.find(" KEY (") :] == keys[keys.find(" KEY (") :] if keys else "KEY" not in text
    assert text.endswith(keys)


def test_a_counted_key_stays_one() -> None:
    assert written("id INT AUTO_INCREMENT PRIMARY KEY") == (
        "`id` int NOT NULL AUTO_INCREMENT, PRIMARY KEY (`id`)"
    )


def test_options_but_the_character_set_are_left_out() -> None:
    text = create_text(
        TableName("a`b", "url"),
        table("CREATE TABLE t (a INT) ENGINE=InnoDB DEFAULT CHARSET=latin1 COMMENT='x' "
              "PARTITION BY HASH (a)"),
    )  # fmt: skip
    assert text == "CREATE TABLE `a``b`.`url` (`a` int NULL) DEFAULT CHARACTER SET latin1"


def test_types_that_debezium_does_not_know_are_the_bytes_that_the_binlog_has() -> None:
    context = ServerContext("mariadb", (11, 8))
    statement = parse("CREATE TABLE t (a INET6 DEFAULT '::1', b INET4 NOT NULL, c UUID)", context)
    assert isinstance(statement, CreateTable)
    text = create_text(TableName("app", "t"), apply_create(statement, context))
    assert "(`a` binary(16) NULL, `b` binary(4) NOT NULL, `c` uuid NULL)" in text
