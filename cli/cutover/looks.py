"""Reads from topics and servers everything that the next step of a cut-over depends on."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pymysql

from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.cli.checks.findings import Finding
from shardmerge.cli.checks.server_rules import table_findings
from shardmerge.cli.clients import mysql_cursor
from shardmerge.cli.drift.drift_reader import drift_of
from shardmerge.cli.screen import progress_of
from shardmerge.cli.servers import target_facts
from shardmerge.cli.status import WholeStatus, whole_status
from shardmerge.cli.validation.inputs.table_facts import targets_of
from shardmerge.cli.validation.inputs.topic_facts import TopicFacts
from shardmerge.cli.views.reading import read_log
from shardmerge.cli.views.target_log import AsOf, target_log
from shardmerge.connectors.access.mysql import mysql_error
from shardmerge.connectors.clock import now_ms
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.pipeline.settings import Pipeline

from .drift import drift_reasons
from .obstacles import obstacles_of, sink_obstacles, source_obstacles
from .seen import Reason, Seen, Wishes
from .source_servers import SourceServers
from .target_server import TargetServer
from .tidying import MergedTable, Tidying, counted_column, tidying

_MOMENT_S = 15.0
_PAUSE_S = 1.0
_RECENT_S = 60.0
"""After a look without an obstacle, the topics are not read again for this many seconds. The next
comparison finds an obstacle that appears meanwhile."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The operator's options about the target.

    Attributes:
        drop: See ``tidying``.
        most_parked: Most rows that may wait in Kafka before the writes stop.
    """

    drop: Sequence[str] = ()
    most_parked: int = 10_000


class Looks:
    """Looks at a pipeline and its servers.

    Args:
        pipeline: The pipeline of the target.
        target: The target that is cut over.
        server: The target's server.
        wishes: The operator's options.
        bounds: The operator's options about the target.
        ask: Reads the status of the pipeline.

    Raises:
        ConfigError: There is no such target.
        StackError: Kafka does not answer.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        target: TargetTable,
        server: TargetServer,
        wishes: Wishes,
        bounds: Bounds,
        *,
        ask: Callable[[Pipeline], WholeStatus] = whole_status,
    ) -> None:
        self._pipeline, self._target, self._server = pipeline, target, server
        self._wishes, self._bounds, self._ask = wishes, bounds, ask
        self.facts = TopicFacts(pipeline)
        self._known, self._is_fresh = ask(pipeline), True
        targets_of(self._known.picture, target)
        self._state = self._state_of()
        self.sources = SourceServers(pipeline, target, self.shards(), self._shared())
        self.notes: list[str] = []
        self._free_until = float("-inf")

    def look(self, *, back: bool = False, unchanged: bool = False, fresh: bool = False) -> Seen:
        """What everything is like now.

        Args:
            back: Whether the operator wants to go back. Then no obstacles are looked for.
            unchanged: See ``Seen``.
            fresh: See ``Seen``.

        Raises:
            ShardMergeError: A server, Kafka or Kafka Connect does not answer.
        """
        record, closed = self._server.record()
        ends = {end.source: end.position for end in record.noted}
        sources = self.sources.seen(ends, self._server.handed_over())
        if back or record.opened or record.undoing:
            return Seen(record, closed, sources, unchanged=unchanged)
        obstacles = source_obstacles(self.sources.states(), stopped=self._wishes.stopped)
        if not record.noted:
            obstacles += self._before_the_end()
        table = self._server.table()
        found = Tidying((), ()) if table is None else self._untidy(table)
        self.notes = [*found.notes, *sorted(self.sources.notes)]
        return Seen(record, closed, sources, obstacles, found.statements, fresh=fresh)

    def _before_the_end(self) -> tuple[Reason, ...]:
        """The obstacles that last: under traffic a shard may wait for just a moment."""
        if time.monotonic() < self._free_until:
            return ()
        until = time.monotonic() + _MOMENT_S
        while True:
            if not self._is_fresh:
                self._known = self._ask(self._pipeline)
                self._state = self._state_of()
            self._is_fresh = False
            facts = self.facts.of(self._target)()
            found = obstacles_of(self._known.status, self._target, facts, self._bounds.most_parked)
            found += self._sink() + self._drift()
            if not found:
                self._free_until = time.monotonic() + _RECENT_S
            if not found or time.monotonic() > until:
                return found
            time.sleep(_PAUSE_S)

    def silent_sink(self) -> tuple[Reason, ...]:
        """Whether the sink runs, by a new look at its progress.

        Raises:
            StackError: Kafka does not answer.
        """
        self._known = self._ask(self._pipeline)
        return self._sink()

    def _sink(self) -> tuple[Reason, ...]:
        progress = self._known.picture.progress.get(self._target)
        reported_ms = 0 if progress is None else progress.ts_ms
        return sink_obstacles(self._target, reported_ms, now_ms())

    def _drift(self) -> tuple[Reason, ...]:
        found = drift_of(self._pipeline, [self._target])
        return drift_reasons(self._target, found[0] if found else None, self._findings())

    def _findings(self) -> list[Finding]:
        try:
            with mysql_cursor(self._pipeline.target) as cursor:
                return table_findings(target_facts(cursor, self._pipeline, self._target))
        except pymysql.MySQLError as error:
            raise StackError(f"target: {mysql_error(error)}", code="SM-6720") from error

    def _untidy(self, there: TableSchema) -> Tidying:
        state = self._state
        merged = MergedTable(
            self._target,
            there,
            self._known.picture.joined[self._target].columns,
            [shard.real for shard in state.shards.values() if shard.real is not None],
            [column.name for column in state.policies.origin.columns],
            self._pipeline.target.kind,
        )
        return tidying(merged, self._bounds.drop, self._server.largest(counted_column(merged)))

    def shards(self) -> list[ShardId]:
        """The live shards of the target, sorted."""
        return sorted(self._state.shards)

    def _state_of(self) -> TargetState:
        """The state from the agents' table; else from the target's log, which takes longer."""
        known = self._known.states.get(self._target)
        if known is not None:
            return known
        with progress_of(f"schema log of {self._target}") as progress:
            records = read_log(self._pipeline, self._target, progress)
        return target_log(self._pipeline, self._target, records, AsOf(), None).state

    def _shared(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, list[str]] = {}
        for target in self._known.status.targets:
            if target.target != str(self._target):
                for source in sorted({s.shard.partition("/")[0] for s in target.shards}):
                    found.setdefault(source, []).append(target.target)
        return {source: tuple(names) for source, names in found.items()}
