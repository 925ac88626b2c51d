"""How the control tables are read and locked, by what the target is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from shardmerge.schemas.model.errors import TargetError
from shardmerge.spark_sink.targets.mysql.control import ControlStore
from shardmerge.spark_sink.targets.mysql.control_tables import SLOTS
from shardmerge.spark_sink.targets.mysql.session import MySqlSession


class _Session:
    """Answers as a server of that version whose writer epoch is 7."""

    def __init__(self, version: str) -> None:
        self.is_tidb = "TiDB" in version
        self.asked: list[str] = []
        self.arguments: Sequence[object] = ()

    def query(self, sql: str, arguments: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        self.asked.append(sql)
        self.arguments = arguments
        return [(7,)]


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
