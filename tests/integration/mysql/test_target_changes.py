"""What the binlog of a target's server tells of rows that somebody changed by hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from shardmerge.cli.cutover.target_server import TargetServer
from shardmerge.cli.validation.inputs.server_rows import ServerRows
from shardmerge.connectors.binlog.binlog_changes import BinlogEnd
from shardmerge.connectors.sources.row_changes import BinlogUnreadable, RowChanges
from shardmerge.schemas.ddl.changes import TableName
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.spark_sink.targets.mysql.control import ControlStore
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession
from shardmerge.spark_sink.validation.compared_table import compared_table
from shardmerge.spark_sink.validation.doubts import Key
from shardmerge.spark_sink.validation.record_keys import NamesNoKey
from shardmerge.spark_sink.validation.table_validation import TableValidation
from shardmerge.spark_sink.validation.target_changes import TargetKeys, changed_in_target
from tests.breadth import with_further
from tests.unit.spark_sink.validation.facts import S1, shard, target

from .compared_line import TARGET, ToyLine, connected, execute, pipeline, told, validated
from .conftest import source_server

FLAVOURS = with_further(["mysql80", "mariadb1011"], "mysql97")
AT = TableName(TARGET.database, TARGET.table)
OWN = "(id INT PRIMARY KEY, a VARCHAR(20))"
TABLE = compared_table(target(f"CREATE TABLE t {OWN}"), [shard(S1, f"CREATE TABLE t {OWN}")])
KEYS = {
    "BIGINT UNSIGNED": ("18446744073709551615", "7"),
    "INT": ("-2", "3"),
    "MEDIUMINT UNSIGNED": ("16777215", "1"),
    "DECIMAL(12,3)": ("-12.5", "1234567.125"),
    "VARCHAR(40) CHARACTER SET utf8mb4": ("'ä😀 '", "'b'"),
    "CHAR(9) CHARACTER SET ascii": ("'x  '", "'y'"),
    "DATE": ("'2026-11-26'", "'0987-01-02'"),
    "DATETIME(3)": ("'2026-11-26 09:08:07.05'", "'0987-01-02 00:00:00'"),
    "TIMESTAMP(6) DEFAULT '2020-01-01'": ("'2026-11-26 09:08:07.000123'", "'1999-01-02'"),
}


@pytest.fixture(params=FLAVOURS, scope="module")
def flavour(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def port(flavour: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a server that writes a binlog: shards and target."""
    with source_server(flavour, tmp_path_factory.getbasetemp(), 911) as found:
        yield found


@pytest.fixture
def of(flavour: str, port: int) -> Pipeline:
    execute(
        port,
        *(f"DROP DATABASE IF EXISTS {name}" for name in ("app", "merged", "shardmerge")),
        *(f"CREATE DATABASE {name}" for name in ("app", "merged")),
        f"CREATE TABLE app.t_1 {OWN}",
        f"CREATE TABLE merged.t {OWN}",
        *(f"INSERT INTO {t} VALUES (1, 'a'), (2, 'b'), (3, 'c')" for t in ("app.t_1", "merged.t")),
    )
    maria = "source and target" if flavour == "mariadb1011" else ""
    return pipeline(port, port, maria=maria)


def changed(of: Pipeline, since: BinlogEnd) -> set[Key]:
    changes = RowChanges(of.target)
    keys = TargetKeys(TABLE.side.key, changes.columns(AT))
    return changed_in_target(TARGET, keys, changes.since(since, AT))


def test_a_row_that_is_changed_by_hand_is_named_and_its_comparison_finds_it(
    of: Pipeline, port: int
) -> None:
    servers, line = ServerRows(of), ToyLine(port)
    try:
        end = RowChanges(of.target).end()
        assert told(validated(TABLE, servers, line)) == []
        assert changed(of, end) == set()
        execute(
            port,
            "UPDATE merged.t SET a = 'by hand' WHERE id = 2",
            "DELETE FROM merged.t WHERE id = 3",
            "INSERT INTO merged.t VALUES (-9, 'more')",
            "INSERT INTO app.t_1 VALUES (4, 'd')",
            "CREATE TABLE app.other (id INT)",
        )
        found = changed(of, end)
        assert found == {("2",), ("3",), ("-9",)}
        bounded = TableValidation(TABLE, servers, line)
        bounded.compare_keys(sorted(found))
        while bounded.doubts:
            assert bounded.settle()
        assert told(bounded) == [
            ("differs", "2", str(S1), "a"), ("extra", "-9", ""), ("missing", "3", str(S1)),
        ]  # fmt: skip
    finally:
        servers.close()


def test_a_row_that_gets_another_key_is_named_before_and_after_it(of: Pipeline, port: int) -> None:
    end = RowChanges(of.target).end()
    execute(port, "UPDATE merged.t SET id = 20 WHERE id = 2")
    assert changed(of, end) == {("2",), ("20",)}


def test_a_row_image_without_the_key_is_told(of: Pipeline, port: int) -> None:
    end = RowChanges(of.target).end()
    with connected(port) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION binlog_row_image = 'MINIMAL'")
        cursor.execute("UPDATE merged.t SET a = 'by hand' WHERE id = 2")
        cursor.execute("DELETE FROM merged.t WHERE id = 3")
    # The image behind an UPDATE has no key, so all rows are compared.
    with pytest.raises(NamesNoKey, match="key of type int"):
        changed(of, end)


