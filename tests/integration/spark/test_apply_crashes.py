"""The tasks under crashes, lost answers and deadlocks: each range once, or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from shardmerge.schemas.model.errors import TargetError
from shardmerge.spark_sink.targets.mysql.session import MySqlSession
from shardmerge.spark_sink.targets.mysql.tasks import bulk
from shardmerge.spark_sink.targets.mysql.tasks import connection as connections
from shardmerge.spark_sink.targets.mysql.tasks.apply_ranges import apply_together
from shardmerge.spark_sink.targets.mysql.tasks.connection import TaskConnection

from .rig import Rig

PLAIN = "id INT NOT NULL PRIMARY KEY, v VARCHAR(20)"


class Crash(BaseException):
    """The process ends here."""


def crash_before(monkeypatch: pytest.MonkeyPatch, owner: object, name: str, when: str = "") -> None:
    """End the process before the call of a method (with ``when`` in its first argument)."""
    real = getattr(owner, name)

    def crash(self: object, *arguments: object, **more: object) -> object:
        if not when or when in str(arguments[0]):
            raise Crash
        return real(self, *arguments, **more)

    monkeypatch.setattr(owner, name, crash)


@pytest.mark.parametrize(
    ("owner", "name", "when"),
    [
        ("control", "fence", ""),
        ("control", "advance", ""),
        ("session", "execute_strictly", "REPLACE"),
        ("session", "execute", "COMMIT"),
    ],
)
def test_a_crash_before_the_commit_leaves_nothing_and_the_rerun_everything(
    rig: Rig, owner: str, name: str, when: str
) -> None:
    segment = rig.segment(rig.create(PLAIN))
    rig.produce(rig.event("c", {"id": n, "v": "x"}) for n in range(20))
    task = rig.task(segment)
    connection = TaskConnection(rig.config)
    with pytest.MonkeyPatch.context() as patch:
        crash_before(patch, type(getattr(connection, owner)), name, when)
        with pytest.raises(Crash):
            apply_together([task], connection)
    connection.close()

    assert rig.rows() == []
    assert rig.control.offsets() == {}
    assert apply_together([task], rig.connection)[0].written == 20
    assert len(rig.rows()) == 20


@pytest.mark.parametrize("committed", [True, False])
def test_a_lost_acknowledgement_of_commit_is_found_out(rig: Rig, *, committed: bool) -> None:
    segment = rig.segment(rig.create(PLAIN))
    rig.produce(rig.event("c", {"id": n, "v": "x"}) for n in range(20))
    real = MySqlSession.execute
    lost: list[str] = []

    def lose(self: MySqlSession, sql: str, arguments: Sequence[object] = ()) -> int:
        if sql != "COMMIT" or lost or self is not rig.connection.session:
            return real(self, sql, arguments)
        lost.append(sql)
        if committed:
            real(self, sql)
        self.close()
        raise TargetError("gone", number=2013, statement=sql, retryable=True)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MySqlSession, "execute", lose)
        result = rig.apply(segment)

    assert lost
    assert (result.rows, result.written) == (20, 20)
    assert rig.control.rows() == {rig.target: 20}
    assert len(rig.rows()) == 20


def test_a_session_that_the_server_ended_is_made_again(rig: Rig) -> None:
    segment = rig.segment(rig.create(PLAIN))
    rig.produce([rig.event("c", {"id": 1, "v": "x"})])
    rig.apply(segment)
    ((number,),) = rig.connection.session.query("SELECT CONNECTION_ID()")
    rig.session.execute(f"KILL {number}")
    rig.produce([rig.event("c", {"id": 2, "v": "x"})])

    assert rig.apply(segment).written == 1
    assert len(rig.rows()) == 2


def test_a_deadlock_is_tried_again(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    segment = rig.segment(rig.create(PLAIN))
    rig.produce([rig.event("c", {"id": 1, "v": "x"})])
    real = bulk.write_batch
    errors = [1213, 1205, 1213]

    def write(*arguments: Any) -> int:
        if errors:
            raise TargetError("again", number=errors.pop(), statement="x", retryable=True)
        return real(*arguments)

    monkeypatch.setattr(connections, "write_batch", write)

    assert rig.apply(segment).written == 1
    assert rig.rows() == [(1, "x")]
