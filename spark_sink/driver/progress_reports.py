"""Reports the state of the targets: progress records, and warnings in the log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from shardmerge.connectors.access.lease_names import Sinks
from shardmerge.connectors.event_log import logger
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.records.progress import SinkProgress
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka.intake import Intake
from shardmerge.spark_sink.kafka.publisher import ProgressPublisher
from shardmerge.spark_sink.metrics.waiting_kinds import WaitingKind, waiting_kind
from shardmerge.spark_sink.planning.failures import Failing
from shardmerge.spark_sink.planning.plan import TargetPlan
from shardmerge.spark_sink.planning.progress import Standing, progress_of, reason_unread
from shardmerge.spark_sink.rows.folding.key_collisions import HINT
from shardmerge.spark_sink.targets.interface import StatementJournal

from .applied_rows import AppliedRows
from .drift_watch import DriftWatch
from .driver_metrics import DriverMetrics
from .loads.load_runs import LoadRuns
from .shard_holds import ShardHolds
from .shard_removals import ShardRemovals
from .statement_runs import StatementRunner

log = logger(__name__)

_STAGE_S = 2.0
"""Seconds between two questions to the target about a statement that runs."""

_STILL_S = 5.0
"""Seconds between two records of a sink where nothing changes."""


class ProgressReports:
    """Makes the records from the state of the driver's other parts.

    Args:
        publisher: Writes the records.
        journal: Is asked about the statements that run.
        intake, rows, holds, removals, statements: The parts with that state.
        metrics: Get every record, also one that is not sent.
        loads: Say why a first load does not go on.
        drift: Knows in what the targets' tables differ from what was decided.
        sinks: Tells where this sink and its standbys run.

    Attributes:
        owes: Whether a record is still to be made.
        hurries: Whether that is in a moment.
    """

    def __init__(
        self,
        publisher: ProgressPublisher,
        journal: StatementJournal,
        *,
        intake: Intake,
        rows: AppliedRows,
        holds: ShardHolds,
        removals: ShardRemovals,
        statements: StatementRunner,
        metrics: DriverMetrics,
        loads: LoadRuns,
        drift: DriftWatch,
        sinks: Callable[[], Sinks] = Sinks,
    ) -> None:
        self._publisher = publisher
        self._journal = journal
        self._intake = intake
        self._rows = rows
        self._holds = holds
        self._removals = removals
        self._statements = statements
        self._metrics = metrics
        self._loads = loads
        self._drift = drift
        self._sinks = sinks
        self._stages: dict[TargetTable, tuple[float, str]] = {}
        self._looked_at = float("-inf")
        self.owes = self.hurries = False

    def publish(
        self, targets: Iterable[TargetPlan], failing: Failing, *, is_still: bool = False
    ) -> None:
        """Publish the records that are due, and warn of rows that replaced other rows.

        Args:
            targets: As they were planned last.
            failing: Which of them fail, and why.
            is_still: Whether nothing has changed since the last call. Then records are made only
                now and then: the drift of a target, and the sinks that stand by, may be others.

        Raises:
            TargetError: The target does not answer what it executes.
        """
        now = time.monotonic()
        if is_still and not self.owes and now < self._looked_at + _STILL_S:
            return
        self.owes = self.hurries = False
        self._looked_at = now
        holds = self._holds.by_shard()
        missing: dict[str, str] | None = None
        rows, unreadable = self._rows.progress, self._intake.unreadable
        for due in self._rows.collisions.due(rows, time.monotonic()):
            log.warning(
                "rows_overwritten", target=due.target, shard=due.shard, rows=due.rows, hint=HINT
            )
        for target in targets:
            name = target.target
            if not self._publisher.is_due(name):
                self.owes = True
                self.hurries |= self._publisher.is_due_soon(name)
            else:
                began = time.monotonic()
                if missing is None:
                    missing = {s: str(what) for s, what in self._intake.barriers.missing.items()}
                standing = Standing(
                    holds,
                    missing,
                    unreadable,
                    self._stage(name),
                    is_busy=name in self._statements.busy,
                    truncations=self._removals.truncations,
                    failure=failing.get(name),
                    key_collisions=self._rows.collisions.rows,
                    load_troubles=self._loads.troubles,
                    drift=self._drift.differences.get(name, ()),
                )
                count = self._rows.counts.get(name, 0)
                record = progress_of(self._intake.decisions, target, rows, standing, count)
                sinks = self._sinks()
                record = replace(record, writer=sinks.writer, standbys=sinks.standbys)
                record = self._publisher.offer(record)
                kinds = self._kinds(record, target, standing)
                self._metrics.reported(record, kinds, self._held_rows(kinds))
                self._publisher.took(name, time.monotonic() - began)

    def _kinds(
        self, record: SinkProgress, plan: TargetPlan, standing: Standing
    ) -> dict[ShardId, WaitingKind]:
        """Why the target's shards wait; only shards that do."""
        decisions, strays = self._intake.decisions, self._intake.watermarks.strays
        paused = decisions.targets[plan.target].paused
        found = {}
        for shard in record.shards:
            if shard.waiting:
                name = shard.shard
                unread = name in strays or bool(reason_unread(decisions, name))
                kind = waiting_kind(shard, plan, standing, paused=paused, unread=unread)
                if kind is not None:
                    found[name] = kind
        return found

    def _held_rows(
        self, kinds: Mapping[ShardId, WaitingKind]
    ) -> dict[str, list[tuple[Partition, int]]]:
        """Source → where the waiting rows of its held shards begin."""
        rows = self._rows.progress
        found: dict[str, list[tuple[Partition, int]]] = {}
        for shard, kind in kinds.items():
            for partition in rows.partitions_of(shard) if kind.is_held else ():
                offset = rows.at(partition).offset
                if offset < rows.watermarks.end(partition):
                    found.setdefault(shard.source, []).append((partition.whole, offset))
        return found

    def _stage(self, target: TargetTable) -> str:
        """What the target says about its running statement; asked every ``_STAGE_S`` seconds."""
        now = time.monotonic()
        if target not in self._statements.busy:
            self._stages.pop(target, None)
            return ""
        asked_at, stage = self._stages.setdefault(target, (now, ""))
        if now - asked_at >= _STAGE_S:
            stage = self._journal.stage(target)
            self._stages[target] = now, stage
        return stage
