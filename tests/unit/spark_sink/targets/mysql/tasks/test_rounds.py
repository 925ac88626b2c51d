"""What a round's transaction does about errors of the target; the connection is a script."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from shardmerge.schemas.model.errors import TargetClosed, TargetError
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.pipeline.settings import Kafka
from shardmerge.spark_sink.targets.interface import closed_error
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress
from shardmerge.spark_sink.targets.mysql.tasks import rounds
from shardmerge.spark_sink.targets.mysql.tasks.connection import ApplyConfig, TaskConnection
from shardmerge.spark_sink.targets.mysql.tasks.rounds import RefusedRound, Round, commit

CONFIG = ApplyConfig(
    Kafka(""), MySqlAddress("db", 4000, "", ""), "control", "demo", round_records=1_000
)


class Refusing:
    """A session whose transactions end with errors of these numbers, one after the other."""

    def __init__(self, *numbers: int) -> None:
        self.numbers = list(numbers)
        self.begun = 0

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self.begun += 1
        yield
        if self.numbers:
            number = self.numbers.pop(0)
            raise TargetError("refused", number=number, statement="COMMIT", retryable=True)


@pytest.fixture
def connection(monkeypatch: pytest.MonkeyPatch) -> TaskConnection:
    found = TaskConnection(CONFIG)
    monkeypatch.setattr(found, "control", SimpleNamespace(
        fence=lambda epoch, target: None, advance_all=list, offset_of=lambda place: 0,
    ))  # fmt: skip
    monkeypatch.setattr(found, "write", lambda target, batches: [])
    monkeypatch.setattr(rounds, "_advance", lambda r: None)
    monkeypatch.setattr(rounds, "_note", lambda of, key_collisions: None)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    writes = SimpleNamespace(batches=[], key_collisions=lambda grown: 0)
    monkeypatch.setattr(rounds, "ShardWrites", SimpleNamespace(of=lambda folds: writes))
    return found


def a_round(rows: int) -> Round:
    stream = SimpleNamespace(shard=ShardId("s", "d", "t"), target=TargetTable("m", "t"))
    task = SimpleNamespace(stream=stream, writer_epoch=1, place=None)
    fold = cast(Any, SimpleNamespace(rows=rows))
    return Round(cast(Any, SimpleNamespace(task=task)), 0, rows, fold, (rows, 0), 0)


@pytest.mark.parametrize("number", [8004, 8175])
def test_a_transaction_that_is_too_large_makes_the_next_ones_smaller(
    connection: TaskConnection, number: int
) -> None:
    session = connection.session = cast(Any, Refusing(number, number))
    with pytest.raises(TargetError) as raised:
        commit([a_round(600), a_round(200)], connection)
    assert raised.value.retryable and session.begun == 1  # it would be as large again
    assert connection.round_records == 400
    connection.close = lambda: None  # type: ignore[method-assign]
    with pytest.raises(TargetError):
        commit([a_round(400)], connection)
    assert connection.round_records == 200


def test_one_row_that_is_too_large_for_a_transaction_is_refused(
    connection: TaskConnection,
) -> None:
    connection.session = cast(Any, Refusing(8004))
    with pytest.raises(RefusedRound):
        commit([a_round(1)], connection)
    assert connection.round_records == 1


@pytest.mark.parametrize("number", [9007, 8022, 8028, 1213, 1205])
def test_a_conflict_repeats_the_transaction(connection: TaskConnection, number: int) -> None:
    session = connection.session = cast(Any, Refusing(number))
    commit([a_round(600)], connection)
    assert session.begun == 2 and connection.round_records == 1_000


def test_rows_of_a_target_that_was_cut_over_are_not_written_and_not_searched_for_a_bad_one(
    connection: TaskConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fence(epoch: int, target: TargetTable) -> None:
        raise closed_error(target)

    session = connection.session = cast(Any, Refusing())
    monkeypatch.setattr(connection.control, "fence", fence)
    monkeypatch.setattr(connection, "write", lambda target, batches: pytest.fail("written"))
    with pytest.raises(TargetClosed, match=r"m\.t is not changed: the target was cut over"):
        commit([a_round(600)], connection)
    assert session.begun == 1
