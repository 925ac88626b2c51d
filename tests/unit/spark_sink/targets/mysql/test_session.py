"""What a session makes of the server's answers; the server is a script."""

from __future__ import annotations

import time
from typing import Any

import pymysql
import pytest
from pymysql.constants import CLIENT

from shardmerge.connectors.access import mysql
from shardmerge.connectors.access.mysql import NOT_ADMITTED
from shardmerge.schemas.model.errors import TargetError, TargetLost
from shardmerge.schemas.model.names import TargetTable
from shardmerge.spark_sink.targets.mysql import tidb_loads
from shardmerge.spark_sink.targets.mysql.ddl.ddl_lock import ddl_lock
from shardmerge.spark_sink.targets.mysql.server_errors import CONFLICTS, LOST
from shardmerge.spark_sink.targets.mysql.server_notes import (
    ServerNote,
    Statement,
    changed_value_note,
)
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession

PACKET = 1 << 16


class Scripted:
    """A connection and its cursor: every statement of the test's raises ``error``."""

    def __init__(
        self, version: str, error: pymysql.Error | None, warnings: list[tuple[Any, ...]]
    ) -> None:
        self.version, self.error, self.warnings = version, error, warnings
        self.rowcount, self.warning_count = 0, len(warnings)
        self._rows: list[tuple[Any, ...]] = []
        self.quota, self.config = 1 << 30, [("tidb", "db:4000", "name", str(100 << 20))]
        self.asked: list[str] = []
        self.answers: list[list[tuple[Any, ...]] | pymysql.Error] = []
        self.open, self.refuses_several, self.refused = True, False, 0
        self.refused_settings: list[tuple[str, int]] = []
        self.closings = 0

    def mogrify(self, sql: str, arguments: Any) -> str:
        return sql % tuple(map(repr, arguments)) if arguments else sql

    def nextset(self) -> bool:
        """The answer to the next statement of a message."""
        if not self.answers:
            return False
        answer = self.answers.pop(0)
        if isinstance(answer, pymysql.Error):
            raise answer
        self._rows = answer
        return True

    def rollback(self) -> None:
        self.asked.append("ROLLBACK")

    def cursor(self) -> Scripted:
        return self

    def __enter__(self) -> Scripted:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def execute(self, sql: str, _: object = None) -> None:
        if self.refuses_several and ";" in sql:
            self.refused += 1
            raise pymysql.ProgrammingError(1064, "syntax")
        for setting, number in self.refused_settings:
            if setting in sql:
                self.refused_settings.remove((setting, number))
                raise pymysql.OperationalError(number, "interrupted")
        own = ("SET SESSION", "SELECT @@", "SHOW CONFIG")
        if not sql.startswith(own) and self.error is not None:
            raise self.error
        self.asked.append(sql)
        self.rowcount = 2
        if sql.startswith("SHOW WARNINGS"):
            self._rows = self.warnings
            self.rowcount = len(self.warnings)
        elif sql == "SELECT @@tidb_mem_quota_query":
            self._rows = [(self.quota,)]
        elif sql.startswith("SHOW CONFIG"):
            if not self.config:
                raise pymysql.OperationalError(1227, "Access denied")
            self._rows = [*self.config]
        elif sql == "SELECT VERSION()":
            self._rows = [(self.version,)]
        elif sql.startswith("SHOW VARIABLES"):
            self._rows = [("tidb_txn_mode", "pessimistic"), ("sql_mode", "")]
        elif "_LOCK(" in sql:
            self._rows = [(1,)]
        elif "CHARACTER_SETS" in sql:
            self._rows = [("utf8mb4", "utf8mb4_bin")]
        else:
            self._rows = [(1, PACKET, self.version)]

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self._rows

    def close(self) -> None:
        self.closings += 1


@pytest.fixture
def servers() -> list[Scripted]:
    """The scripted servers that ``connect`` made."""
    return []


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch, servers: list[Scripted]) -> Any:
    """Makes a session with a scripted server."""

    def make(
        version: str = "8.0.15",
        error: pymysql.Error | None = None,
        warnings: list[tuple[Any, ...]] | None = None,
        *,
        together: bool = False,
    ) -> MySqlSession:
        server = Scripted(version, error, warnings or [])
        monkeypatch.setattr(mysql, "ServerConnection", lambda **_: server)
        servers.append(server)
        return MySqlSession(MySqlAddress("db", 3306, "", ""), together=together)

    return make


