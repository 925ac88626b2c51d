"""Takes the rows of shards out of the target: after a TRUNCATE, and when a snapshot began again.

Both kinds run beside the driver's loop, and both end in one of two ways. Either the rows are
deleted, and the shard goes on behind the event. Or the target refuses, and the shard is held at the
event until it is tried again.
"""

from __future__ import annotations

from collections.abc import Callable

from shardmerge.connectors.event_log import logger
from shardmerge.schemas.model.errors import TargetError, TargetLost
from shardmerge.schemas.model.names import ShardId
from shardmerge.spark_sink.barrier.decisions import StatementKey
from shardmerge.spark_sink.barrier.restarts import Restart
from shardmerge.spark_sink.barrier.statements import bindings
from shardmerge.spark_sink.barrier.truncations import (
    UNKNOWN_ROWS,
    UNKNOWN_ROWS_HINT,
    Truncation,
    emptying,
)
from shardmerge.spark_sink.kafka.intake import Intake
from shardmerge.spark_sink.kafka.range_reader import RowReader
from shardmerge.spark_sink.kafka.rewind import moves_behind
from shardmerge.spark_sink.planning.plan import BatchPlan
from shardmerge.spark_sink.planning.ranges import Advance, RowHold
from shardmerge.spark_sink.process.failpoints import reach
from shardmerge.spark_sink.rows.decoding.row_format import RowFormat

from .applied_rows import AppliedRows
from .restart_runs import RestartRuns, held_at
from .shard_holds import ShardHolds
from .statement_outcomes import StatementOutcomes
from .statement_runs import RemovalResult, StatementRunner

log = logger(__name__)


class ShardRemovals:
    """Begins the removals of a plan, and takes their results.

    Args:
        restarts: Carries out the steps of restarts.
        statements: Deletes the rows beside the driver's loop.
        open_reader: Opens a reader of row topics; it is closed here.
        row_format: Of their records.
        intake, outcomes, rows, holds: What is decided, executed, applied and held.

    Attributes:
        truncations: Shard → the first TRUNCATE that was met and is not carried out.
    """

    def __init__(
        self,
        restarts: RestartRuns,
        statements: StatementRunner,
        open_reader: Callable[[], RowReader],
        row_format: RowFormat,
        *,
        intake: Intake,
        outcomes: StatementOutcomes,
        rows: AppliedRows,
        holds: ShardHolds,
    ) -> None:
        self._restarts = restarts
        self._statements = statements
        self._open_reader = open_reader
        self._format = row_format
        self._intake = intake
        self._outcomes = outcomes
        self._rows = rows
        self._holds = holds
        self.truncations: dict[ShardId, Truncation] = {}

    def meet(self, truncation: Truncation) -> None:
        """Note that a task has met a TRUNCATE; the first one of a shard is carried out first."""
        known = self.truncations.get(truncation.shard)
        if known is None or truncation.position <= known.position:
            self.truncations[truncation.shard] = truncation

    def begin(self, batch: BatchPlan) -> bool:
        """Begin the removals whose turn has come, if no statement runs on their target.

        Returns:
            Whether a restart made a step, so that another plan is worth it at once.

        Raises:
            StackError: Kafka does not answer.
            TargetError: The target does not answer, or another writer took over.
        """
        for truncation in batch.due_truncations:
            if truncation.target not in self._statements.busy:
                self._empty(truncation)
        went_on = False
        for restart in batch.restarts:
            if restart.target not in self._statements.busy:
                went_on |= self._go_on(restart)
        return went_on

    def take(self, result: RemovalResult) -> None:
        """Note how a removal ended.

        Raises:
            TargetLost: The sink must end, as when another writer took over.
            TargetError: The target does not store the new offsets now (``retryable``).
            StackError: Kafka does not answer.
        """
        of, error = result.of, result.error
        if isinstance(error, TargetError) and not isinstance(error, TargetLost):
            self._refused(of, error)
            return
        if error is not None:
            raise error
        if isinstance(of, Restart):
            self._settled(of, self._restarts.ended(of))
            return
        reach("shard-emptied")
        self._rows.move(self._behind(of))
        del self.truncations[of.shard]
        self._rows.collisions.forget(of.shard)
        self._holds.release([of.partition])
        log.info(
            "shard_emptied",
            shard=of.shard,
            position=of.position,
            seconds=result.elapsed_ms / 1000,
        )

    def _empty(self, truncation: Truncation) -> None:
        """Begin to delete the rows of a truncated shard, or hold it."""
        target = self._intake.decisions.targets[truncation.target]
        bound = bindings(target, self._outcomes.executed.get(target.target, ()))
        removal = emptying(target, (truncation.shard,), bound)
        if removal is not None:
            # Offsets are set back before the first row is deleted. If the sink stops in between,
            # and keeps truncated rows when it starts again, rows behind the event must come again.
            moves = self._behind(truncation)
            self._rows.move([m for m in moves if m.next_offset < m.start_offset])
            reach("offsets-rewound")
            self._statements.start_removal(truncation, removal)
        else:
            self._hold_truncated(truncation, UNKNOWN_ROWS, UNKNOWN_ROWS_HINT, "SM-1507")

    def _behind(self, truncation: Truncation) -> list[Advance]:
        """The moves of a shard's partitions to their first rows behind a TRUNCATE."""
        partitions = self._intake.watermarks.partitions_of(truncation.shard)
        reader = self._open_reader()
        try:
            applied = self._rows.progress.applied
            return moves_behind(truncation, partitions, applied, reader, self._format)
        finally:
            reader.close()

    def _refused(self, of: Truncation | Restart, error: TargetError) -> None:
        """Hold the shard whose rows the target refuses to delete, or cannot delete now."""
        does = "cannot do it now" if error.retryable else "refuses it"
        why = f"the target {does}: {error.message}"
        if isinstance(of, Truncation):
            self._hold_truncated(of, f"TRUNCATE TABLE: {why}", error.hint, "SM-1517")
            return
        progress = self._rows.progress
        partition = held_at(of, progress)
        offset = progress.at(partition).offset
        reason = f"its rows cannot be taken out: {why}"
        self._holds.hold(
            partition, RowHold(of.shard, of.position, offset, reason, error.hint, code="SM-1517")
        )

    def _hold_truncated(self, truncation: Truncation, reason: str, hint: str, code: str) -> None:
        """Hold the shard for a while; when a task meets the event again, all begins anew."""
        self.truncations.pop(truncation.shard, None)
        self._holds.hold(
            truncation.partition,
            RowHold(
                truncation.shard, truncation.position, truncation.offset, reason, hint, code=code
            ),
        )

    def _go_on(self, restart: Restart) -> bool:
        """Do the next step of a restart. Returns whether its next mark is in the journal."""
        progress = self._rows.progress
        done = self._restarts.carry_out(
            restart, self._intake.decisions, self._outcomes.executed, progress
        )
        if isinstance(done, RowHold):
            self._holds.hold(held_at(restart, progress), done)
        elif done is not None:
            self._settled(restart, done)
            return True
        return False

    def _settled(self, restart: Restart, mark: StatementKey) -> None:
        """Note that a restart's mark is in the journal; forget what was known of its rows."""
        self._outcomes.note(restart.target, mark)
        progress = self._rows.progress
        for shard in restart.mates:
            self.truncations.pop(shard, None)
            self._rows.collisions.forget(shard)
            self._holds.release(progress.partitions_of(shard))
