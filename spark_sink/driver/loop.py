"""The sink's driver: the offset barrier at work.

Theory of operation. One call of ``step`` does this; comments in the code use the same numbers:

1. Read the new records of the ddl topic and the schema-change topics. Read the ends of the row
   partitions (read committed), and their high watermarks (proof that a shard has no rows left).
2. *After* that read the high watermarks of the schema-change topics. For each source this is the
   barrier of the ends from step 1; it is kept until it is settled.
3. Ends are safe when every schema change below their barrier has all its decisions. No source
   waits for another one, and earlier safe ends stay safe.
4. Decide which statements are ready, and up to which gate each shard's rows may go (``plan``).
5. Begin to execute the ready statements, in threads beside this loop. Apply the rows of all other
   targets up to their gates. The next call takes the results of statements that have ended.
6. Publish the progress. Every task has committed its offsets in one transaction with its rows.

When a decision about known shards comes, and no rows, a round plans with the ends that it knows:
ends that were read before stay true, and statements do not wait for Kafka's answers. The next
round, which follows at once, begins with step 1 again.

``step`` says whether anything moved; the caller repeats it at once until nothing does. After a
crash at any point the journal, the stored offsets and the topics give the same state again.
Everything else in memory is a reading of Kafka, or a hold that the next try finds again.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from shardmerge.connectors.access.lease_names import Sinks
from shardmerge.connectors.event_log import logger
from shardmerge.connectors.kafka.registry import RegistryAddress
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.spark_sink.barrier.stored_state import check_journal, check_topics
from shardmerge.spark_sink.kafka.intake import Intake
from shardmerge.spark_sink.kafka.publisher import ProgressPublisher
from shardmerge.spark_sink.kafka.range_reader import RowReader
from shardmerge.spark_sink.kafka.row_avro import row_format
from shardmerge.spark_sink.lineage.reports import RunState
from shardmerge.spark_sink.planning.plan import BatchPlan, plan
from shardmerge.spark_sink.planning.planned import Planned
from shardmerge.spark_sink.planning.sink_state import SinkState
from shardmerge.spark_sink.process.failpoints import reach
from shardmerge.spark_sink.targets.interface import (
    Batches,
    StatementJournal,
    WriterState,
    check_epoch,
)
from shardmerge.spark_sink.targets.load_interface import Loads

from .applied_rows import AppliedRows
from .batch_runs import BatchRuns
from .closed_targets import ClosedTargets
from .drift_watch import DriftWatch
from .driver_metrics import DriverMetrics
from .lineage.lineage_reports import LineageReports
from .loads.load_jobs import LoadJobs
from .loads.load_runs import LoadRuns
from .progress_reports import ProgressReports
from .restart_runs import RestartRuns
from .row_topic_check import RowTopicCheck
from .rows_ahead import RowsAhead
from .shard_holds import ShardHolds
from .shard_removals import ShardRemovals
from .statement_outcomes import StatementOutcomes
from .statement_runs import RemovalResult, StatementRunner

log = logger(__name__)

_BESIDE_S = 0.05
"""Longest wait, in seconds, for the end of a chunk or a statement: rows of others go on beside."""


class Driver:
    """One sink process of a pipeline; see the module's text.

    It defines the order of the steps. The state between two steps belongs to its parts:

    * ``AppliedRows``: how far rows are applied,
    * ``StatementOutcomes``: which statements are executed or refused,
    * ``ShardHolds``: which rows cannot be applied,
    * ``ShardRemovals``: which TRUNCATEs are not carried out,
    * ``ClosedTargets``: which targets the sink may not change,
    * ``RowTopicCheck``: for which row topics the offsets are stored,
    * ``RowsAhead``: which rows are written while Kafka is asked whether they are safe,
    * ``BatchRuns``: how large batches are, and which targets fail,
    * ``LoadRuns``: which shards are read by the sink itself, and how far that is,
    * ``DriftWatch``: in what the target's tables differ from what was decided.

    Args:
        control, journal, runner: Of the pipeline's target; nothing else uses them.
        statements: Its threads are started as needed.
        epoch: The writer epoch that this sink has taken.
        loads: First loads; None where the sink loads nothing.
        drift: Looks at the definitions of the target's tables.
        lineage: Tells a lineage server about the targets; None: nobody is told.
        sinks: Tells where this sink and its standbys run, for the pages.

    Attributes:
        metrics: What it did and where it stands, for another thread to read.
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
        loads: Loads | None = None,
        drift: DriftWatch | None = None,
        lineage: LineageReports | None = None,
        sinks: Callable[[], Sinks] = Sinks,
    ) -> None:
        def open_reader() -> RowReader:
            return RowReader(pipeline.kafka)

        retry_s = pipeline.sink.retry_interval_s
        format_ = row_format(RegistryAddress.of(pipeline.kafka))
        self._routes = pipeline.routes
        self._intake = intake
        self._control = control
        self._statements = statements
        self._epoch = epoch
        self._lineage = lineage
        self.metrics = DriverMetrics()
        self._drift = drift or DriftWatch(None, lambda: None, 0, epoch)
        self._rows = AppliedRows(intake, control, epoch)
        self._outcomes = StatementOutcomes(journal, retry_s)
        self._holds = ShardHolds(retry_s)
        self._closed = ClosedTargets(control)
        self._row_topics = RowTopicCheck(intake, control, epoch)
        self._ahead = RowsAhead(intake, self._settle)
        self._loads = LoadRuns(
            pipeline,
            loads,
            LoadJobs(pipeline, str(epoch)),
            intake=intake,
            rows=self._rows,
            epoch=epoch,
        )
        self._removals = ShardRemovals(
            RestartRuns(pipeline, journal, statements, open_reader, format_),
            statements,
            open_reader,
            format_,
            intake=intake,
            outcomes=self._outcomes,
            rows=self._rows,
            holds=self._holds,
        )
        self._reports = ProgressReports(
            publisher,
            journal,
            intake=intake,
            rows=self._rows,
            holds=self._holds,
            removals=self._removals,
            statements=statements,
            metrics=self.metrics,
            loads=self._loads,
            drift=self._drift,
            sinks=sinks,
        )
        self._batches = BatchRuns(
            runner,
            pipeline.sink,
            control,
            epoch,
            intake=intake,
            rows=self._rows,
            holds=self._holds,
            removals=self._removals,
            statements=statements,
            reports=self._reports,
            metrics=self.metrics,
        )
        # Whether another round at once can find or do more.
        self._awaits_more = False
        # Whether the last round read ends.
        self._looks = False
        self._last: Planned | None = None

    def load(self) -> None:
        """Take the state from the target and the decisions from the topic.

        Raises:
            StackError: Kafka cannot be read.
            TargetError: The target cannot be read.
            ContractError: The ddl topic contradicts itself or the journal, or a shard's rows come
                from another topic than before.
        """
        self._closed.load()
        self._outcomes.load()
        self._rows.load()
        self._row_topics.load()
        self._intake.load()
        self._loads.load()
        self._drift.load()
        check_topics(self._rows.progress.applied, self._intake.decisions)
        check_journal(self._outcomes.executed, self._intake.decisions)
        log.info(
            "state_loaded",
            decision_count=self._intake.decisions.seen,
            partition_count=len(self._rows.progress.applied),
        )

    @property
    def gathering_s(self) -> float:
        """How long rows may gather before the next ``step``, in seconds."""
        return self._batches.gathering_s

    @property
    def swaps(self) -> int | None:
        """The latest rebuild when the state was read; None before."""
        return self._closed.swaps

    @property
    def runs_statements(self) -> bool:
        """Whether a statement runs on a target now, beside the rounds."""
        return bool(self._statements.busy)

    def stop(self) -> None:
        """End what runs beside the rounds; statements are ended by their runner."""
        self._loads.stop()
        self._drift.stop()

    def end_lineage(self, state: RunState, error: str = "") -> None:
        """Tell how the sink ended, if anybody is told."""
        if self._lineage is not None:
            self._lineage.end(state, self._rows.written, error)

    def check_writer(self) -> None:
        """Check that this sink is still the writer; without work it would not notice otherwise.

        Raises:
            WriterReplaced: Another writer took over.
            TargetError: The target is away (``retryable``).
        """
        check_epoch(self._control, self._epoch)

    def step(self, wait_s: float, *, idle: bool = False) -> bool:
        """One round of the barrier.

        Args:
            wait_s: Longest wait for a decision, or for the end of a statement that runs, before
                the round begins, in seconds.
            idle: Whether the last round had nothing to do: rows that arrive end the wait, too.

        Returns:
            Whether anything moved, so that another round is worth it at once.

        Raises:
            StateReplaced: A rebuilt table took a target's place: the state must be read anew.
            ShardMergeError: The sink must stop: another writer took over, or a topic breaks its
                contract.
        """
        self._rows.renew()
        # What ended meanwhile may have ended before a rebuilt table took its target's place.
        self._closed.look()
        beside_s = min(wait_s, _BESIDE_S)
        ended = self._take_statements(beside_s) if self._statements.busy else False
        busy = bool(self._statements.busy)
        ended |= self._loads.take(0 if ended or busy else beside_s)
        if ended or busy or self._loads.is_busy:
            news = self._intake.read(0)
        else:
            news = self._intake.read(beside_s if self._reports.hurries else wait_s, idle=idle)
        begun, last = time.monotonic(), self._last
        try:
            self._batches.expect()
            batch = self._plan(news=news)  # 1 to 4
        except StackError as error:
            log.warning("kafka_awaited", error=error)
            return False
        is_still = last is not None and batch is last.batch
        reach("batch-planned")
        self._execute(batch)  # 5
        ended |= self._loads.go_on(batch, self._state())
        moved = self._batches.run(batch, self._ahead.is_safe)
        if not self._ahead.is_safe():
            return self._plan_anew()
        self._rows.store_idle(time.monotonic())
        reach("batch-applied")
        # The sink may not change the table of a closed target.
        self._drift.step(
            self._outcomes.executed, self._statements.busy | self._closed.targets.keys()
        )
        self._reports.publish(batch.targets, self._batches.failing, is_still=is_still)  # 6
        reach("progress-published")
        if self._lineage is not None:
            told = self._intake.decisions, self._outcomes.executed, self._rows.written
            self._lineage.step(*told)
        self.metrics.round_ended(time.monotonic() - begun)
        return ended or moved or news or self._awaits_more

    def _plan(self, *, news: bool) -> BatchPlan:
        self._ahead.begin_round()
        last = self._last
        calm = last is not None and last.is_calm
        calm &= not (self._removals.truncations or self._loads.is_loading)
        self._looks = not (news and self._looks and self._intake.knows_all)
        if self._looks:
            is_calm = calm and not self._statements.busy
            self._intake.observe(is_calm=is_calm, ahead=is_calm)  # 1, 2
            self._row_topics.compare()
        else:
            self._intake.described.begin_round()
        self._settle()  # 3
        self._loads.order(self._outcomes.executed)
        self._closed.look()
        state, moves = self._state(), self._rows.moves
        decided = self._intake.decisions.seen
        if last is not None and self._intake.is_still and last.holds_for(state, decided, moves):
            return last.batch
        most = self._batches.bound()
        if self._intake.questions.awaited is not None:
            if ahead := self._ahead.plan(state, most):
                self._last = Planned(*ahead, decided, moves)
                return ahead[0]
            state = self._state()  # with Kafka's answer
        batch = plan(self._intake.decisions, state, most)  # 4
        self._last = Planned(batch, state, decided, moves)
        if batch.tasks:
            # Makes sure that no topic was deleted and made anew after its end was read.
            self._intake.described.identify({task.topic for task in batch.tasks})
            self._row_topics.compare()
        return batch

    def _settle(self) -> None:
        self._awaits_more = self._intake.settle()
        self._rows.look()

    def _plan_anew(self) -> bool:
        """After rows that were not safe: whether another round is worth it at once."""
        try:
            self._ahead.check()
        except StackError as error:
            log.warning("kafka_awaited", error=error)
            return False
        return True

    def _state(self) -> SinkState:
        return SinkState(
            executed=self._outcomes.executed,
            refused=self._outcomes.refused(),
            rows=self._rows.progress,
            safe_ends=self._intake.barriers.safe_ends,
            unapplied=self._rows.unapplied,
            busy=self._statements.busy,
            closed=self._closed.targets,
            resting=self._holds.resting(),
            truncations=dict(self._removals.truncations),
            ordered=self._intake.ordered,
            loads=self._loads.latest,
            load_orders=self._loads.orders,
            loaded=self._loads.sources,
            is_loading=self._loads.is_loading,
            passed_over=self._loads.passed_over,
            routes=self._routes,
            writer_epoch=self._epoch,
        )

    def _execute(self, batch: BatchPlan) -> None:
        """Begin to execute the ready statements and removals."""
        for target in batch.targets:
            if target.ready:
                self._drift.begun(target.target)
                self._statements.start(target.target, target.ready)
        self._awaits_more |= self._removals.begin(batch)

    def _take_statements(self, wait_s: float) -> bool:
        """Note how statements and removals ended. Returns whether one did."""
        results = self._statements.finished(wait_s)
        for result in results:
            if isinstance(result, RemovalResult):
                self._removals.take(result)
            else:
                self.metrics.statement_ended(result)
                self._outcomes.take(result)
                self._drift.ended()
                if self._lineage is not None:
                    told = self._intake.decisions, self._outcomes.executed, self._rows.written
                    self._lineage.executed(result, *told)
        return bool(results)