TIDB = "8.0.11-TiDB-v8.4.0"


@pytest.fixture
def no_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    """No LOAD DATA was refused in this process."""
    monkeypatch.setattr(tidb_loads, "_refused", set())


@pytest.mark.usefixtures("no_refusals")
def test_a_tidb_of_a_known_version_is_loaded(connect: Any, servers: list[Scripted]) -> None:
    assert connect(TIDB).can_load
    assert not connect("5.7.25-TiDB-v7.5.0").can_load, "it may commit by it"
    session = connect(TIDB)
    servers[-1].config = []  # who may not see it
    assert session.can_load


@pytest.mark.usefixtures("no_refusals")
@pytest.mark.parametrize("limit", ["quota", "transaction"])
def test_a_tidb_that_might_refuse_a_transaction_is_not(
    connect: Any, servers: list[Scripted], limit: str
) -> None:
    session = connect(TIDB)
    if limit == "quota":
        servers[-1].quota = 32 << 20
    else:
        servers[-1].config = [("tidb", "db:4000", "name", str(32 << 20))]
    assert not session.can_load


@pytest.mark.usefixtures("no_refusals")
def test_after_an_error_no_session_loads_that_tidb(connect: Any, servers: list[Scripted]) -> None:
    session = connect(TIDB)
    assert session.can_load
    servers[-1].error = pymysql.OperationalError(2013, "gone")
    with pytest.raises(TargetError, match="gone") as raised:
        session.load("LOAD DATA LOCAL INFILE '{path}' INTO TABLE t", b"0\n")
    assert raised.value.retryable
    assert not connect(TIDB).can_load
    assert connect("8.0.15").can_load


@pytest.mark.parametrize("number", [*sorted(LOST & {2006, 2013, 1160}), 0, 1153])
def test_a_statement_larger_than_the_server_takes_is_refused(connect: Any, number: int) -> None:
    session = connect(error=pymysql.OperationalError(number, "gone"))

    with pytest.raises(TargetError, match="larger than max_allowed_packet") as raised:
        session.execute_strictly(f"REPLACE INTO t VALUES ('{'ä' * (PACKET // 2)}')")

    error = raised.value
    assert (error.number, error.retryable) == (1153, False)
    assert "raise max_allowed_packet" in error.hint and "db:3306" in error.hint
    assert str(PACKET) in error.message and error.statement
    assert not session.is_open


def test_a_connection_lost_by_a_statement_that_fits_is_tried_again(connect: Any) -> None:
    session = connect(error=pymysql.OperationalError(2006, "gone"))

    with pytest.raises(TargetError, match="gone") as raised:
        session.execute("x" * (PACKET - 2))

    assert (raised.value.number, raised.value.retryable) == (2006, True)
    assert not session.is_open


def test_an_error_of_a_large_statement_that_the_server_read_stays_what_it_is(connect: Any) -> None:
    session = connect(error=pymysql.IntegrityError(1062, "Duplicate entry"))

    with pytest.raises(TargetError, match="Duplicate") as raised:
        session.execute("x" * PACKET)

    assert raised.value.number == 1062 and session.is_open


def test_a_result_that_the_server_made_null_is_refused(connect: Any) -> None:
    session = connect(warnings=[("Warning", 1301, "Result of unhex() was larger than …")])

    with pytest.raises(TargetError, match="unhex") as raised:
        session.load("LOAD DATA LOCAL INFILE '{path}' INTO TABLE t", b"0\n")

    assert (raised.value.number, raised.value.retryable) == (1301, False)
    assert not session.is_open  # the next connection has a raised max_allowed_packet


RANGE_MEMORY = ("Warning", 3170, "Memory capacity of 8388608 bytes for 'range_optimizer_max…'")


def test_a_note_that_is_not_about_a_value_refuses_nothing(connect: Any) -> None:
    session = connect(warnings=[RANGE_MEMORY, ("Note", 1592, "Unsafe statement …")])
    assert session.execute_strictly("DELETE FROM t WHERE (a) IN (1)") == 2
    assert session.load("LOAD DATA LOCAL INFILE '{path}' INTO TABLE t", b"0\n") == 2


@pytest.mark.parametrize("level", ["Note", "Warning"])
def test_a_value_that_is_stored_otherwise_is_refused_whatever_its_level(
    connect: Any, level: str
) -> None:
    session = connect(warnings=[RANGE_MEMORY, (level, 1265, "Data truncated for column 'a'")])
    with pytest.raises(TargetError, match=rf"Data truncated .* \[1265, {level}\]") as raised:
        session.execute_strictly("REPLACE INTO t VALUES ('x ')")
    assert raised.value.number == 1265


