"""Units of tasks by several connections of a process."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from shardmerge.schemas.model.errors import TargetError
from shardmerge.schemas.pipeline.settings import Kafka
from shardmerge.spark_sink.planning.ranges import TaskFailure
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress
from shardmerge.spark_sink.targets.mysql.tasks import task_runs
from shardmerge.spark_sink.targets.mysql.tasks.connection import (
    TIDB_CONNECTIONS,
    TIDB_ROUND_RECORDS,
    ApplyConfig,
    TaskConnection,
    close_connections,
    idle_connection,
)

CONFIG = ApplyConfig(Kafka(""), MySqlAddress("db", 4000, "", ""), "control", "demo", connections=3)


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    close_connections()


def run(
    monkeypatch: pytest.MonkeyPatch, units: Sequence[Sequence[Any]], apply: Any
) -> list[object]:
    monkeypatch.setattr(task_runs, "apply_tasks", apply)
    return list(task_runs.run_tasks(units, CONFIG))


class _Result:
    def __init__(self, place: object) -> None:
        self.place = place


def test_as_many_units_run_at_once_as_there_are_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    meeting = threading.Barrier(3)

    def apply(unit: Sequence[int], config: ApplyConfig, is_safe: object) -> Iterator[_Result]:
        meeting.wait(30)  # three at once, or never
        yield _Result(unit[0])

    found = run(monkeypatch, [[n] for n in range(6)], apply)
    assert {r.place for r in found if isinstance(r, _Result)} == {*range(6)}


def test_a_failure_is_told_beside_what_others_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Task:
        def __init__(self, place: int) -> None:
            self.place = place
            self.stream = self
            self.target = f"target {place}"

    def apply(unit: Sequence[Task], config: ApplyConfig, is_safe: object) -> Iterator[_Result]:
        if unit[0].place == 1:
            raise TargetError("refused", hint="look")
        yield _Result(unit[0].place)

    found = run(monkeypatch, [[Task(n)] for n in range(9)], apply)
    failures = [r for r in found if isinstance(r, TaskFailure)]
    assert [(f.message, f.hint, str(f.target)) for f in failures] == [
        ("refused", "look", "target 1")
    ]
    # The other connections went on.
    places = {r.place for r in found if isinstance(r, _Result)}
    assert places == {*range(9)} - {1}


def test_a_kept_connection_has_one_user_and_is_used_again() -> None:
    with idle_connection(CONFIG) as one, idle_connection(CONFIG) as other:
        assert one is not other
    with idle_connection(CONFIG) as third:
        assert third in (one, other)
    with idle_connection(replace(CONFIG, pipeline="another")) as elsewhere:
        assert elsewhere not in (one, other)


def test_what_one_connection_learned_of_sizes_holds_for_all() -> None:
    with idle_connection(CONFIG) as one, idle_connection(CONFIG):
        one.shrink_rounds(1_000)
    with idle_connection(CONFIG) as third, idle_connection(CONFIG) as fourth:
        assert third.round_records == fourth.round_records == 500


def test_a_connection_whose_user_failed_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[object] = []

    def close(self: TaskConnection) -> None:
        closed.append(self)

    monkeypatch.setattr(TaskConnection, "close", close)
    with pytest.raises(TargetError), idle_connection(CONFIG) as one:
        raise TargetError("gone")
    assert closed == [one]


def test_a_tidb_is_written_to_in_small_transactions_side_by_side() -> None:
    tidb, mysql = CONFIG.for_kind("tidb"), CONFIG.for_kind("mysql")
    assert (tidb.round_records, tidb.connections) == (TIDB_ROUND_RECORDS, TIDB_CONNECTIONS)
    assert mysql == CONFIG
    assert replace(CONFIG, round_records=7).for_kind("tidb").round_records == 7
