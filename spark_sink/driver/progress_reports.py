"""Reports the state of the targets: progress records, and warnings in the log."""

from __future__ import annotations

import time
from collections.abc import Iterable

from shardmerge.connectors.event_log import logger
from shardmerge.schemas.model.names import TargetTable
from shardmerge.spark_sink.kafka.intake import Intake
from shardmerge.spark_sink.kafka.publisher import ProgressPublisher
from shardmerge.spark_sink.planning.failures import Failing
from shardmerge.spark_sink.planning.plan import TargetPlan
from shardmerge.spark_sink.planning.progress import Standing, progress_of
from shardmerge.spark_sink.rows.folding.key_collisions import HINT
from shardmerge.spark_sink.targets.interface import StatementJournal

from .applied_rows import AppliedRows
from .shard_holds import ShardHolds
from .shard_removals import ShardRemovals
from .statement_runs import StatementRunner

log = logger(__name__)

_STAGE_S = 2.0
"""Seconds between two questions to the target about a statement that runs."""


class ProgressReports:
    """Makes the records from the state of the driver's other parts.

    Args:
        publisher: Writes the records.
        journal: Is asked about the statements that run.
        intake, rows, holds, removals, statements: The parts with that state.
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
    ) -> None:
        self._publisher = publisher
        self._journal = journal
        self._intake = intake
        self._rows = rows
        self._holds = holds
        self._removals = removals
        self._statements = statements
        self._stages: dict[TargetTable, tuple[float, str]] = {}

    def publish(self, targets: Iterable[TargetPlan], failing: Failing) -> None:
        """Publish the records that are due, and warn of rows that replaced other rows.

        Args:
            targets: As they were planned last.
            failing: Which of them fail, and why.

        Raises:
            TargetError: The target does not answer what it executes.
        """
        holds = self._holds.by_shard()
        missing = {source: str(what) for source, what in self._intake.barriers.missing.items()}
        rows, unreadable = self._rows.progress, self._intake.unreadable
        for due in self._rows.collisions.due(rows, time.monotonic()):
            log.warning(
                "rows_overwritten", target=due.target, shard=due.shard, rows=due.rows, hint=HINT
            )
        for target in targets:
            name = target.target
            if self._publisher.is_due(name):
                standing = Standing(
                    holds,
                    missing,
                    unreadable,
                    self._stage(name),
                    is_busy=name in self._statements.busy,
                    truncations=self._removals.truncations,
                    failure=failing.get(name),
                    key_collisions=self._rows.collisions.rows,
                )
                count = self._rows.counts.get(name, 0)
                self._publisher.offer(
                    progress_of(self._intake.decisions, target, rows, standing, count)
                )

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
