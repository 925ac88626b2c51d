"""What the texts of a schema history make of the tables."""

from __future__ import annotations

import pytest

from shardmerge.connectors.binlog.source_offset import SourceOffset
from shardmerge.connectors.repair.schema_history.history import HistoryRecord
from shardmerge.connectors.repair.schema_history.history_tables import HistoryTables
from shardmerge.schemas.ddl.changes import TableName
from shardmerge.schemas.ddl.grammar import ServerContext
from shardmerge.schemas.model.errors import SourceError
from shardmerge.schemas.model.tables import TableSchema

SERVER = ServerContext(version=(8, 0, 36))
T, U, V = (TableName("app", name) for name in "tuv")
CREATE = "CREATE TABLE t (id INT PRIMARY KEY, a INT, b CHAR(3))"


def told(*statements: str) -> HistoryTables:
    tables = HistoryTables(SERVER)
    for sql in statements:
        tables.take(sql, "app")
    return tables


def columns(tables: HistoryTables, name: TableName) -> str:
    table = tables.table(name)
    assert isinstance(table, TableSchema), table
    return " ".join(column.name for column in table.columns)


@pytest.mark.parametrize(
    ("sql", "after"),
    [
        ("ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a", "id b a"),
        ("ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO c", "id b c"),
        ("ALTER TABLE app.t ADD COLUMN url INT FIRST, DROP COLUMN a", "url id b"),
        ("ALTER TABLE other.t DROP COLUMN a", "id a b"),
        ("CREATE TABLE IF NOT EXISTS t (x INT)", "id a b"),
        ("CREATE TEMPORARY TABLE t (x INT)", "id a b"),
        ("DROP TEMPORARY TABLE t", "id a b"),
        ("CREATE DATABASE app2", "id a b"),
        ("DROP DATABASE other", "id a b"),
        ("TRUNCATE TABLE t", "id a b"),
    ],
)
def test_a_statement_makes_of_a_table_what_the_server_makes_of_it(sql: str, after: str) -> None:
    assert columns(told(CREATE, sql), T) == after


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("CREATE TABLE v (id INT)", (V,)),
        ("CREATE TABLE v LIKE t", (V,)),
        ("CREATE TABLE IF NOT EXISTS t (id INT)", ()),
        ("CREATE TEMPORARY TABLE t (id INT)", ()),
        ("ALTER TABLE t ADD url INT", (T,)),
        ("ALTER TABLE t RENAME TO v, ADD url INT", (T, V)),
        ("CREATE UNIQUE INDEX i ON t (a)", (T,)),
        ("DROP TABLE t, other.x", (T, TableName("other", "x"))),
        ("RENAME TABLE t TO v, u TO t", (T, V, U)),
        ("DROP DATABASE app", (T, U)),
        ("CREATE VIEW w AS SELECT 1", ()),
        ("ALTER TABLE t ADD COLUMN", (T,)),
    ],
)
def test_a_statement_names_the_tables_that_it_touches(
    sql: str, names: tuple[TableName, ...]
) -> None:
    assert told(CREATE, "CREATE TABLE u (x INT)").take(sql, "app") == names


def test_tables_can_change_their_names_in_a_ring() -> None:
    tables = told(CREATE, "CREATE TABLE u (x INT)", "RENAME TABLE t TO v, u TO t, v TO u")
    assert (columns(tables, T), columns(tables, U)) == ("x", "id a b")
    assert tables.table(V) is None


def test_a_table_that_was_dropped_is_none() -> None:
    for sql in ("DROP TABLE t", "DROP DATABASE app", "ALTER TABLE t RENAME TO other.t"):
        assert told(CREATE, sql).table(T) is None
    assert columns(told(CREATE, "ALTER TABLE t RENAME TO other.t"), TableName("other", "t"))


@pytest.mark.parametrize(
    "sql", ["ALTER TABLE t ADD COLUMN", "ALTER TABLE t DROP COLUMN missing", "ALTER TABLE t WHAT"]
)
def test_a_table_of_a_statement_that_is_not_understood_cannot_be_told(sql: str) -> None:
    tables = told(CREATE, sql)
    assert isinstance(tables.table(T), SourceError)
    # What follows does not make it known again, but a new table of that name does.
    tables.take("ALTER TABLE t ADD COLUMN c INT", "app")
    assert isinstance(tables.table(T), SourceError)
    tables.take("DROP TABLE t", "app")
    tables.take(CREATE, "app")
    assert columns(tables, T) == "id a b"


