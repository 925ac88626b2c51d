"""How the control tables are read and locked, by what the target is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from shardmerge.schemas.errors import TargetError
from shardmerge.spark_sink.targets.mysql.control import ControlStore
from shardmerge.spark_sink.targets.mysql.session import MySqlSession


class _Session:
    """Answers as a server of that version whose writer epoch is 7."""

    def __init__(self, version: str) -> None:
        self.is_tidb = "TiDB" in version
        self.asked: list[str] = []

    def query(self, sql: str, arguments: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        self.asked.append(sql)
        return [(7,)]


def store(session: _Session) -> ControlStore:
    return ControlStore(cast(MySqlSession, session), "control", "demo")


@pytest.mark.parametrize(
    ("version", "lock"),
    [
        ("8.0.15", "LOCK IN SHARE MODE"),
        ("10.11.6-MariaDB-1", "LOCK IN SHARE MODE"),
        ("8.0.11-TiDB-v8.5.0", "FOR UPDATE"),
    ],
)
def test_the_fence_takes_a_lock_that_the_target_has(version: str, lock: str) -> None:
    session = _Session(version)
    control = store(session)
    control.fence(7)
    control.fence(7)
    assert len(session.asked) == 2  # the session knows what the server is
    assert all("writer_epoch" in sql and sql.endswith(lock) for sql in session.asked)


def test_another_epoch_is_refused() -> None:
    with pytest.raises(TargetError, match="7"):
        store(_Session("8.0.15")).fence(6)
