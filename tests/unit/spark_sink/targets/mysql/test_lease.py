"""What a sink does about the lease when the server refuses a question; the session is a toy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from shardmerge.schemas.model.errors import TargetError
from shardmerge.spark_sink.targets.mysql.lease import MySqlLease
from shardmerge.spark_sink.targets.mysql.session import MySqlSession


class ToySession:
    """One connection; each statement that contains a text of ``refused`` fails once."""

    is_tidb = False

    def __init__(self, *refused: str) -> None:
        self.is_open = False
        self.refused = list(refused)
        self.asked: list[str] = []

    def query(self, sql: str, arguments: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        self.is_open = True
        self.asked.append(sql)
        for text in self.refused:
            if text in sql:
                self.refused.remove(text)
                raise TargetError("interrupted", number=1317, retryable=True, code="SM-3101")
        if "PROCESSLIST" in sql:
            return [(41,)]
        return [(1,)]

    def execute(self, sql: str, arguments: Sequence[object] = ()) -> int:
        self.query(sql, arguments)
        return 0

    def close(self) -> None:
        self.is_open = False


def lease_on(session: ToySession) -> MySqlLease:
    return MySqlLease(cast(MySqlSession, session), lambda: 1, "lease", (), ("s0",))


def test_silent_sessions_are_ended_in_the_next_wait_when_that_failed() -> None:
    session = ToySession("IS_USED_LOCK")
    lease = lease_on(session)
    with pytest.raises(TargetError, match="interrupted"):
        lease.wait(0)
    assert session.is_open, "the lease is still held"
    assert lease.wait(0)
    assert "KILL CONNECTION 41" in session.asked
    assert sum("GET_LOCK" in sql for sql in session.asked) == 1


def test_silent_sessions_are_ended_once() -> None:
    session = ToySession()
    lease = lease_on(session)
    assert lease.wait(0) and lease.wait(0)
    assert session.asked.count("KILL CONNECTION 41") == 1


def test_sessions_are_ended_again_by_who_lost_the_lease_meanwhile() -> None:
    session = ToySession()
    lease = lease_on(session)
    assert lease.wait(0)
    session.close()
    assert lease.wait(0)
    assert session.asked.count("KILL CONNECTION 41") == 2


def test_a_connection_that_would_not_end_by_silence_is_not_kept() -> None:
    session = ToySession("wait_timeout")
    lease = lease_on(session)
    with pytest.raises(TargetError, match="interrupted"):
        lease.wait(0)
    assert not session.is_open
    assert lease.wait(0)
    assert sum("wait_timeout" in sql for sql in session.asked) == 2