@pytest.mark.parametrize(
    "statement",
    [
        "TRUNCATE merged.t",
        "ALTER TABLE merged.t ADD c INT",
        "UPDATE merged.t SET a = 'as text' WHERE id = 1",
    ],
)
def test_a_statement_that_names_no_rows_is_told(
    of: Pipeline, port: int, statement: str, flavour: str
) -> None:
    end = RowChanges(of.target).end()
    with connected(port) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION binlog_format = 'STATEMENT'")
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor.execute(statement)
    # The library does not read a statement's text of MySQL 9.7 where that has rows.
    with pytest.raises((NamesNoKey, BinlogUnreadable), match=r"has executed|other columns|status"):
        changed(of, end)


@pytest.mark.parametrize("kind", KEYS)
def test_a_key_is_written_as_the_comparison_writes_it(of: Pipeline, port: int, kind: str) -> None:
    execute(
        port,
        "DROP TABLE merged.t",
        f"CREATE TABLE merged.t (b VARCHAR(9) CHARACTER SET latin1, k {kind}, PRIMARY KEY (k))",
    )
    end = RowChanges(of.target).end()
    values = ", ".join(f"('é', {value})" for value in KEYS[kind])
    execute(port, f"INSERT INTO merged.t (b, k) VALUES {values}")
    own = f"CREATE TABLE t (b VARCHAR(9), k {kind}, PRIMARY KEY (k))"
    key = compared_table(target(own), [shard(S1, own)]).side.key
    changes = RowChanges(of.target)
    found = changed_in_target(TARGET, TargetKeys(key, changes.columns(AT)), changes.since(end, AT))
    with connected(port) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT {key[0].selected} FROM merged.t")
        assert found == {(_text(row[0]),) for row in cursor.fetchall()}
    assert len(found) == 2


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def test_another_server_and_a_part_that_is_gone_are_told(of: Pipeline, port: int) -> None:
    changes = RowChanges(of.target)
    end = changes.end()
    for other, why in (
        (replace(end, server="another"), "another server"),
        (replace(end, file="binlog.999999"), "has no binlog.999999"),
        (replace(end, pos=end.pos + 9_999_999), "any more"),
    ):
        with pytest.raises(BinlogUnreadable, match=why):
            list(changes.since(other, AT))
    execute(port, "FLUSH BINARY LOGS", "INSERT INTO merged.t VALUES (8, 'x')")
    assert changed(of, end) == {("8",)}


def test_a_transaction_that_was_prepared_before_counts_when_it_is_committed(
    of: Pipeline, port: int
) -> None:
    with connected(port) as connection, connection.cursor() as cursor:
        for statement in ("XA START 'hand'", "UPDATE merged.t SET a = 'xa' WHERE id = 1",
                          "XA END 'hand'", "XA PREPARE 'hand'"):  # fmt: skip
            cursor.execute(statement)
        end = RowChanges(of.target).end()
        cursor.execute("XA COMMIT 'hand'")
    with pytest.raises(NamesNoKey, match=r"has executed .XA COMMIT"):
        changed(of, end)


NAMING = {
    "mysql80": ("SET GLOBAL gtid_mode = ON_PERMISSIVE", "SET GLOBAL gtid_mode = OFF_PERMISSIVE"),
    "mysql97": ("SET SESSION gtid_next = 'AUTOMATIC:by_hand'",),
    "mariadb1011": ("SET SESSION gtid_domain_id = 7",),
}


def test_a_transaction_counts_however_it_is_named(of: Pipeline, port: int, flavour: str) -> None:
    """MySQL without GTIDs, and with tags; MariaDB with another domain."""
    end = RowChanges(of.target).end()
    with connected(port) as connection, connection.cursor() as cursor:
        for statement in NAMING[flavour]:
            cursor.execute(statement)
        cursor.execute("UPDATE merged.t SET a = 'by hand' WHERE id = 2")
    try:
        assert changed(of, end) == {("2",)}
    finally:
        if flavour == "mysql80":
            execute(port, NAMING[flavour][0], "SET GLOBAL gtid_mode = ON")


COMPRESSING = {
    "mysql80": (),  # before 8.0.20 it does not compress
    "mysql97": ("SET SESSION binlog_transaction_compression = ON",),
    "mariadb1011": (
        "SET GLOBAL log_bin_compress = ON", "SET GLOBAL log_bin_compress_min_len = 10",
    ),
}  # fmt: skip


def test_a_compressed_transaction_is_never_passed_over(
    of: Pipeline, port: int, flavour: str
) -> None:
    end = RowChanges(of.target).end()
    with connected(port) as connection, connection.cursor() as cursor:
        for statement in COMPRESSING[flavour]:
            cursor.execute(statement)
        cursor.execute(f"INSERT INTO merged.t VALUES (9, '{'x' * 20}')")
        if flavour == "mariadb1011":
            cursor.execute("SET GLOBAL log_bin_compress = OFF")
    if COMPRESSING[flavour]:
        with pytest.raises(BinlogUnreadable, match="events of the kind"):
            changed(of, end)
    else:
        assert changed(of, end) == {("9",)}


def test_a_user_without_the_rights_is_told(of: Pipeline, port: int) -> None:
    execute(
        port, "DROP USER IF EXISTS poor", "CREATE USER poor IDENTIFIED BY 'poor-Pass-1'",
        "GRANT SELECT ON merged.* TO poor",
    )  # fmt: skip
    poor = replace(of.target, user="poor", password="poor-Pass-1")
    with pytest.raises(BinlogUnreadable, match=r"(?i)access denied"):
        RowChanges(poor).end()


def test_commits_are_passed_and_leave_nothing_behind(of: Pipeline, port: int) -> None:
    session = MySqlSession(MySqlAddress.of(of.target))
    ControlStore(session, of.target.control_database, of.name).prepare()
    session.close()
    server = TargetServer(of, TARGET)
    server.store.pass_commits()
    server.store.pass_commits()
    server.close()
    with connected(port) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM shardmerge.cutovers")
        assert cursor.fetchall() == ((0,),)