def test_notes_that_the_server_keeps_back_are_not_taken_for_harmless() -> None:
    told = [ServerNote(*RANGE_MEMORY)]
    assert changed_value_note(told, 1) is None
    kept_back = changed_value_note(told, 70)
    assert kept_back is not None and kept_back.text.startswith("70 warnings")


@pytest.mark.parametrize(
    ("version", "flavour"),
    [("8.0.15", ""), ("10.11.6-MariaDB-0+deb12u1", "mariadb"), ("8.0.11-TiDB-v8.5.0", "tidb")],
)
def test_the_flavour_is_known_before_the_first_statement(
    connect: Any, version: str, flavour: str
) -> None:
    assert connect(version).is_mariadb is (flavour == "mariadb")
    assert connect(version).is_tidb is (flavour == "tidb")


def test_a_server_is_asked_for_its_facts_once_per_connection(
    connect: Any, servers: list[Scripted]
) -> None:
    session = connect("8.0.11-TiDB-v8.5.0")
    facts = session.facts
    assert (facts.kind, facts.version) == ("tidb", (8, 5, 0))
    assert facts.default_collations == (("utf8mb4", "utf8mb4_bin"),)
    assert session.facts is facts
    assert servers[0].asked.count("SELECT VERSION()") == 1
    session.close()
    assert session.facts == facts
    assert servers[0].asked.count("SELECT VERSION()") == 2


@pytest.mark.parametrize(("version", "asks"), [("8.0.15", 0), ("8.0.11-TiDB-v8.5.0", 1)])
def test_a_session_of_tidb_locks_rows_whatever_its_servers_default_is(
    connect: Any, servers: list[Scripted], version: str, asks: int
) -> None:
    connect(version).execute("DO 0")
    asked = [sql for sql in servers[0].asked if "tidb_txn_mode = 'pessimistic'" in sql]
    assert len(asked) == asks


@pytest.mark.parametrize("number", [9007, 8022, 8028, 8002])
def test_a_conflict_of_tidb_is_tried_again(connect: Any, number: int) -> None:
    session = connect("8.0.11-TiDB-v8.5.0", pymysql.OperationalError(number, "conflict"))
    with pytest.raises(TargetError) as raised:
        session.execute("COMMIT")
    assert raised.value.retryable and number in CONFLICTS


