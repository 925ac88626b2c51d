"""Which statements of a binlog void a reading."""

from __future__ import annotations

import pytest

from shardmerge.connectors.binlog.binlog_events import Logged, RowsEvent, Statement
from shardmerge.connectors.whole.readings.concerned import first_concerning
from shardmerge.schemas.ddl.changes import TableName
from shardmerge.schemas.ddl.grammar import ServerContext

TABLES = {TableName("app", "t"), TableName("app", "Zoë")}


def statement(sql: str, database: str = "app") -> Statement:
    return Statement("binlog.000001", 900, 950, "", database, sql)


@pytest.mark.parametrize(
    ("sql", "database"),
    [
        ("ALTER TABLE t ADD c INT", "app"),
        ("ALTER TABLE app.T ADD c INT", "other"),
        ("ALTER TABLE `zoË` DROP c", "app"),
        ("CREATE INDEX i ON t (c)", "app"),
        ("RENAME TABLE u TO v, t TO w", "app"),
        ("RENAME TABLE other.x TO app.t", "other"),
        ("ALTER TABLE x RENAME TO app.t", "other"),
        ("TRUNCATE t", "app"),
        ("DROP TABLE u, t", "app"),
        ("CREATE TABLE t (c INT)", "app"),
        ("DROP DATABASE app", "other"),
        ("ALTER TABLE t WONDER c INT", "app"),
        ("WONDER", "app"),
    ],
)
def test_a_statement_that_may_change_a_table_is_found(sql: str, database: str) -> None:
    rows = RowsEvent("binlog.000001", 500, 550, 400, 2, "", "app.t")
    found = statement(sql, database)
    items: list[Logged] = [rows, statement("ALTER TABLE u ADD c INT"), found]
    assert first_concerning(items, TABLES, ServerContext()) is found


@pytest.mark.parametrize(
    ("sql", "database"),
    [
        ("ALTER TABLE t ADD c INT", "other"),
        ("ALTER TABLE other.t ADD c INT", "app"),
        ("ALTER TABLE t2 ADD c INT", "app"),
        ("ALTER TABLE t2 WONDER c INT", "app"),
        ("TRUNCATE other.t", "app"),
        ("DROP DATABASE other", "app"),
        ("CREATE DATABASE app", "app"),
        ("CREATE TEMPORARY TABLE t (c INT)", "app"),
        ("GRANT SELECT ON app.t TO u", "app"),
        ("ANALYZE TABLE t", "app"),
    ],
)
def test_any_other_statement_is_not(sql: str, database: str) -> None:
    assert first_concerning([statement(sql, database)], TABLES, ServerContext()) is None
