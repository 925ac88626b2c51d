"""Applies the ranges that a plan chose, and goes on from what is committed when tasks fail."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from shardmerge.connectors.event_log import logger
from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.pipeline.settings import Sink
from shardmerge.spark_sink.barrier.truncations import Truncation
from shardmerge.spark_sink.kafka.intake import Intake
from shardmerge.spark_sink.planning.batch_size import BatchSize
from shardmerge.spark_sink.planning.failures import Failing, failing_after
from shardmerge.spark_sink.planning.gathering import gathering_s
from shardmerge.spark_sink.planning.plan import BatchPlan
from shardmerge.spark_sink.planning.ranges import RangeResult, TaskFailure, offsets_moved
from shardmerge.spark_sink.targets.interface import Batches, WriterState, check_epoch

from .applied_rows import AppliedRows
from .driver_metrics import DriverMetrics
from .progress_reports import ProgressReports
from .shard_holds import ShardHolds
from .shard_removals import ShardRemovals
from .statement_outcomes import FAILURE_PAUSE_S
from .statement_runs import StatementRunner

log = logger(__name__)


class BatchRuns:
    """Runs batches of a size that suits the target, and takes their results.

    Args:
        runner: Applies tasks.
        options: Of the pipeline's sink: how large and how long a batch may be.
        control: Tells whether this is still the writer.
        epoch: Of this writer.
        intake, rows, holds, removals, statements: The driver's other parts; most of them take
            results of batches.
        reports: Publish a failure before the pause that follows it.
        metrics: Count what batches do.

    Attributes:
        failing: The targets whose latest batch did not end.
        gathering_s: How long rows may gather before the next batch, in seconds.
    """

    def __init__(
        self,
        runner: Batches,
        options: Sink,
        control: WriterState,
        epoch: int,
        *,
        intake: Intake,
        rows: AppliedRows,
        holds: ShardHolds,
        removals: ShardRemovals,
        statements: StatementRunner,
        reports: ProgressReports,
        metrics: DriverMetrics,
    ) -> None:
        self._runner = runner
        self._size = BatchSize(
            options.max_batch_records, options.max_batch_mb << 20, options.max_batch_s
        )
        self._gather_s = options.gather_ms / 1000
        self._control = control
        self._epoch = epoch
        self._intake = intake
        self._rows = rows
        self._holds = holds
        self._removals = removals
        self._statements = statements
        self._reports = reports
        self._metrics = metrics
        self._expects = False
        self.failing: Failing = {}
        self.gathering_s = 0.0

    def bound(self) -> int:
        """How many offsets the next batch may have."""
        return self._runner.bound(self._size.records)

    def expect(self) -> None:
        """Begin to fetch rows that have just arrived, while it is found out whether they are safe.

        Those that the wait has seen as a whole are not fetched once more.

        Rows behind others that are not applied are left out: what these wait for may take long.

        Raises:
            StackError: Kafka cannot be read.
        """
        applied, safe_ends = self._rows.progress.applied, self._intake.barriers.safe_ends
        bases = self._intake.idle.bases
        starts = {
            partition: applied[partition].offset
            for partition in self._intake.arrived
            if partition in applied and applied[partition].offset == safe_ends.get(partition)
        } | {
            partition: bases[partition] for partition in self._intake.arrived if partition in bases
        }
        if starts or self._expects:
            self._runner.expect(starts, self._intake.seen)
        self._expects = bool(starts)

    def run(self, batch: BatchPlan, is_safe: Callable[[], bool]) -> bool:
        """Apply the planned ranges. Returns whether anything moved.

        Args:
            batch: The ranges.
            is_safe: Whether their rows may be committed (``rows_ahead``). If not, nothing moves.

        Raises:
            WriterReplaced: Another writer took over.
            ContractError: A task has failed in a way that a repetition cannot help.
            TargetError: The target does not answer after a failure (``retryable``).
        """
        moved, started = False, time.monotonic()
        results: list[RangeResult] = []
        failures: list[TaskFailure] = []
        size_bytes = 0
        for result in self._runner.run(batch.tasks, is_safe) if batch.tasks else ():
            if isinstance(result, TaskFailure):
                failures.append(result)
            else:
                results.append(result)
                size_bytes += result.read_bytes
                moved |= self._take(result)
        if not is_safe():
            return False
        if self._expects and not batch.tasks:
            self._runner.expect({}, {})
        self._expects = False
        done = {result.place for result in results}
        busy = self._statements.busy
        self.failing = failing_after(self.failing, batch.tasks, done, failures, busy)
        if batch.tasks:
            self._metrics.batch_ended(time.monotonic() - started, failures)
        if failures:
            # Before the recovery, which raises an error while the target is away.
            self._reports.publish(batch.targets, self.failing)
            self._recover(failures)
        records, seconds = offsets_moved(results), time.monotonic() - started
        self._size.took(records, size_bytes, seconds)
        self.gathering_s = gathering_s(records, seconds, self._gather_s)
        return moved

    def _take(self, result: RangeResult) -> bool:
        """Take a result. Returns whether anything moved."""
        partition = result.place
        target, shard = self._rows.take(result)
        self._metrics.range_applied(target, shard, result)
        if result.hold is not None:
            if result.hold.collides and self._intake.order_partitions(partition.stream):
                return True
            self._holds.hold(partition, result.hold)
        elif not result.truncated:
            self._holds.release([partition])
        elif result.next_position is not None:
            self._removals.meet(
                Truncation(
                    target,
                    shard,
                    partition,
                    result.next_offset,
                    result.next_position,
                    self._intake.decisions.seen,
                    self._intake.watermarks.number + 1,
                )
            )
        # A partition that reaches a gate has moved too: a debt can wait for that.
        return result.next_offset != result.start_offset or result.next_position is not None

    def _recover(self, failures: Sequence[TaskFailure]) -> None:
        """After failed tasks: go on from the committed offsets, unless a failure is final."""
        for failure in failures:
            if failure.final:
                raise ContractError(failure.message, hint=failure.hint, code=failure.code)
            log.warning("tasks_failed", error=failure.message, hint=failure.hint, code=failure.code)
        self._rows.is_stale = True  # also if the target is away now
        time.sleep(FAILURE_PAUSE_S)
        check_epoch(self._control, self._epoch)
        self._rows.renew()