@pytest.mark.parametrize(
    "sql",
    ["ALTER TABLE t RENAME TO v", "ALTER TABLE t ADD c INT, RENAME v", "RENAME TABLE t TO v"],
)
def test_a_table_that_cannot_be_told_has_its_new_name(sql: str) -> None:
    tables = told(CREATE, "ALTER TABLE t WHAT")
    assert tables.take(sql, "app") == (T, V)
    assert tables.table(T) is None and isinstance(tables.table(V), SourceError)


def test_a_table_whose_rename_is_not_understood_has_its_new_name() -> None:
    tables = told(CREATE, "ALTER TABLE t DROP COLUMN missing, RENAME TO v")
    assert tables.table(T) is None and isinstance(tables.table(V), SourceError)


def test_a_copy_of_a_table_that_cannot_be_told_cannot_be_told_either() -> None:
    tables = told(CREATE, "ALTER TABLE t WHAT", "CREATE TABLE v LIKE t", "CREATE TABLE u LIKE x")
    assert isinstance(tables.table(V), SourceError) and isinstance(tables.table(U), SourceError)


def record(pos: int, sql: str, **more: object) -> HistoryRecord:
    offset = SourceOffset({"file": "b.000001", "pos": pos})
    told = {"snapshot": False, "changes": (), "database": "app", **more}
    return HistoryRecord(offset, text=sql, **told)  # type: ignore[arg-type]


SWAP = "ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a"


def test_a_statement_that_was_read_twice_counts_once() -> None:
    tables = HistoryTables(SERVER)
    tables.take_history([record(100, CREATE), record(200, SWAP), record(200, SWAP)])
    assert columns(tables, T) == "id b a"
    tables = HistoryTables(SERVER)
    tables.take_history([record(100, CREATE), record(200, SWAP), record(300, SWAP)])
    assert columns(tables, T) == "id a b"


def test_statements_of_one_place_count_each() -> None:
    tables = HistoryTables(SERVER)
    tables.take_history([record(100, CREATE), record(200, "DROP TABLE t"), record(200, CREATE)])
    assert columns(tables, T) == "id a b"


def test_each_statement_of_a_snapshot_counts() -> None:
    tables = HistoryTables(SERVER)
    first = [record(9, "DROP TABLE t", snapshot=True), record(9, CREATE, snapshot=True)]
    tables.take_history(first)
    tables.take("DROP TABLE t", "app")
    tables.take_history(first)
    assert columns(tables, T) == "id a b"


def test_of_our_records_those_that_are_written_for_a_statement_count() -> None:
    other = "CREATE TABLE `app`.`t` (`x` INT)"
    drop = "DROP TABLE IF EXISTS `app`.`t`"
    ours = {"snapshot": True, "is_own": True, "table": '"app"."t"', "database": ""}
    tables = HistoryTables(SERVER)
    tables.take_history(
        [record(100, CREATE), record(200, drop, **ours), record(200, other, **ours)]
    )
    assert columns(tables, T) == "id a b"
    ours["statement"] = "b.000001:150"
    tables.take_history([record(200, drop, **ours), record(200, other, **ours)])
    assert columns(tables, T) == "x"


def test_a_table_that_names_no_character_set_has_the_one_that_debezium_was_told() -> None:
    change = {"type": "CREATE", "id": '"app"."t"', "table": {"defaultCharsetName": "latin1"}}
    other = {"type": "CREATE", "id": '"app"."u"', "table": {"defaultCharsetName": None}}
    tables = HistoryTables(SERVER)
    tables.take_history(
        [
            record(100, CREATE, changes=(change, other)),
            record(200, "CREATE TABLE u (a CHAR(3))", changes=(change, other)),
        ]
    )
    charsets = []
    for name in (T, U):
        table = tables.table(name)
        assert isinstance(table, TableSchema)
        charsets.append((table.charset, table.columns[-1].type.charset))
    assert charsets == [("latin1", "latin1"), ("utf8mb4", "utf8mb4")]
