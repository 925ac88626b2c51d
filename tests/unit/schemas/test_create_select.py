"""CREATE TABLE … SELECT: applied where the text tells every column, else an error with a remedy."""

from __future__ import annotations

import pytest

from shardmerge.schemas.apply import apply_create
from shardmerge.schemas.changes import CreateTable
from shardmerge.schemas.errors import UnparsableDDL, UnsupportedDDL
from shardmerge.schemas.grammar import ServerContext, parse

MYSQL = ServerContext()


def read(sql: str, context: ServerContext = MYSQL) -> CreateTable:
    statement = parse(sql, context)
    assert isinstance(statement, CreateTable)
    return statement


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("CREATE TABLE t (a INT) SELECT 1 AS a", "a"),
        ("CREATE TABLE t (a INT) IGNORE AS SELECT u.a FROM u;", "a"),
        ("CREATE TABLE t (a INT, b INT) (SELECT A FROM u)", "b a"),
        ("CREATE TABLE t (c INT, a INT, b INT) REPLACE SELECT b, u.x a FROM u", "c b a"),
        ("CREATE TABLE t (a INT) WITH q AS (SELECT 1 AS a) SELECT a FROM q", "a"),
        ("CREATE TABLE t (a INT) ((SELECT a FROM u) UNION (SELECT b FROM v))", "a"),
        ("CREATE TABLE t (a INT) ENGINE=InnoDB PARTITION BY HASH (a) SELECT a FROM u", "a"),
    ],
)
def test_columns_that_are_all_defined_are_applied_in_the_servers_order(
    sql: str, columns: str
) -> None:
    found = apply_create(read(sql), MYSQL)
    assert [column.name for column in found.columns] == columns.split()


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE t AS SELECT * FROM u",
        "CREATE TABLE t SELECT 1",
        "CREATE TABLE t (a INT) SELECT * FROM u",
        "CREATE TABLE t (a INT) SELECT a, b FROM u",
        "CREATE TABLE t (a INT) SELECT a, b + 1 FROM u",
        "CREATE TABLE t (UNIQUE (a)) IGNORE SELECT a FROM u",
        "CREATE TABLE t (a INT) TABLE u",
        "CREATE TABLE t (a INT) VALUES ROW(1)",
        "CREATE TABLE t (a INT) SELECT a /*!50000, b */ FROM u",
        "CREATE TABLE t (a INT) SELECT a FROM u PROCEDURE ANALYSE()",
    ],
)
def test_columns_that_only_the_query_gives_are_refused_with_a_remedy(sql: str) -> None:
    with pytest.raises(UnsupportedDDL, match="from a query") as caught:
        apply_create(read(sql), MYSQL)
    assert "binlog_format" in caught.value.hint


def test_with_ansi_quotes_a_querys_names_are_not_trusted() -> None:
    context = ServerContext(sql_mode=frozenset({"ANSI_QUOTES"}))
    assert read('CREATE TABLE t (a INT) SELECT "b" AS a FROM u', context).from_query


def test_what_begins_like_no_query_is_an_error() -> None:
    with pytest.raises(UnparsableDDL, match="FOO"):
        parse("CREATE TABLE t (a INT) FOO SELECT a FROM u", MYSQL)
