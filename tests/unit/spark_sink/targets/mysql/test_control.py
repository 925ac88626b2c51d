"""How the control tables are read and locked, by what the target is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from shardmerge.schemas.model.errors import TargetClosed, TargetError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.spark_sink.targets.mysql.control import ControlStore
from shardmerge.spark_sink.targets.mysql.control_tables import SLOTS
from shardmerge.spark_sink.targets.mysql.session import MySqlSession


class _Session:
    """Answers as a server of that version whose writer epoch is 7."""

    def __init__(self, version: str, *, closed: bool = False) -> None:
        self.closed = closed
        self.is_tidb = "TiDB" in version
        self.asked: list[str] = []
        self.arguments: Sequence[object] = ()

    def query(self, sql: str, arguments: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        self.asked.append(sql)
        self.arguments = arguments
        return [(7, int(self.closed))]


def store(session: _Session) -> ControlStore:
    return ControlStore(cast(MySqlSession, session), "control", "demo")


@pytest.mark.parametrize(
    ("version", "table", "lock"),
    [
        ("8.0.15", "writer_epoch", "LOCK IN SHARE MODE"),
        ("10.11.6-MariaDB-1", "writer_epoch", "LOCK IN SHARE MODE"),
        ("8.0.11-TiDB-v8.5.0", "writer_slots", "FOR UPDATE"),
    ],
)
def test_the_fence_takes_a_lock_that_the_target_has(version: str, table: str, lock: str) -> None:
    session = _Session(version)
    control = store(session)
    control.fence(7)
    control.fence(7)
    assert len(session.asked) == 2  # the session knows what the server is
    assert all(table in sql and sql.endswith(lock) for sql in session.asked)


def test_sessions_of_a_process_have_slots_of_their_own() -> None:
    sessions = [_Session("8.0.11-TiDB-v8.5.0") for _ in range(SLOTS)]
    for session in sessions:
        store(session).fence(7)
    assert len({session.arguments for session in sessions}) == SLOTS


def test_another_epoch_is_refused() -> None:
    with pytest.raises(TargetError, match="7"):
        store(_Session("8.0.15")).fence(6)


def test_a_closed_target_is_refused_by_the_query_that_takes_the_lock() -> None:
    session = _Session("8.0.15", closed=True)
    with pytest.raises(
        TargetClosed, match=r"merged\.t is not changed: the target was cut over"
    ) as found:
        store(session).fence(7, TargetTable("merged", "t"))
    assert (found.value.code, found.value.retryable) == ("SM-1617", True)
    [sql] = session.asked
    assert "cutovers" in sql
    assert sql.endswith("LOCK IN SHARE MODE")


class _Server:
    """A server whose control tables may be of an earlier version.

    Attributes:
        columns: What ``ddl_journal`` has.
        error: With which it answers ALTER TABLE; "" when it executes it.
        added: Whether the column is there afterwards.
    """

    is_tidb = False

    def __init__(self, *columns: str, error: str = "", added: bool = True) -> None:
        self.columns, self.error, self.added = list(columns), error, added
        self.altered: list[str] = []

    def query(self, sql: str, arguments: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        if "information_schema.COLUMNS" not in sql:
            return [(1,)]
        assert arguments[:2] == ("control", "ddl_journal")
        return [(1,) for name in self.columns if name == arguments[2]]

    def execute(self, sql: str, arguments: Sequence[object] = ()) -> int:
        if sql.startswith("ALTER TABLE"):
            self.altered.append(sql)
            if self.added:
                self.columns += ["actions", "code"]
            if self.error:
                raise TargetError(self.error)
        return 0


def prepared(server: _Server) -> list[str]:
    ControlStore(cast(MySqlSession, server), "control", "demo").prepare()
    return server.altered


def test_a_journal_of_an_earlier_version_gets_the_column_that_it_lacks() -> None:
    added = "ALTER TABLE `control`.`ddl_journal` ADD COLUMN actions LONGTEXT NULL AFTER statement"
    assert prepared(_Server("statement")) == [added]
    assert prepared(_Server("statement", "actions", "code")) == []
    [coded] = prepared(_Server("statement", "actions"))
    assert "ADD COLUMN code VARCHAR(16) NOT NULL DEFAULT '' AFTER error" in coded


def test_two_sinks_that_add_the_column_at_once_both_begin() -> None:
    assert len(prepared(_Server("statement", error="Duplicate column name"))) == 1


def test_a_column_that_cannot_be_added_is_told() -> None:
    with pytest.raises(TargetError, match="ALTER command denied"):
        prepared(_Server("statement", error="ALTER command denied", added=False))
