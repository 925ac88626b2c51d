"""Statements beside the driver's loop: order within a target, targets side by side, errors."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import cast

import pytest

from shardmerge.schemas.model.errors import TargetError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.records.decisions import TargetStatement
from shardmerge.spark_sink.barrier.statements import OpenStatement, StatementState
from shardmerge.spark_sink.driver.statement_runs import StatementResult, StatementRunner
from shardmerge.spark_sink.targets.interface import JournalEntry, StatementJournal
from tests.unit.spark_sink.decided import EXPANDING, TARGET, key, statement

OTHER = TargetTable("merged", "u")
PATIENCE_S = 10.0
DONE = JournalEntry("done")


class _Journal:
    def __init__(self, execute: Callable[[TargetTable, int], JournalEntry]) -> None:
        self._execute = execute

    def execute(
        self, target: TargetTable, version: int, ordinal: int, statement: TargetStatement
    ) -> JournalEntry:
        return self._execute(target, version)


def _runner(execute: Callable[[TargetTable, int], JournalEntry], most: int = 2) -> StatementRunner:
    return StatementRunner(lambda: cast(StatementJournal, _Journal(execute)), most)


def _open(*versions: int) -> list[OpenStatement]:
    return [OpenStatement(key(v), statement(EXPANDING), StatementState.READY) for v in versions]


def _take(runner: StatementRunner, count: int) -> list[StatementResult]:
    found: list[StatementResult] = []
    while len(found) < count:
        more = runner.finished(PATIENCE_S)
        assert more, "nothing ended"
        found += [result for result in more if isinstance(result, StatementResult)]
    return found


def test_the_statements_of_a_target_end_in_their_order() -> None:
    runner = _runner(lambda target, version: DONE)
    runner.start(TARGET, _open(1, 2, 3))
    assert runner.busy == {TARGET}
    found = _take(runner, 3)
    assert [(r.target, r.statement.key, r.entry) for r in found] == [
        (TARGET, key(v), DONE) for v in (1, 2, 3)
    ]
    while runner.busy:
        assert runner.finished(PATIENCE_S) == []
    runner.stop()


def test_a_target_does_not_wait_for_another_one() -> None:
    gate = threading.Event()

    def execute(target: TargetTable, version: int) -> JournalEntry:
        if target == TARGET:
            assert gate.wait(PATIENCE_S)
        return DONE

    runner = _runner(execute)
    runner.start(TARGET, _open(1))
    runner.start(OTHER, _open(1))
    [first] = _take(runner, 1)
    assert (first.target, TARGET in runner.busy) == (OTHER, True)
    assert runner.finished(0) == []
    gate.set()
    assert _take(runner, 1)[0].target == TARGET
    runner.stop()


@pytest.mark.parametrize("most", [1, 3])
def test_as_many_targets_as_allowed_run_at_once_and_the_next_one_comes_in_its_turn(
    most: int,
) -> None:
    gates = {TargetTable("merged", f"t{n}"): threading.Event() for n in range(most + 2)}
    started: queue.SimpleQueue[TargetTable] = queue.SimpleQueue()

    def execute(target: TargetTable, version: int) -> JournalEntry:
        started.put(target)
        assert gates[target].wait(PATIENCE_S)
        return DONE

    runner = _runner(execute, most)
    for target in gates:
        runner.start(target, _open(1))
    waiting = list(gates)[most:]
    running = {started.get(timeout=PATIENCE_S) for _ in range(most)}
    assert running == set(gates) - set(waiting)
    assert started.empty()
    for ended, next_ in zip(sorted(running), waiting, strict=False):
        gates[ended].set()
        assert started.get(timeout=PATIENCE_S) == next_
    for gate in gates.values():
        gate.set()
    _take(runner, len(gates))
    runner.stop()


def test_an_error_is_handed_over_and_the_next_statement_is_tried() -> None:
    error = TargetError("no", retryable=True)

    def execute(target: TargetTable, version: int) -> JournalEntry:
        if version == 1:
            raise error
        return DONE

    runner = _runner(execute)
    runner.start(TARGET, _open(1, 2))
    assert [(r.entry, r.error) for r in _take(runner, 2)] == [(None, error), (DONE, None)]
    runner.stop()


def test_nothing_is_waited_for_when_nothing_runs() -> None:
    assert _runner(lambda target, version: DONE).finished(PATIENCE_S) == []
