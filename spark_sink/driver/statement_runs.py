"""Executes target statements beside the driver's loop: a long one stops its own target only.

A statement can wait for the metadata lock of its table, or copy the table, for seconds or hours.
Meanwhile the rows of all other targets go on. The statements of one target run one after another.
As many targets as ``[sink] statement_connections`` says have statements executed at the same time;
further ones wait for their turn, in the order in which they came.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.records.decisions import TargetStatement
from shardmerge.spark_sink.barrier.restarts import Restart
from shardmerge.spark_sink.barrier.statements import OpenStatement
from shardmerge.spark_sink.barrier.truncations import Truncation
from shardmerge.spark_sink.targets.interface import JournalEntry, StatementJournal


@dataclass(frozen=True, slots=True)
class StatementResult:
    """How a statement ended: exactly one of ``entry`` and ``error`` is set."""

    target: TargetTable
    statement: OpenStatement
    elapsed_ms: int
    entry: JournalEntry | None = None
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class RemovalResult:
    """How the removal of a shard's rows ended; ``error`` is None when it is done."""

    of: Truncation | Restart
    elapsed_ms: int
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class _Removal:
    """Why a shard's rows are taken out, and the statement that deletes them."""

    of: Truncation | Restart
    statement: TargetStatement


@dataclass(frozen=True, slots=True)
class _Run:
    """The work on one target, in its order."""

    target: TargetTable
    work: Sequence[OpenStatement | _Removal]


class StatementRunner:
    """Runs statements in threads, each with a journal, and so a connection, of its own.

    All methods belong to one thread, the driver's.

    Args:
        open_journal: Called in a thread when it needs a journal for the first time.
        most: How many targets have statements executed at the same time, at most.

    Attributes:
        busy: Targets whose statements run, or have ended without ``finished`` having said so.
    """

    def __init__(self, open_journal: Callable[[], StatementJournal], most: int) -> None:
        self._most = most
        self.busy: set[TargetTable] = set()
        self._open_journal = open_journal
        self._runs: queue.SimpleQueue[_Run | None] = queue.SimpleQueue()
        self._results: queue.SimpleQueue[StatementResult | RemovalResult | _Run]
        self._results = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []

    def start(self, target: TargetTable, statements: Sequence[OpenStatement]) -> None:
        """Begin to execute the statements of a target that is not busy."""
        self._begin(_Run(target, statements))

    def start_removal(self, of: Truncation | Restart, statement: TargetStatement) -> None:
        """Begin to delete the rows of a shard; its target is not busy."""
        self._begin(_Run(of.target, [_Removal(of, statement)]))

    def _begin(self, run: _Run) -> None:
        self.busy.add(run.target)
        self._runs.put(run)
        if len(self._threads) < min(len(self.busy), self._most):
            # A daemon thread does not keep the process from ending while a statement takes hours.
            # The journal tells the next process how the statement ended.
            thread = threading.Thread(target=self._work, name="statements", daemon=True)
            self._threads.append(thread)
            thread.start()

    def finished(self, wait_s: float) -> list[StatementResult | RemovalResult]:
        """What ended since the last call, in order within each target.

        Args:
            wait_s: Longest wait for a first result while something runs.
        """
        found: list[StatementResult | RemovalResult] = []
        try:
            while self.busy:
                item = self._results.get(timeout=0 if found or not wait_s else wait_s)
                if isinstance(item, _Run):
                    self.busy.discard(item.target)
                else:
                    found.append(item)
        except queue.Empty:
            pass
        return found

    def stop(self) -> None:
        """Let each thread end after its present work."""
        for _ in self._threads:
            self._runs.put(None)

    def _work(self) -> None:
        journal: StatementJournal | None = None
        while (run := self._runs.get()) is not None:
            for work in run.work:
                started = time.monotonic()
                entry, error = None, None
                try:
                    journal = journal or self._open_journal()
                    if isinstance(work, _Removal):
                        journal.change_rows(run.target, work.statement)
                    else:
                        key = work.key
                        entry = journal.execute(
                            run.target, key.version, key.ordinal, work.statement
                        )
                except Exception as found:  # raised again by the driver, in its thread
                    error = found
                elapsed_ms = round((time.monotonic() - started) * 1000)
                self._results.put(
                    RemovalResult(work.of, elapsed_ms, error)
                    if isinstance(work, _Removal)
                    else StatementResult(run.target, work, elapsed_ms, entry, error)
                )
            self._results.put(run)
