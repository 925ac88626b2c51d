"""The sink's driver: the offset barrier at work.

Theory of operation; the numbers are those of the offset barrier's design. One call of ``step``:

1. Read what came on the ddl topic and the schema-change topics. Ask where the row partitions
   end (read committed), and for their high watermarks (proof that a shard has no rows left).
2. *After* that ask for the high watermark of the schema-change topics: the barrier of these
   ends, per source. It is kept until it is settled.
3. Ends are safe when every schema change below their barrier has all its decisions. Nothing
   blocks on that: the sources are independent, and earlier safe ends stay safe.
4. Place the gates: which statements are ready, up to where each shard's rows may go (``plan``).
5. Begin to execute the ready statements, beside this loop; apply the rows of all other targets
   up to their gates. What ended is seen by the next call.
6. Every task committed its offsets with its rows; publish the progress.

``step`` says whether anything moved; the caller repeats it at once until nothing does. After a
crash at any place the journal, the stored offsets and the topics give the same state again: all
that is kept in memory besides them is a reading, or a hold that the next try finds again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from shardmerge.connectors.kafka.registry import RegistryAddress
from shardmerge.schemas.model.errors import (
    ContractError,
    StackError,
    TargetError,
)
from shardmerge.schemas.model.names import (
    ShardId,
    TargetTable,
)
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.spark_sink.barrier.applied import (
    Applied,
    CatchUp,
    RowProgress,
)
from shardmerge.spark_sink.barrier.decisions import StatementKey
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.barrier.restarts import Restart
from shardmerge.spark_sink.barrier.statements import (
    Refused,
    bindings,
)
from shardmerge.spark_sink.barrier.stored_state import (
    check_journal,
    check_topics,
)
from shardmerge.spark_sink.barrier.truncations import (
    UNKNOWN_ROWS,
    UNKNOWN_ROWS_HINT,
    Truncation,
    emptying,
)
from shardmerge.spark_sink.kafka.intake import Intake
from shardmerge.spark_sink.kafka.publisher import ProgressPublisher
from shardmerge.spark_sink.kafka.range_reader import RowReader
from shardmerge.spark_sink.kafka.rewind import moves_behind
from shardmerge.spark_sink.kafka.row_avro import row_format
from shardmerge.spark_sink.kafka.row_topics import (
    RowTopic,
    changed,
    gone,
    gone_error,
    live_topics,
)
from shardmerge.spark_sink.planning.batch_size import BatchSize
from shardmerge.spark_sink.planning.failures import (
    Failing,
    after_batch,
)
from shardmerge.spark_sink.planning.gathering import gathering_s
from shardmerge.spark_sink.planning.plan import (
    BatchPlan,
    SinkState,
    TargetPlan,
    plan,
)
from shardmerge.spark_sink.planning.progress import (
    Standing,
    progress_of,
)
from shardmerge.spark_sink.planning.ranges import (
    Advance,
    RangeResult,
    RowHold,
    TaskFailure,
    offsets_moved,
)
from shardmerge.spark_sink.process.failpoints import reach
from shardmerge.spark_sink.rows.folding.key_collisions import (
    HINT,
    Overwritten,
)
from shardmerge.spark_sink.targets.interface import (
    Batches,
    StatementJournal,
    WriterState,
    taken_over,
)

from .restart_runs import (
    RestartRuns,
    held_at,
)
from .statement_runs import (
    RemovalResult,
    StatementResult,
    StatementRunner,
)

log = logging.getLogger(__name__)

_FAILURE_PAUSE_S = 1.0
_STAGE_S = 2.0
"""How often the target is asked about a statement that runs long."""
_GONE_S = 5.0
"""How long Kafka must lack a topic before the sink ends: a broker may learn of one late."""


@dataclass(slots=True)
class _Held:
    hold: RowHold
    retry_at: float


@dataclass(slots=True)
class _Refusal:
    error: str
    retry_at: float


class Driver:
    """One sink process of a pipeline; see the module's text.

    Args:
        control, journal, runner: Of the pipeline's target; nothing else uses them.
        statements: Its threads are started as needed.
        epoch: The writer epoch that was taken.

    Attributes:
        gathering_s: How long rows may gather before the next ``step``.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        *,
        intake: Intake,
        control: WriterState,
        journal: StatementJournal,
        statements: StatementRunner,
        runner: Batches,
        publisher: ProgressPublisher,
        epoch: int,
    ) -> None:
        self._sink = pipeline.sink
        self._size = BatchSize(
            self._sink.max_batch_records, self._sink.max_batch_mb << 20, self._sink.max_batch_s
        )
        self._routes = pipeline.routes
        self._bootstrap = pipeline.kafka.bootstrap_servers
        self._format = row_format(RegistryAddress.of(pipeline.kafka))
        self._intake = intake
        self._control = control
        self._journal = journal
        self._statements = statements
        self._runner = runner
        self._publisher = publisher
        self._epoch = epoch
        self._executed: dict[TargetTable, set[StatementKey]] = {}
        self._refused: dict[TargetTable, dict[StatementKey, _Refusal]] = {}
        self._applied: dict[Partition, Applied] = {}
        self._catch_up = CatchUp()
        self._holds: dict[Partition, _Held] = {}
        self._truncations: dict[ShardId, Truncation] = {}
        self._restarts = RestartRuns(
            pipeline, journal, statements, lambda: RowReader(self._bootstrap), self._format
        )
        self._row_topics: dict[str, RowTopic] = {}
        self._compared: Mapping[str, RowTopic] | None = None
        self._gone_since: dict[str, float] = {}
        self._rows: dict[TargetTable, int] = {}
        self._failing: Failing = {}
        self._overwritten = Overwritten()
        self._stages: dict[TargetTable, tuple[float, str]] = {}
        self._awaits_more = False
        self.gathering_s = 0.0

    def load(self) -> None:
        """Take the state from the target and the decisions from the topic.

        Raises:
            StackError: Kafka cannot be read.
            ContractError: The ddl topic contradicts itself or the journal.
        """
        now = time.monotonic()
        for (target, version, ordinal), entry in self._journal.load().items():
            key = StatementKey(version, ordinal)
            if entry.state == "done":
                self._executed.setdefault(target, set()).add(key)
            elif entry.state == "refused":
                refusals = self._refused.setdefault(target, {})
                refusals[key] = _Refusal(entry.error, now)
        self._load_offsets()
        self._rows = self._control.rows()
        self._row_topics = dict(self._control.row_topics())
        self._intake.load()
        check_topics(self._applied, self._intake.decisions)
        check_journal(self._executed, self._intake.decisions)
        log.info(
            "state loaded",
            extra={"decisions": self._intake.decisions.seen, "partitions": len(self._applied)},
        )

    @property
    def runs_statements(self) -> bool:
        """Whether a statement runs on a target now, beside the rounds."""
        return bool(self._statements.busy)

    def step(self, wait_s: float) -> bool:
        """One round of the barrier.

        Args:
            wait_s: Longest wait for a decision, or for the end of a statement that runs, before
                the round begins.

        Returns:
            Whether anything moved, so that another round is worth it at once.

        Raises:
            ShardMergeError: The sink must stop: another writer took over, or a topic breaks its
                contract.
        """
        ended = self._take_statements(wait_s) if self._statements.busy else False
        news = self._intake.read(0 if ended or self._statements.busy else wait_s)
        try:
            batch = self._plan()  # 1 to 4
        except StackError as error:
            log.warning("kafka does not answer", extra={"error": str(error)})
            return False
        reach("batch-planned")
        self._execute(batch)  # 5
        moved = self._apply(batch)
        reach("batch-applied")
        self._publish(batch.targets)  # 6
        reach("progress-published")
        return ended or moved or news or self._awaits_more

    def _plan(self) -> BatchPlan:
        self._intake.observe()  # 1, 2
        self._compare_row_topics()
        self._awaits_more = self._intake.settle()  # 3
        self._catch_up.look(self._intake.partitions, self._intake.watermarks, self._applied)
        bound = self._runner.bound(self._size.records)
        batch = plan(self._intake.decisions, self._state(time.monotonic()), bound)  # 4
        if batch.tasks:
            # The ends are of these topics, not of ones that were made anew in between.
            self._intake.identify({task.topic for task in batch.tasks})
            self._compare_row_topics()
        return batch

    def check_writer(self) -> None:
        """Be sure that this is still the writer; a sink without work would not find out.

        Raises:
            TargetError: Another one took over, or the target is away (``retryable``).
        """
        if (current := self._control.epoch()) != self._epoch:
            raise taken_over(current, self._epoch)

    def _state(self, now: float) -> SinkState:
        return SinkState(
            executed=self._executed,
            refused={
                target: {key: Refused(r.error, now < r.retry_at) for key, r in refusals.items()}
                for target, refusals in self._refused.items()
            },
            rows=self._row_progress(),
            safe_ends=self._intake.barriers.safe_ends,
            busy=self._statements.busy,
            resting={
                held.hold.shard: held.hold.position
                for held in self._holds.values()
                if now < held.retry_at
            },
            truncations=self._truncations,
            in_step=self._intake.in_step,
            routes=self._routes,
            writer_epoch=self._epoch,
        )

    def _row_progress(self) -> RowProgress:
        intake = self._intake
        return RowProgress(self._applied, intake.watermarks, self._catch_up.caught_up, intake.scans)

    def _execute(self, batch: BatchPlan) -> None:
        """Begin to execute what is ready."""
        for target in batch.targets:
            if target.ready:
                self._statements.start(target.target, target.ready)
        for truncation in batch.emptied:
            if truncation.target not in self._statements.busy:
                self._empty(truncation)
        self._restart(batch)

    def _restart(self, batch: BatchPlan) -> None:
        """Go on with the snapshots that began again."""
        for restart in batch.restarts:
            if restart.target in self._statements.busy:
                continue
            progress = self._row_progress()
            decisions = self._intake.decisions
            done = self._restarts.carry_out(restart, decisions, self._executed, progress)
            if isinstance(done, RowHold):
                self._hold(held_at(restart, progress), done)
            elif done is not None:
                self._settled(restart, done)

    def _settled(self, restart: Restart, mark: StatementKey) -> None:
        """A mark of a restart is in the journal: what was known of its rows is of no use."""
        self._executed.setdefault(restart.target, set()).add(mark)
        for shard in restart.mates:
            self._truncations.pop(shard, None)
            self._overwritten.forget(shard)
            for partition in self._row_progress().partitions_of(shard):
                self._holds.pop(partition, None)
        self._awaits_more = True

    def _empty(self, truncation: Truncation) -> None:
        """Begin to delete the rows of a truncated shard, or hold it."""
        target = self._intake.decisions.targets[truncation.target]
        bound = bindings(target, self._executed.get(target.target, ()))
        removal = emptying(target, (truncation.shard,), bound)
        if removal is not None:
            # Set back before the first row is deleted: should the sink stop in between, and then
            # keep truncated rows, the rows behind the event must come again all the same.
            moves = self._behind(truncation)
            self._move([m for m in moves if m.next_offset < m.start_offset])
            reach("offsets-rewound")
            self._statements.start_removal(truncation, removal)
        else:
            self._hold_truncated(truncation, UNKNOWN_ROWS, UNKNOWN_ROWS_HINT)

    def _hold_truncated(self, truncation: Truncation, reason: str, hint: str) -> None:
        """Let the shard stand for a while; the task that meets the event again begins anew."""
        self._truncations.pop(truncation.shard, None)
        self._hold(
            truncation.partition,
            RowHold(truncation.shard, truncation.position, truncation.offset, reason, hint),
        )

    def _take_removal(self, result: RemovalResult) -> None:
        """Go on behind a TRUNCATE whose shard has no rows in the target any more."""
        of, error = result.of, result.error
        if isinstance(of, Restart):
            self._take_restart(of, error)
            return
        truncation = of
        if isinstance(error, TargetError) and (error.retryable or error.statement):
            self._hold_truncated(
                truncation, f"TRUNCATE TABLE: the target refuses it: {error.message}", error.hint
            )
            return
        if error is not None:
            raise error
        reach("shard-emptied")
        self._move(self._behind(truncation))
        del self._truncations[truncation.shard]
        self._overwritten.forget(truncation.shard)
        self._holds.pop(truncation.partition, None)
        log.info(
            "shard emptied",
            extra={
                "shard": str(truncation.shard),
                "position": str(truncation.position),
                "elapsed_ms": result.elapsed_ms,
            },
        )

    def _take_restart(self, restart: Restart, error: Exception | None) -> None:
        """Go on behind a restart whose shard has no rows in the target any more."""
        if isinstance(error, TargetError) and (error.retryable or error.statement):
            partition = held_at(restart, self._row_progress())
            offset = self._row_progress().at(partition).offset
            reason = f"its rows cannot be taken out: the target refuses it: {error.message}"
            hold = RowHold(restart.shard, restart.position, offset, reason, error.hint)
            self._hold(partition, hold)
            return
        if error is not None:
            raise error
        self._settled(restart, self._restarts.ended(restart))

    def _behind(self, truncation: Truncation) -> list[Advance]:
        """The moves of a shard's partitions to their first rows behind a TRUNCATE."""
        partitions = self._intake.watermarks.partitions_of(truncation.shard)
        reader = RowReader(self._bootstrap)
        try:
            return moves_behind(truncation, partitions, self._applied, reader, self._format)
        finally:
            reader.close()

    def _move(self, moves: Sequence[Advance]) -> None:
        """Let partitions go on at other places, in one transaction."""
        if moves:
            self._control.move(self._epoch, moves)
        for move in moves:
            self._applied[move.place] = Applied(move.next_offset)
            if move.next_offset < move.start_offset:
                self._catch_up.forget(move.place)

    def _take_statements(self, wait_s: float) -> bool:
        """Note how statements ended. Returns whether one did."""
        results = self._statements.finished(wait_s)
        for result in results:
            if isinstance(result, RemovalResult):
                self._take_removal(result)
            else:
                self._take_statement(result)
        return bool(results)

    def _take_statement(self, result: StatementResult) -> None:
        name, key, entry = result.target, result.statement.key, result.entry
        sql = result.statement.statement.sql
        facts = {"target": str(name), "statement": f"{key.version}.{key.ordinal}", "sql": sql}
        if entry is None:
            error = result.error
            assert error is not None
            if not isinstance(error, TargetError) or not error.retryable:
                raise error
            log.warning("statement postponed", extra={**facts, "error": str(error)})
            refusal = _Refusal(error.message, time.monotonic() + _FAILURE_PAUSE_S)
            self._refused.setdefault(name, {})[key] = refusal
        elif entry.state == "done":
            self._executed.setdefault(name, set()).add(key)
            self._refused.get(name, {}).pop(key, None)
            log.info("statement executed", extra={**facts, "elapsed_ms": result.elapsed_ms})
        else:
            retry_at = time.monotonic() + self._sink.retry_interval_s
            self._refused.setdefault(name, {})[key] = _Refusal(entry.error, retry_at)
            log.error("statement refused", extra={**facts, "error": entry.error})

    def _apply(self, batch: BatchPlan) -> bool:
        """Apply the planned ranges. Returns whether an offset moved."""
        moved, started = False, time.monotonic()
        results: list[RangeResult] = []
        failures: list[TaskFailure] = []
        size_bytes = 0
        for result in self._runner.run(batch.tasks) if batch.tasks else ():
            if isinstance(result, TaskFailure):
                failures.append(result)
            else:
                results.append(result)
                size_bytes += result.read_bytes
                moved |= self._take(result)
        done = {result.place for result in results}
        busy = self._statements.busy
        self._failing = after_batch(self._failing, batch.tasks, done, failures, busy)
        if failures:
            self._publish(batch.targets)  # what follows fails too while the target is away
            self._recover(failures)
        records, seconds = offsets_moved(results), time.monotonic() - started
        self._size.took(records, size_bytes, seconds)
        self.gathering_s = gathering_s(records, seconds, self._sink.gather_ms / 1000)
        return moved

    def _take(self, result: RangeResult) -> bool:
        partition = result.place
        self._applied[partition] = Applied(result.next_offset, result.next_position)
        [(target, shard)] = self._intake.decisions.streams[partition.stream]
        self._rows[target] = self._rows.get(target, 0) + result.rows
        self._overwritten.take(target, shard, result.overwritten, self._row_progress())
        if result.hold is not None:
            if result.hold.collides and self._intake.bring_in_step(partition.stream):
                return True
            self._hold(partition, result.hold)
        elif not result.truncated:
            self._holds.pop(partition, None)
        elif result.next_position is not None:
            self._meet(
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
        # Coming to stand at a gate is a move too: it can be what a debt waits for.
        if result.next_offset < result.start_offset:
            self._catch_up.forget(partition)
        return result.next_offset != result.start_offset or result.next_position is not None

    def _hold(self, partition: Partition, hold: RowHold) -> None:
        before = self._holds.get(partition)
        retry_at = time.monotonic() + self._sink.retry_interval_s
        self._holds[partition] = _Held(hold, retry_at)
        if before is None or before.hold != hold:
            log.error(
                "shard held",
                extra={
                    "shard": str(hold.shard),
                    "position": str(hold.position),
                    "offset": hold.offset,
                    "reason": hold.reason,
                    "hint": hold.hint,
                },
            )

    def _meet(self, truncation: Truncation) -> None:
        """The first TRUNCATE of a shard is carried out first."""
        known = self._truncations.get(truncation.shard)
        if known is None or truncation.position <= known.position:
            self._truncations[truncation.shard] = truncation

    def _recover(self, failures: Sequence[TaskFailure]) -> None:
        """After failed tasks: go on from what is committed, unless that cannot help."""
        for failure in failures:
            if failure.final:
                raise ContractError(failure.message, hint=failure.hint)
            log.warning("tasks failed", extra={"error": failure.message, "hint": failure.hint})
        time.sleep(_FAILURE_PAUSE_S)
        if (current := self._control.epoch()) != self._epoch:
            raise TargetError(
                f"another writer took over (writer epoch {current}, this one is {self._epoch})",
                hint="only one sink may run per pipeline: stop this one",
            )
        self._load_offsets()
        self._rows = self._control.rows()

    def _load_offsets(self) -> None:
        for partition, offset in self._control.offsets().items():
            known = self._applied.get(partition)
            if known is None or known.offset != offset:
                self._applied[partition] = Applied(offset)
                if known is not None and offset < known.offset:
                    self._catch_up.forget(partition)

    def _compare_row_topics(self) -> None:
        """Be sure that every row topic is the one that the stored offsets are of.

        Raises:
            ContractError: One is not.
            StackError: One is gone, for a moment until now: nothing is done without it.
        """
        there = self._intake.row_topics
        if there is self._compared:
            return
        live = live_topics(self._intake.decisions) & self._intake.watermarks.partitions.keys()
        if new := changed(self._row_topics, there, live):
            # Before the first offset of theirs is stored.
            self._control.keep_row_topics(self._epoch, new)
            self._row_topics |= new
        now, lacking = time.monotonic(), gone(self._row_topics, there, live)
        self._gone_since = {name: self._gone_since.get(name, now) for name in lacking}
        for name, since in self._gone_since.items():
            if now - since >= _GONE_S:
                raise gone_error(name, self._row_topics[name])
        if lacking:
            raise StackError(f"row topic {min(lacking)} is gone", hint="it is looked for again")
        self._compared = there

    def _publish(self, targets: Iterable[TargetPlan]) -> None:
        holds = {held.hold.shard: held.hold for held in self._holds.values()}
        missing = {source: str(what) for source, what in self._intake.barriers.missing.items()}
        rows, unreadable = self._row_progress(), self._intake.unreadable
        for told in self._overwritten.due(rows, time.monotonic()):
            log.warning("rows overwritten", extra={**told.facts, "hint": HINT})
        for target in targets:
            if self._publisher.is_due(target.target):
                standing = Standing(
                    holds,
                    missing,
                    unreadable,
                    self._stage(target.target),
                    is_busy=target.target in self._statements.busy,
                    truncations=self._truncations,
                    failure=self._failing.get(target.target),
                    overwritten=self._overwritten.rows,
                )
                count = self._rows.get(target.target, 0)
                self._publisher.offer(
                    progress_of(self._intake.decisions, target, rows, standing, count)
                )

    def _stage(self, target: TargetTable) -> str:
        """What the target says of the statement that runs on it, asked for now and then."""
        now = time.monotonic()
        if target not in self._statements.busy:
            self._stages.pop(target, None)
            return ""
        asked_at, stage = self._stages.setdefault(target, (now, ""))
        if now - asked_at >= _STAGE_S:
            stage = self._journal.stage(target)
            self._stages[target] = now, stage
        return stage
