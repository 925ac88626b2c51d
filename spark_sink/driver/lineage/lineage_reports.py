"""What the driver tells about its targets, for lineage events: it looks, and never waits."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from shardmerge.connectors.clock import now_ms
from shardmerge.connectors.event_log import logger
from shardmerge.schemas.model.errors import SourceError
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.server_context import ServerContext
from shardmerge.schemas.target.table_state import TableState, state_after
from shardmerge.spark_sink.barrier.decisions import Decisions, StatementKey, TargetDecisions
from shardmerge.spark_sink.driver.statement_runs import StatementResult
from shardmerge.spark_sink.lineage.reports import (
    RunState,
    ShardFeed,
    StatementReport,
    TargetReport,
    TargetTableNow,
    executed_table,
    feed_of,
    feeds_of,
    names_of,
)

from .outbox import Outbox

log = logger(__name__)

_SOON_S = 1.0
"""Seconds after a statement when the target is described again."""
Executed = Mapping[TargetTable, Collection[StatementKey]]


@dataclass(slots=True)
class _Run:
    """A target's run, and what was told of it."""

    run_id: str
    state: TableState
    is_told: bool = False
    seen: tuple[int, int] = (-1, -1)
    rows: int = 0
    table: TargetTableNow | None = None
    feeds: dict[ShardId, ShardFeed] = field(default_factory=dict)


class LineageReports:
    """Puts reports about targets and statements into an outbox. For the driver's thread.

    Args:
        outbox: It sends them.
        server: The targets' server.
        interval_s: Seconds between two reports of a target.
        clock: Monotonic seconds.
        now_ms: Milliseconds since 1970.
    """

    def __init__(
        self,
        outbox: Outbox,
        server: ServerContext,
        interval_s: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        now_ms: Callable[[], int] = now_ms,
        new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
    ) -> None:
        self._outbox, self._server, self._interval_s = outbox, server, interval_s
        self._clock, self._now_ms, self._new_id = clock, now_ms, new_id
        self._due_at = clock()
        self._runs: dict[TargetTable, _Run] = {}

    def step(
        self, decisions: Decisions, executed: Executed, written: Mapping[TargetTable, int]
    ) -> None:
        """Report what is new, if it is time.

        Args:
            decisions: What is decided.
            executed: Target → its executed statements.
            written: Target → rows written to it since the process started.
        """
        if self._clock() < self._due_at and decisions.targets.keys() <= self._runs.keys():
            return
        self._due_at = self._clock() + self._interval_s
        for lost in self._outbox.take_lost() & self._runs.keys():
            run = self._runs[lost]
            run.is_told = self._outbox.has_begun(run.run_id)
            run.seen, run.table, run.feeds, run.rows = (-1, -1), None, {}, -1
        for target, decided in decisions.targets.items():
            self._report(decided, executed.get(target, ()), written.get(target, 0))

    def executed(
        self,
        result: StatementResult,
        decisions: Decisions,
        executed: Executed,
        written: Mapping[TargetTable, int],
    ) -> None:
        """Report a statement, if the target has executed it; ``executed`` has it already."""
        if result.entry is None or result.entry.state != "done":
            return
        target, statement = result.target, result.statement.statement
        decided = decisions.targets[target]
        run = self._runs.get(target)
        if run is None:
            run = self._report(decided, executed.get(target, ()), written.get(target, 0))
        elif statement.actions:
            try:
                run.state = state_after(run.state, statement.actions, target, self._server)
            except SourceError as error:
                log.warning("lineage_table_unknown", target=target, error=error)
        ended_ms = self._now_ms()
        key = result.statement.key
        decision = decisions.record(target, key.version)
        feed = None
        if decision is not None and decision.shard is not None:
            gates = decided.shards.get(decision.shard)
            now = feed_of(gates) if gates is not None else None
            left_out = now.left_out if now is not None else ()
            feed = ShardFeed(decision.shard, decision.columns, left_out)
        self._outbox.put(
            StatementReport(
                target=target,
                run_id=self._new_id(),
                parent_id=run.run_id,
                key=key,
                statement=statement,
                began_ms=ended_ms - result.elapsed_ms,
                ended_ms=ended_ms,
                decision=decision,
                table=_table_now(run.state, decided, executed.get(target, ())),
                feed=feed,
            )
        )
        self._due_at = min(self._due_at, self._clock() + _SOON_S)

    def end(self, state: RunState, written: Mapping[TargetTable, int], error: str = "") -> None:
        """Report that the runs of all targets have ended."""
        for target, run in self._runs.items():
            rows = written.get(target, 0)
            self._outbox.put(
                TargetReport(target, run.run_id, state, self._now_ms(), rows, error=error)
            )

    def _report(
        self, decided: TargetDecisions, executed: Collection[StatementKey], rows: int
    ) -> _Run:
        target = decided.target
        run = self._runs.get(target)
        if run is None:
            run = self._runs[target] = _Run(self._new_id(), self._table(decided, executed))
        table, feeds = None, list[ShardFeed]()
        if (seen := (decided.version, len(executed))) != run.seen:
            run.seen = seen
            now, current = _table_now(run.state, decided, executed), feeds_of(decided)
            is_new = now != run.table
            feeds = [feed for s, feed in current.items() if is_new or run.feeds.get(s) != feed]
            if is_new or feeds:
                table = run.table = now
            run.feeds = current
        state = RunState.RUNNING if run.is_told else RunState.START
        if state is RunState.START or table is not None or rows != run.rows:
            self._outbox.put(
                TargetReport(target, run.run_id, state, self._now_ms(), rows, table, tuple(feeds))
            )
        run.is_told, run.rows = True, rows
        return run

    def _table(self, decided: TargetDecisions, executed: Collection[StatementKey]) -> TableState:
        try:
            return executed_table(decided, executed, self._server)
        except SourceError as error:
            # Only the columns' types are missing in the events then.
            log.warning("lineage_table_unknown", target=decided.target, error=error)
            return TableState(None)


def _table_now(
    state: TableState, decided: TargetDecisions, executed: Collection[StatementKey]
) -> TargetTableNow:
    columns = state.schema.columns if state.schema else ()
    return TargetTableNow(columns, names_of(decided, executed))