@pytest.mark.parametrize("number", sorted(NOT_ADMITTED))
def test_a_user_who_is_not_admitted_ends_the_sink_and_says_nothing_of_rows(
    monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(**_: object) -> None:
        raise pymysql.OperationalError(number, "no entry")

    monkeypatch.setattr(mysql, "ServerConnection", refuse)
    session = MySqlSession(MySqlAddress("db", 4000, "me", "geheim"))
    with pytest.raises(
        TargetLost, match=rf"does not admit user 'me': no entry \[{number}\]"
    ) as end:
        session.execute("DELETE FROM t")
    assert not end.value.retryable
    assert "geheim" not in str(end.value)


def test_a_server_that_is_away_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> None:
        raise pymysql.OperationalError(2003, "connection refused")

    monkeypatch.setattr(mysql, "ServerConnection", refuse)
    with pytest.raises(TargetError) as away:
        MySqlSession(MySqlAddress("db", 4000, "", "")).execute("DO 0")
    assert away.value.retryable
    assert not isinstance(away.value, TargetLost)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that the session sees, as the only element."""
    now = [1_000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def idle_session(monkeypatch: pytest.MonkeyPatch, server: Scripted, idle_s: int) -> MySqlSession:
    monkeypatch.setattr(mysql, "ServerConnection", lambda **_: server)
    return MySqlSession(MySqlAddress("db", 3306, "", ""), idle_s=idle_s)


@pytest.mark.parametrize(("idle_s", "connections"), [(60, 2), (0, 1)])
def test_a_connection_that_the_server_may_have_ended_is_made_anew(
    monkeypatch: pytest.MonkeyPatch, clock: list[float], idle_s: int, connections: int
) -> None:
    server = Scripted("8.0.15", None, [])
    session = idle_session(monkeypatch, server, idle_s)
    session.execute("DO 1")
    clock[0] += 29
    session.execute("DO 1")
    assert session.generation == 1
    clock[0] += 31
    session.execute("DO 1")
    assert session.generation == connections
    limits = [sql for sql in server.asked if "wait_timeout" in sql and "lock_" not in sql]
    assert len(limits) == (connections if idle_s else 0)


def test_a_transaction_stays_on_its_connection_however_long_it_takes(
    monkeypatch: pytest.MonkeyPatch, clock: list[float]
) -> None:
    session = idle_session(monkeypatch, Scripted("8.0.15", None, []), 60)
    with session.transaction():
        session.execute("DO 1")
        clock[0] += 59
        session.execute("DO 1")
        assert session.generation == 1


def test_a_connection_with_a_named_lock_stays_however_long_nothing_is_asked(
    monkeypatch: pytest.MonkeyPatch, clock: list[float]
) -> None:
    session = idle_session(monkeypatch, Scripted("8.0.15", None, []), 60)
    with ddl_lock(session, "p", TargetTable("merged", "t"), 1):
        clock[0] += 59
        session.execute("DO 1")
        assert session.generation == 1
    clock[0] += 31
    session.execute("DO 1")
    assert session.generation == 2


FIRST = (Statement("SELECT %s", (1,)), Statement("UPDATE t SET v = '%'"))


def test_a_transaction_can_begin_with_several_statements_in_one_message(
    connect: Any, servers: list[Scripted]
) -> None:
    session = connect(together=True)
    servers[-1].answers = [[(1,)], []]
    with session.transaction(FIRST) as answers:
        assert [answer.rows for answer in answers] == [[(1,)], []]
    assert servers[-1].asked[-2:] == ["START TRANSACTION;SELECT 1;UPDATE t SET v = '%'", "COMMIT"]


@pytest.mark.parametrize(("number", "is_open"), [(1062, True), (2013, False)])
def test_an_error_within_a_message_names_its_statement_and_rolls_back(
    connect: Any, servers: list[Scripted], number: int, is_open: bool
) -> None:
    session = connect(together=True)
    servers[-1].answers = [[(1,)], pymysql.OperationalError(number, "no")]
    with pytest.raises(TargetError, match="no") as raised, session.transaction(FIRST):
        pytest.fail("the transaction went on")
    assert raised.value.statement == "UPDATE t SET v = '%'"
    assert session.is_open is is_open
    # The server rolls a transaction back when the connection ends.
    assert (servers[-1].asked[-1] == "ROLLBACK") is is_open


def test_a_server_that_takes_no_message_of_several_statements_gets_them_one_by_one(
    connect: Any, servers: list[Scripted]
) -> None:
    session = connect(together=True)
    servers[-1].refuses_several = True
    for _ in range(2):
        servers[-1].asked.clear()
        with session.transaction(FIRST) as answers:
            assert len(answers) == 2
        asked = [sql for sql in servers[-1].asked if not sql.startswith(("SET", "SELECT @@"))]
        assert asked == ["START TRANSACTION", "SELECT 1", "UPDATE t SET v = '%'", "COMMIT"]
    assert servers[-1].refused == 1


def test_only_sessions_that_are_asked_to_take_several_statements(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flags = []

    def made(**options: Any) -> Scripted:
        flags.append(options["client_flag"])
        return Scripted("8.0.15", None, [])

    monkeypatch.setattr(mysql, "ServerConnection", made)
    for together in (False, True):
        MySqlSession(MySqlAddress("db", 3306, "", ""), together=together).execute("DO 0")
    assert flags == [0, CLIENT.MULTI_STATEMENTS]


@pytest.mark.parametrize("setting", ["sql_mode", "ISOLATION LEVEL", "tidb_txn_mode"])
@pytest.mark.parametrize("number", [1317, 9001, 1105])
def test_a_connection_that_was_not_set_up_whole_runs_no_statement(
    connect: Any, servers: list[Scripted], setting: str, number: int
) -> None:
    session = connect(TIDB)
    server = servers[-1]
    server.refused_settings = [(setting, number)]
    with pytest.raises(TargetError, match=rf"interrupted \[{number}\]"):
        session.execute("REPLACE INTO t VALUES (1)")
    assert not session.is_open
    assert server.closings == 1, "the server is not left with a connection that nobody uses"
    server.asked.clear()
    session.execute("REPLACE INTO t VALUES (1)")
    assert [sql for sql in server.asked if setting in sql], "the next connection is set up anew"
    assert server.asked[-1] == "REPLACE INTO t VALUES (1)"
