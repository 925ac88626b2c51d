"""CREATE TABLE … SELECT: applied where the text tells every column, else an error with a remedy."""

from __future__ import annotations

import pytest

from shardmerge.schemas.ddl.apply.statements import apply_create
from shardmerge.schemas.ddl.changes import CreateTable
from shardmerge.schemas.ddl.grammar import ServerContext, parse
from shardmerge.schemas.model.errors import UnparsableDDL, UnsupportedDDL

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
        ("CREATE TABLE t (a INT, b INT) (SELECT A FROM u)", "b A"),
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


def test_the_comment_of_a_column_that_the_query_fills_is_mysqls_to_forget() -> None:
    sql = "CREATE TABLE t (a INT COMMENT 'x', b INT COMMENT 'y') SELECT a FROM u"
    comments = [column.comment for column in read(sql).schema.columns]
    assert comments == ["y", ""]
    mariadb = read(sql, ServerContext("mariadb", (10, 11))).schema
    assert [column.comment for column in mariadb.columns] == ["y", "x"]


def test_columns_of_the_same_name_are_still_an_error() -> None:
    statement = read("CREATE TABLE t (a INT, A INT, b INT) SELECT b FROM u")
    with pytest.raises(UnsupportedDDL, match="two columns"):
        apply_create(statement, MYSQL)


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
