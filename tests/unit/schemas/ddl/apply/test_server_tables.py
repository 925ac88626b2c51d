"""Statements executed on a catalog of tables."""

from __future__ import annotations

import pytest

from shardmerge.schemas.ddl.apply.server_tables import Catalog
from shardmerge.schemas.ddl.grammar import ServerContext, parse
from shardmerge.schemas.model.errors import UnsupportedDDL

SERVER = ServerContext(default_database="d")


def executed(*statements: str, base: Catalog | None = None) -> Catalog:
    catalog = Catalog() if base is None else base.copy()
    for sql in statements:
        catalog.execute(parse(sql, SERVER), SERVER)
    return catalog


@pytest.mark.parametrize(
    ("statements", "tables"),
    [
        (["CREATE TABLE t (a INT)", "CREATE TABLE x.u LIKE t"], ["d.t", "x.u"]),
        (["CREATE TABLE t (a INT)", "CREATE TABLE IF NOT EXISTS t (b INT)"], ["d.t"]),
        (["CREATE TEMPORARY TABLE t (a INT)", "DROP TEMPORARY TABLE t"], []),
        (["CREATE TABLE t (a INT)", "CREATE TABLE u (a INT)", "DROP TABLE t, u"], []),
        (["DROP TABLE IF EXISTS t"], []),
        (["CREATE TABLE t (a INT)", "ALTER TABLE t RENAME x.u"], ["x.u"]),
        (
            ["CREATE TABLE t (a INT)", "CREATE TABLE u (a INT)", "RENAME TABLE t TO v, u TO t"],
            ["d.t", "d.v"],
        ),
        (["CREATE TABLE t (a INT)", "CREATE TABLE x.t (a INT)", "DROP DATABASE d"], ["x.t"]),
        (["CREATE TABLE t (a INT)", "TRUNCATE t", "CREATE VIEW v AS SELECT 1"], ["d.t"]),
    ],
)
def test_tables_come_and_go(statements: list[str], tables: list[str]) -> None:
    assert sorted(".".join(key) for key in executed(*statements).tables) == tables


def test_a_tables_columns_follow_its_statements() -> None:
    catalog = executed("CREATE TABLE t (a INT)", "ALTER TABLE t ADD b INT", "ALTER TABLE t DROP a")
    assert [column.name for column in catalog.tables["d", "t"].columns] == ["b"]


def test_a_databases_charset_is_inherited() -> None:
    catalog = executed("ALTER DATABASE CHARSET latin1", "CREATE TABLE t (a CHAR(5))")
    assert catalog.tables["d", "t"].columns[0].type.charset == "latin1"


@pytest.mark.parametrize(
    ("statements", "charset"),
    [
        (["CREATE DATABASE x"], "utf8mb4"),
        (["CREATE DATABASE x CHARSET latin1"], "latin1"),
        (["CREATE DATABASE x CHARSET latin1", "CREATE DATABASE IF NOT EXISTS x"], "latin1"),
        (["CREATE DATABASE x", "CREATE DATABASE IF NOT EXISTS x CHARSET latin1"], "utf8mb4"),
        (["CREATE DATABASE x CHARSET latin1", "ALTER DATABASE x READ ONLY = 0"], "latin1"),
        (["CREATE DATABASE x CHARSET latin1", "ALTER DATABASE x CHARSET DEFAULT"], "utf8mb4"),
        (["CREATE DATABASE x CHARSET latin1", "DROP DATABASE x", "CREATE DATABASE x"], "utf8mb4"),
    ],
)
def test_a_table_has_its_databases_charset(statements: list[str], charset: str) -> None:
    catalog = executed(*statements, "CREATE TABLE x.t (a CHAR(5))")
    assert catalog.tables["x", "t"].columns[0].type.charset == charset


@pytest.mark.parametrize(
    ("context", "collation"),
    [
        (ServerContext(version=(5, 7), default_database="d"), "latin1_bin"),
        (ServerContext("mariadb", (10, 11), default_database="d"), ""),
    ],
    ids=["mysql", "mariadb"],
)
@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE t (a CHAR(5)) CHARSET DEFAULT",
        "CREATE TABLE t (a CHAR(5)) COLLATE DEFAULT",
        "CREATE TABLE t (a CHAR(5)) CHARSET ucs2;ALTER TABLE t CONVERT TO CHARSET DEFAULT",
        "CREATE TABLE t (a CHAR(5)) CHARSET ucs2;ALTER TABLE t CHARSET DEFAULT",
    ],
)
def test_the_default_that_is_asked_for_has_the_databases_collation_on_mysql_only(
    sql: str, context: ServerContext, collation: str
) -> None:
    catalog = Catalog()
    for one in ("ALTER DATABASE COLLATE latin1_bin", *sql.split(";")):
        catalog.execute(parse(one, context), context)
    table = catalog.tables["d", "t"]
    assert (table.charset, table.collation) == ("latin1", collation)


def test_tables_become_partitions_and_partitions_tables() -> None:
    context = ServerContext("mariadb", (10, 11), default_database="d")
    catalog = Catalog()
    for sql in (
        "CREATE TABLE t (a INT) PARTITION BY LIST (a) (PARTITION p VALUES IN (1))",
        "CREATE TABLE u (a INT)",
        "ALTER TABLE t CONVERT TABLE u TO PARTITION q VALUES IN (2)",
        "ALTER TABLE t CONVERT PARTITION p TO TABLE w",
    ):
        catalog.execute(parse(sql, context), context)
    assert catalog.tables.keys() == {("d", "t"), ("d", "w")}
    assert catalog.tables["d", "t"].partitioning and not catalog.tables["d", "w"].partitioning


def test_a_database_that_is_replaced_loses_its_tables() -> None:
    catalog = executed("CREATE TABLE x.t (a INT)", "CREATE OR REPLACE DATABASE x")
    assert not catalog.tables


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE t ADD a INT",
        "DROP TABLE t",
        "RENAME TABLE t TO u",
        "CREATE TABLE u LIKE t",
        "CREATE TABLE u SELECT 1",
    ],
)
def test_what_contradicts_the_tables_is_refused(sql: str) -> None:
    with pytest.raises(UnsupportedDDL):
        executed(sql)


def test_a_copy_is_apart() -> None:
    base = executed("CREATE TABLE t (a INT)")
    executed("DROP TABLE t", base=base)
    assert ("d", "t") in base.tables
