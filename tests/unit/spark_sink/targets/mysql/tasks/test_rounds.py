"""What a round's transaction does about errors of the target; the connection is a script."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from shardmerge.schemas.model.errors import TargetClosed, TargetError, WriterReplaced
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.pipeline.settings import Kafka
from shardmerge.spark_sink.planning.ranges import Advance
from shardmerge.spark_sink.rows.folding.row_batches import Batch
from shardmerge.spark_sink.rows.folding.row_blocks import Block
from shardmerge.spark_sink.rows.values.forms import Form
from shardmerge.spark_sink.targets.interface import closed_error
from shardmerge.spark_sink.targets.mysql.server_notes import Answer, Statement
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress
from shardmerge.spark_sink.targets.mysql.tasks import rounds
from shardmerge.spark_sink.targets.mysql.tasks.bulk import TableShape
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


class Answering:
    """A session that gives these answers to a first message, and keeps what it is sent.

    ``error`` is raised instead of the first answers.
    """

    is_tidb = is_mariadb = can_load = False
    max_packet = 1 << 20

    def __init__(self, *answers: Answer, error: TargetError | None = None) -> None:
        self.answers, self.error = answers, error
        self.messages: list[list[str]] = []
        self.ends: list[str] = []

    @contextmanager
    def transaction(self, first: Sequence[Statement] = ()) -> Iterator[list[Answer]]:
        self.messages.append([sql for sql, _ in first])
        if first and self.error is not None:
            raise self.error
        try:
            yield list(self.answers) if first else []
        except BaseException:
            self.ends.append("ROLLBACK")
            raise
        self.ends.append("COMMIT")


EPOCH = 1
FENCED, COUNTED = Answer([(EPOCH, 0)], 1, 0), Answer([(4,)], 1, 0)
PUT, MOVED = Answer([], 1, 0), Answer([], 1, 0)
TARGET = TargetTable("m", "t")
ROW = Block(("id",), (Form.INTEGER,), ([7],), (False,), 1)


def small(session: Answering, monkeypatch: pytest.MonkeyPatch) -> tuple[TaskConnection, list[str]]:
    """A connection that knows the target's keys; and what is written statement by statement."""
    found, written = TaskConnection(CONFIG), list[str]()
    found.session = cast(Any, session)
    found.control._session = cast(Any, session)
    found._shapes[TARGET] = 4, TableShape(("id",), ("id",), other_unique=False)

    def write(target: TargetTable, batches: Sequence[Batch]) -> list[int | None]:
        written.append("rows")
        return [0]

    monkeypatch.setattr(found, "write", write)
    for name in ("fence", "advance_all"):
        monkeypatch.setattr(found.control, name, lambda *_, name=name: written.append(name))
    move = Advance("topic", 0, 0, 1, TARGET, 1, 1, 0)
    monkeypatch.setattr(rounds, "_advance", lambda r: move)
    monkeypatch.setattr(rounds, "_note", lambda of, key_collisions: None)
    batches = [Batch(("id",), None, (ROW,))]
    writes = SimpleNamespace(batches=batches, key_collisions=next)
    monkeypatch.setattr(rounds, "ShardWrites", SimpleNamespace(of=lambda folds: writes))
    return found, written


def test_a_small_round_is_one_message_and_a_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Answering(FENCED, COUNTED, PUT, MOVED)
    connection, written = small(session, monkeypatch)
    commit([a_round(1)], connection)
    [[fence, count, put, moved]] = session.messages
    assert "writer_epoch" in fence and "ddl_journal" in count
    assert put == "REPLACE INTO `m`.`t` (`id`) VALUES (7)"
    assert moved.startswith("UPDATE") and "next_offset" in moved
    assert (session.ends, written) == (["COMMIT"], [])


@pytest.mark.parametrize(
    "answers",
    [
        (FENCED, Answer([(5,)], 1, 0), PUT, MOVED),
        (FENCED, COUNTED, Answer([], 1, 1), MOVED),
        (FENCED, COUNTED, PUT, Answer([], 0, 0)),
    ],
    ids=["another statement was executed", "a warning", "the offset is not there"],
)
def test_an_unexpected_answer_rolls_a_small_round_back_and_writes_it_by_statements(
    answers: Sequence[Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Answering(*answers)
    connection, written = small(session, monkeypatch)
    commit([a_round(1)], connection)
    assert session.ends == ["ROLLBACK", "COMMIT"]
    assert written == ["fence", "rows", "advance_all"]


def test_a_small_round_of_a_replaced_writer_is_rolled_back(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Answering(Answer([(EPOCH + 1, 0)], 1, 0), COUNTED, PUT, MOVED)
    connection, written = small(session, monkeypatch)
    with pytest.raises(WriterReplaced, match="another writer took over"):
        commit([a_round(1)], connection)
    assert (session.ends, written) == (["ROLLBACK"], [])


def test_a_small_round_of_a_closed_target_is_rolled_back(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Answering(Answer([(EPOCH, 1)], 1, 0), COUNTED, PUT, MOVED)
    connection, written = small(session, monkeypatch)
    with pytest.raises(TargetClosed):
        commit([a_round(1)], connection)
    assert (session.ends, written) == (["ROLLBACK"], [])


def test_a_refused_small_round_is_written_by_statements_which_tell_what_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    error = TargetError("Duplicate entry", number=1062, statement="REPLACE")
    session = Answering(error=error)
    connection, written = small(session, monkeypatch)
    commit([a_round(1)], connection)
    assert written == ["fence", "rows", "advance_all"]


def test_after_a_conflict_a_small_round_goes_statement_by_statement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    error = TargetError("deadlock", number=1213, statement="REPLACE", retryable=True)
    session = Answering(error=error)
    connection, written = small(session, monkeypatch)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    commit([a_round(1)], connection)
    assert written == ["fence", "rows", "advance_all"]


def test_a_large_round_is_written_statement_by_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Answering(FENCED, COUNTED, PUT, MOVED)
    connection, written = small(session, monkeypatch)
    block = Block(("id",), (Form.INTEGER,), ([*range(101)],), (False,), 101)
    writes = SimpleNamespace(
        batches=[Batch(("id",), None, (block,))], key_collisions=lambda grown: 0
    )
    monkeypatch.setattr(rounds, "ShardWrites", SimpleNamespace(of=lambda folds: writes))
    commit([a_round(101)], connection)
    assert session.messages == [[]] and written == ["fence", "rows", "advance_all"]
