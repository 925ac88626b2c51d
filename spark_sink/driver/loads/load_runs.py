"""Carries out first loads beside the driver's loop: ``loading.load_rules`` says what may be done.

Each round has three parts. At its beginning the results of threads are taken (``take``). Before the
plan is made, new loads begin (``order``). After it, loads move on and chunks are given out
(``go_on``). A step of a load is stored in the target before anything begins that depends on it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence

from shardmerge.connectors.debezium.signals import signal_database
from shardmerge.connectors.event_log import logger
from shardmerge.schemas.model.errors import ShardMergeError
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.spark_sink.barrier.decisions import StatementKey
from shardmerge.spark_sink.driver.applied_rows import AppliedRows
from shardmerge.spark_sink.kafka.intake import Intake
from shardmerge.spark_sink.loading.load_estimate import rows_of
from shardmerge.spark_sink.loading.load_orders import (
    Described,
    debeziums,
    load_orders,
    new_load,
)
from shardmerge.spark_sink.loading.load_rules import may_give_out, moved, next_base, next_order
from shardmerge.spark_sink.loading.load_state import Load, LoadKind
from shardmerge.spark_sink.planning.chunk_orders import chosen_load, unfit
from shardmerge.spark_sink.planning.plan import BatchPlan, TargetPlan
from shardmerge.spark_sink.planning.progress import Trouble
from shardmerge.spark_sink.planning.sink_state import SinkState
from shardmerge.spark_sink.process.failpoints import reach
from shardmerge.spark_sink.targets.load_interface import Loads

from .chunk_runs import MOST_CHUNKS, ChunkRuns
from .load_book import LoadBook
from .load_jobs import LoadJobs
from .load_proofs import LoadProofs
from .load_threads import LoadThreads
from .snapshot_copies import SnapshotCopies

log = logger(__name__)


class LoadRuns:
    """The first loads of one driver. Only the driver's thread may call the methods.

    Args:
        pipeline: Says which sources the sink reads itself.
        target: Stores loads, and runs chunks; None where the sink loads nothing.
        jobs: Asks the sources.
        intake, rows: What is decided, and how far rows are applied.
        epoch: The writer epoch.
        clock: Monotonic seconds.

    Attributes:
        sources: Names of the sources whose first rows the sink reads itself.
        orders: Shard → versions of the decisions that order it to be loaded.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        target: Loads | None,
        jobs: LoadJobs,
        *,
        intake: Intake,
        rows: AppliedRows,
        epoch: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        sources = {s.name: s for s in pipeline.sources if s.is_loaded}
        self.sources = frozenset(sources)
        self.orders: dict[ShardId, Sequence[int]] = {}
        self._target, self._jobs = target, jobs
        self._intake, self._rows = intake, rows
        self._seen = -1
        # Target → number of its executed statements, and whether it has another unique key.
        self._unique: dict[TargetTable, tuple[int, bool]] = {}
        self._book = LoadBook(
            target, intake=intake, rows=rows, sources=self.sources, epoch=epoch, clock=clock
        )
        # Besides its chunks, a source can have a plan and a mark of each kind.
        most = sum(source.load_connections + 3 for source in sources.values())
        self._threads = LoadThreads(max(1, min(most, MOST_CHUNKS)))
        self._proofs = LoadProofs(sources, jobs, self._threads, intake, self._book)
        self._chunks: ChunkRuns | None = None
        self._copies: SnapshotCopies | None = None
        if target is not None:
            self._copies = SnapshotCopies(target, self._threads, self._book, epoch)
            self._chunks = ChunkRuns(
                sources,
                target,
                jobs,
                self._threads,
                self._book,
                signals={name: signal_database(pipeline, each) for name, each in sources.items()},
                small=pipeline.sink.spark_min_records,
                clock=clock,
            )

    @property
    def latest(self) -> Mapping[ShardId, Load]:
        """Shard → its latest load, which its stream must follow."""
        return self._book.following

    @property
    def passed_over(self) -> Mapping[ShardId, SourcePosition]:
        """Shard → position before which its rows are skipped: a snapshot includes them."""
        return self._book.passed_over

    @property
    def troubles(self) -> Mapping[ShardId, Trouble]:
        """Shard whose load does not go on → why."""
        return self._book.troubles

    @property
    def is_busy(self) -> bool:
        """Whether a job runs whose result may bring a load on."""
        return self._threads.is_busy

    @property
    def is_loading(self) -> bool:
        """Whether a load is not complete, or may begin."""
        book = self._book
        # Where the sink loads nothing itself, no news ever begins a load.
        return bool(book.active or book.unsettled or (book.has_news and self.sources))

    def load(self) -> None:
        """Read the state from the target. Chunks that were given out are planned again.

        Raises:
            WriterReplaced: Another writer took over.
            TargetError: The target does not answer.
        """
        if self._target is not None and self.sources:
            self._target.prepare()
        self._book.load()
        if self._copies is not None and self.sources:
            self._copies.load()

    def stop(self) -> None:
        """Wait for the chunks that run, end snapshots and copies, and begin no others."""
        if self._target is not None:
            self._target.stop()
        self._threads.stop()
        self._jobs.close()

    def take(self, wait_s: float) -> bool:
        """Take the results of threads. Returns whether there were any.

        Args:
            wait_s: Seconds to wait for a first result while a job runs.

        Raises:
            ContractError: A chunk has failed, and would fail again.
            TargetError: The target cannot be written now (``retryable``).
        """
        if self._book.is_stale:
            self._book.load()
        ended, first_error = self._threads.ended(wait_s), None
        for tell in ended:
            try:
                tell()
            except ShardMergeError as error:
                # What the target has stored is read again in the next round.
                self._book.is_stale = True
                first_error = first_error or error
        if first_error is not None:
            raise first_error
        if ended:
            self._book.tell_barrier()
        return bool(ended)

    def order(self, executed: Mapping[TargetTable, Collection[StatementKey]]) -> None:
        """Begin the loads that decisions order. Called before the round's plan is made.

        Args:
            executed: Per target, from the journal.

        Raises:
            WriterReplaced: Another writer took over.
            TargetError: The target cannot be written now (``retryable``).
        """
        decisions, book = self._intake.decisions, self._book
        if not self.sources or (decisions.seen == self._seen and not book.has_news):
            return
        rows, new = self._rows.progress, list[tuple[Load | None, Load]]()
        by_debezium: set[Described] | None = None
        for target in decisions.targets.values():
            for name, gates in target.shards.items():
                if name.source not in self.sources:
                    continue
                latest = book.latest.get(name)
                if latest is None and name in self.orders and not gates.restarts:
                    continue  # its rows came by Debezium's snapshot
                if latest is None and by_debezium is None:
                    by_debezium = self._by_debezium(executed)
                orders = self.orders[name] = load_orders(
                    gates,
                    latest,
                    rows,
                    executed.get(target.target, ()),
                    by_debezium=(name.source, gates.described) in (by_debezium or ()),
                )
                version = None
                if latest is None:
                    version = orders[0] if orders else None
                elif latest.is_complete:
                    version = next_order(latest, orders)
                if version is not None:
                    load = new_load(name, target.target, version, LoadKind.SNAPSHOT, latest)
                    new.append((None, load))
        book.keep(new)
        for _, load in new:
            log.info("load_begun", shard=load.shard, target=load.target, decision=load.version)
        self._seen, book.has_news = decisions.seen, False
        book.tell_barrier()

    def _by_debezium(
        self, executed: Mapping[TargetTable, Collection[StatementKey]]
    ) -> set[Described]:
        found = set[Described]()
        for target in self._intake.decisions.targets.values():
            known = executed.get(target.target, ())
            shards = target.shards.values()
            found |= debeziums(shards, self._book.latest, known, self._rows.progress)
        return found

    def go_on(self, batch: BatchPlan, state: SinkState) -> bool:
        """Move loads to later gates, complete them, and give chunks out.

        Args:
            batch: The round's plan.
            state: The state from which it was made.

        Returns:
            Whether a load moved or was completed. Then another plan should be made at once.

        Raises:
            WriterReplaced: Another writer took over.
            TargetError: The target cannot be written now (``retryable``).
        """
        if self._chunks is None or self._copies is None:
            return False
        self._copies.tidy()
        if not self._book.active and not self._book.unsettled:
            return False
        plans = {plan.target: plan for plan in batch.targets}
        went_on = self._move(plans)
        went_on |= self._proofs.prove()
        if went_on:
            self._book.tell_barrier()
            return True
        planned = {
            name
            for name in self._book.active
            if name in plans[self._book.latest[name].target].blocked
        }
        self._proofs.commit(planned)
        may_write = self._may_write(plans, state)
        self._copies.begin(may_write, state)
        ready = self._ready(may_write, plans, state)
        self._chunks.plan(ready)
        self._chunks.give_out(ready, state)
        self._proofs.seek_proof()
        return False

    def _move(self, plans: Mapping[TargetTable, TargetPlan]) -> bool:
        """Let loads move to the last gate that rows can reach. Returns whether one did."""
        steps = []
        for name in self._book.active:
            load = self._book.latest[name]
            gates, blocked = self._book.gates(load), plans[load.target].blocked.get(name)
            if blocked is None:
                continue
            index = next_base(gates, load, blocked)
            if index is not None:
                again = [gates.gates[place].version for place in gates.restarts]
                steps.append((load, moved(gates, load, index, again)))
        self._book.keep(steps)
        for before, load in steps:
            reach("load-moved")
            self._book.goes_on(load.shard)
            if load.base != before.base:
                rows = rows_of(load)
                log.info("load_moved", shard=load.shard, decision=load.base, loaded_rows=rows)
        return bool(steps)

    def _may_write(
        self, plans: Mapping[TargetTable, TargetPlan], state: SinkState
    ) -> dict[ShardId, Load]:
        """The loads that do not pause, and whose targets may be written now."""
        found = {}
        for name in self._book.active:
            load = self._book.latest[name]
            target, plan = self._book.decided(load), plans[load.target]
            # Writing rows now would only take locks that the target's statements wait for.
            if name not in plan.blocked or plan.ready or load.target in state.busy:
                continue
            if name in target.paused or not target.lives(name) or self._book.rests(name):
                continue
            found[name] = load
        return found

    def _ready(
        self,
        may_write: Mapping[ShardId, Load],
        plans: Mapping[TargetTable, TargetPlan],
        state: SinkState,
    ) -> dict[ShardId, Load]:
        """The loads whose chunks may be planned and given out now."""
        found = {}
        for name, load in may_write.items():
            target = self._book.decided(load)
            has_base, blocked = self._proofs.has_base(load), plans[load.target].blocked[name]
            if not may_give_out(target.shards[name], load, blocked, source_has_base=has_base):
                continue
            chosen = self._chosen(load, state)
            if trouble := unfit(target, chosen, state):
                self._book.trouble(name, trouble)
                continue
            found[name] = chosen
        return found

    def _chosen(self, load: Load, state: SinkState) -> Load:
        """The load, to be read in the way that is right for it."""
        if load.has_begun or self._target is None:
            return load
        executed = len(state.executed.get(load.target, ()))
        known = self._unique.get(load.target)
        if known is None or known[0] != executed:
            known = (executed, self._target.has_other_unique_key(load.target))
            self._unique[load.target] = known
        unique, decided = known[1], self._book.decided(load)
        after = chosen_load(decided, load, state, has_other_unique_key=unique)
        self._book.keep([(load, after)])
        return after
