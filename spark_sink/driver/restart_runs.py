"""Carries out the steps of restarts: snapshots that began again, and reloads (``restarts``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from shardmerge.connectors.event_log import logger
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.policies import RowOperation
from shardmerge.schemas.pipeline.routing import rule_of
from shardmerge.schemas.pipeline.settings import MODES_WITHOUT_ROWS, Pipeline
from shardmerge.spark_sink.barrier.applied import RowProgress
from shardmerge.spark_sink.barrier.decisions import Decisions, StatementKey, TargetDecisions
from shardmerge.spark_sink.barrier.partitions import Partition, partitions_of, stream_of
from shardmerge.spark_sink.barrier.restarts import BEGUN, UNDONE, VOID, Restart, Stage, peers
from shardmerge.spark_sink.barrier.statements import bindings
from shardmerge.spark_sink.barrier.truncations import emptying
from shardmerge.spark_sink.kafka.range_reader import RowReader
from shardmerge.spark_sink.kafka.rewind import first_offset_from, has_snapshot_row, last_operation
from shardmerge.spark_sink.planning.ranges import RowHold
from shardmerge.spark_sink.process.failpoints import reach
from shardmerge.spark_sink.rows.decoding.row_envelope import READ
from shardmerge.spark_sink.rows.decoding.row_format import RowFormat
from shardmerge.spark_sink.rows.folding.row_refusals import ROWS_NOT_TOLD_APART, UNKNOWN
from shardmerge.spark_sink.rows.folding.segment_plan import Refusal
from shardmerge.spark_sink.targets.interface import StatementJournal

from .statement_runs import StatementRunner

log = logger(__name__)

_TEXTS = {
    BEGUN: "-- what an interrupted snapshot brought is being taken out",
    UNDONE: "-- what an interrupted snapshot brought was taken out",
    VOID: "-- described anew: no row has to go for that",
}
_RELOAD_TEXTS = {
    BEGUN: "-- the rows of {} are being taken out: they are read again",
    UNDONE: "-- the rows of {} were taken out: they are read again",
}
_NO_SNAPSHOT = Refusal(
    "the source described its tables anew, as for a new snapshot, and rows of the binlog came "
    "without one of a snapshot",
    "if no snapshot was to read rows (snapshot_mode recovery, say), or the target's rows of the "
    "shard are right by now, start the sink with on_truncate = 'keep' in the shard's route; if a "
    "snapshot found no row in any table of the source, delete the target's rows of the shard first",
    code="SM-1516",
)

_NOT_SEEN = Refusal(
    f"{Stage.SOUGHT.value}: the binlog went back before it, so that no row tells where it begins",
    "does the connector of the source run? If no snapshot is to read rows, start the sink with "
    "on_truncate = 'keep' in the shard's route",
    code="SM-1609",
)
_ARCHIVE = Refusal(
    "the shard's rows would be taken out of the target and read again, and its route ignores "
    "deletes: rows that the shard has deleted would be lost",
    "copy these rows to another table if they matter, then start the sink without 'delete' in the "
    "route's ignore; put it back when the shard's rows have come",
    code="SM-1524",
)


_NOT_LOADED = Refusal(
    "the shard is to be loaded again, and the sink does not load shards of its source",
    "give the source snapshot = 'spark' in the pipeline file, and restart the sink",
    code="SM-1640",
)
_LOADED = Refusal(
    "its rows, which have to go from the target, were loaded from the source: no topic has them, "
    "and the target does not know which they are",
    "delete the target's rows of the shard, then start the sink with on_truncate = 'keep' in the "
    "shard's route; origin columns would tell them",
    code="SM-1528",
)


class RestartRuns:
    """Carries out the steps of restarts. Belongs to the driver's thread.

    Args:
        pipeline: Has the sources' snapshot modes, and the routes' ``on_truncate``, which decides
            about rows that cannot be told apart.
        journal: Of the pipeline's target.
        statements: Deletes rows beside the driver's loop.
        open_reader: Opens a reader of row topics; it is closed here.
        rows: The records' format.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        journal: StatementJournal,
        statements: StatementRunner,
        open_reader: Callable[[], RowReader],
        rows: RowFormat,
    ) -> None:
        self._routes = pipeline.routes
        self._modes: Mapping[str, str] = {
            s.name: s.connector_snapshot_mode for s in pipeline.sources
        }
        self._loaded = {s.name for s in pipeline.sources if s.is_loaded}
        self._journal = journal
        self._statements = statements
        self._open_reader = open_reader
        self._format = rows

    def carry_out(
        self,
        restart: Restart,
        decisions: Decisions,
        executed: Mapping[TargetTable, set[StatementKey]],
        progress: RowProgress,
    ) -> StatementKey | RowHold | None:
        """Do the next step of a restart.

        Returns:
            The mark that is in the journal now; or a hold that says why the shard waits; None when
            a statement was begun.

        Raises:
            StackError: Kafka does not answer.
            TargetError: The target does not answer, or another writer took over.
        """
        if restart.stage is Stage.BEGUN:
            if restart.removal is None:
                return self._mark(restart, UNDONE)
            self._statements.start_removal(restart, restart.removal)
            return None
        if restart.gate.loads and restart.shard.source not in self._loaded:
            return _hold(restart, _NOT_LOADED, progress)
        found = restart.stage is Stage.FOUND
        if not found and (not self._brings_rows(restart) or self._has_nothing(restart, progress)):
            return self._mark(restart, VOID)
        if any(map(self._ignores_deletes, restart.mates)):
            if not restart.gate.reloads and not _is_keyless(restart, decisions):
                # Rows that the new snapshot lacks were deleted meanwhile, which the route ignores.
                return self._mark(restart, VOID)
            # The gate of a load stands before rows that are applied.
            if restart.gate.loads or not self._has_nothing(restart, progress):
                return _hold(restart, _ARCHIVE, progress)
        keeps = self._keeps(restart.shard)
        if not found and not self._is_found(restart, decisions, progress):
            missing = _NOT_SEEN if restart.stage is Stage.SOUGHT else _NO_SNAPSHOT
            return self._mark(restart, VOID) if keeps else _hold(restart, missing, progress)
        refusal = self._unknown(restart, decisions, executed, progress)
        if refusal is None:
            return self._mark(restart, BEGUN)
        return self._mark(restart, UNDONE) if keeps else _hold(restart, refusal, progress)

    def ended(self, restart: Restart) -> StatementKey:
        """Write into the journal that the rows are deleted; raises ``TargetError``."""
        return self._mark(restart, UNDONE)

    def _brings_rows(self, restart: Restart) -> bool:
        """Whether rows may have to be taken out because of this restart's snapshot.

        No row has to when the snapshot mode reads none. When a later snapshot followed, that one's
        restart takes the rows out.
        """
        return (
            restart.is_last and self._modes.get(restart.shard.source, "") not in MODES_WITHOUT_ROWS
        )

    def _keeps(self, shard: ShardId) -> bool:
        rule = rule_of(self._routes, shard)
        return rule is not None and rule.keeps_truncated

    def _ignores_deletes(self, shard: ShardId) -> bool:
        rule = rule_of(self._routes, shard)
        return rule is not None and RowOperation.DELETE in rule.ignore

    def _mark(self, restart: Restart, mark: int) -> StatementKey:
        key = restart.key(mark)
        reloads = restart.gate.reloads
        texts = _RELOAD_TEXTS if reloads else _TEXTS
        text = texts[mark].format(", ".join(map(str, restart.mates)))
        self._journal.note(restart.target, key.version, key.ordinal, text)
        reach("restart-noted")
        log.info(
            "shard_reloaded" if reloads else "snapshot_restarted",
            shard=restart.shard,
            position=restart.position,
            state=text.removeprefix("-- "),
        )
        return key

    def _unknown(
        self,
        restart: Restart,
        decisions: Decisions,
        executed: Mapping[TargetTable, set[StatementKey]],
        progress: RowProgress,
    ) -> Refusal | None:
        """Why the shard's rows in the target cannot be told apart; None when they can."""
        target = decisions.targets[restart.target]
        if emptying(target, restart.mates, bindings(target, executed.get(target.target, ()))):
            return None
        reader = self._open_reader()
        try:
            for name in restart.mates:
                if refusal := self._obstacle(target, name, restart, reader, progress):
                    return refusal
            return None
        finally:
            reader.close()

    def _obstacle(
        self,
        target: TargetDecisions,
        name: ShardId,
        restart: Restart,
        reader: RowReader,
        progress: RowProgress,
    ) -> Refusal | None:
        """Why the row topic of a shard does not show which rows in the target are the shard's.

        None when it does: then its records can be taken back chunk by chunk.
        """
        if _has_loaded_rows(name, progress):
            return _LOADED
        shard = target.shards[name]
        upto = shard.upto(restart.gate.version)
        is_keyless = any(gate.live and not gate.key for gate in shard.gates[:upto])
        unknown = ROWS_NOT_TOLD_APART if restart.gate.reloads else UNKNOWN
        for partition in progress.partitions_of(name):
            end = progress.at(partition).offset
            if end and (low := reader.beginning(partition)):
                return Refusal(
                    f"the rows before offset {low} of {partition}, which have to go from the "
                    "target, are gone from the topic: the target does not know which they are",
                    unknown.hint,
                    code="SM-1507",
                )
            if is_keyless:
                last = last_operation(reader, partition, end, self._format)
                if last not in (READ, None):
                    return unknown
        return None

    def _is_found(self, restart: Restart, decisions: Decisions, progress: RowProgress) -> bool:
        """Whether its snapshot read a row of any shard. All rows that it read are in the topics."""
        reader = self._open_reader()
        try:
            return any(
                has_snapshot_row(reader, p, progress.watermarks.end(p), gate, self._format)
                for p, (_, gate) in peers(restart, decisions, progress).items()
            )
        finally:
            reader.close()

    def _has_nothing(self, restart: Restart, progress: RowProgress) -> bool:
        """Whether no row is applied that may have to be taken out.

        That is so before the shard's first row. It is also so when rows behind the gate are
        applied already, because an earlier version of the sink did not stop at such gates.
        """
        if _has_loaded_rows(restart.shard, progress):
            return False
        reader = self._open_reader()
        try:
            ends = {p: progress.at(p).offset for p in progress.partitions_of(restart.shard)}
            return all(
                last_operation(reader, p, end, self._format) is None for p, end in ends.items()
            ) or any(
                first_offset_from(reader, p, end, restart.position, self._format) < end
                for p, end in ends.items()
            )
        finally:
            reader.close()


def _has_loaded_rows(shard: ShardId, progress: RowProgress) -> bool:
    return (load := progress.loads.get(shard)) is not None and load.has_rows


def _is_keyless(restart: Restart, decisions: Decisions) -> bool:
    """Whether the restarted shard was ever without a primary key."""
    gates = decisions.targets[restart.target].shards[restart.shard].gates
    return any(gate.live and not gate.key for gate in gates)


def _hold(restart: Restart, refusal: Refusal, progress: RowProgress) -> RowHold:
    partition = held_at(restart, progress)
    offset = progress.at(partition).offset
    return RowHold(
        restart.shard, restart.position, offset, refusal.reason, refusal.hint, code=refusal.code
    )


def held_at(restart: Restart, progress: RowProgress) -> Partition:
    """The partition under which the hold of a whole shard at its restart is kept.

    It is the first one of the shard's topic. An empty table may have no topic yet.
    """
    (first,) = partitions_of(stream_of(restart.shard, progress.watermarks.topics), 1)
    return first
