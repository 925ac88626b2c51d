from __future__ import annotations

import pytest

from shardmerge.agents.tracking.misread_texts import misread_message, misread_texts
from shardmerge.connectors.debezium.envelope import ColumnImage, TableChange
from shardmerge.schemas.ddl.apply.statements import apply_create
from shardmerge.schemas.ddl.changes import CreateTable
from shardmerge.schemas.ddl.grammar import ServerContext, parse
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.tables import TableSchema


def table(definition: str) -> TableSchema:
    context = ServerContext(default_database="shop")
    statement = parse(f"CREATE TABLE t ({definition}) CHARACTER SET utf8mb4", context)
    assert isinstance(statement, CreateTable)
    return apply_create(statement, context, None)


def described(*charsets: str) -> TableChange:
    columns = tuple(ColumnImage(f"c{n}", "X", charset) for n, charset in enumerate(charsets))
    return TableChange("CREATE", "shop", "t", columns)


@pytest.mark.parametrize(
    ("server", "debezium"),
    [("utf8mb4", "latin1"), ("latin1", "utf8mb4"), ("latin1", "latin2"), ("ascii", "utf16")],
)
def test_a_text_that_is_decoded_with_another_charset_is_named(server: str, debezium: str):
    schema = table(f"c0 VARCHAR(9) CHARACTER SET {server}")
    assert list(misread_texts(schema, described(debezium))) == [("c0", server, debezium)]


@pytest.mark.parametrize(
    ("server", "debezium"),
    [
        ("utf8mb4", "utf8mb4"),
        ("utf8mb4", "UTF8MB4"),
        ("utf8mb3", "utf8"),
        ("utf8mb4", "utf8"),  # Java has one UTF-8.
        ("ascii", "latin1"),
        ("latin1", ""),  # It tells none.
    ],
)
def test_a_charset_that_gives_the_same_text_is_no_difference(server: str, debezium: str):
    schema = table(f"c0 TEXT CHARACTER SET {server}")
    assert list(misread_texts(schema, described(debezium))) == []


@pytest.mark.parametrize("kind", ["INT", "ENUM('ä')", "SET('ä')", "JSON", "VARBINARY(3)", "BLOB"])
def test_only_texts_are_decoded(kind: str):
    assert list(misread_texts(table(f"c0 {kind}"), described("latin1"))) == []


def test_every_such_column_is_told_with_the_statement_that_corrects_the_first():
    schema = table("c0 CHAR(1), c1 INT, c2 TEXT CHARACTER SET latin2")
    found = list(misread_texts(schema, described("latin1", "", "latin1")))
    error, hint = misread_message(ShardId("s1", "shop", "t"), found)
    assert error.endswith("c0 is utf8mb4, not latin1, c2 is latin2, not latin1")
    assert "ALTER TABLE `shop`.`t` MODIFY `c0` ... CHARACTER SET utf8mb4" in hint
    assert "reread" in hint
