"""Carries out first loads beside the driver's loop: ``loading.load_rules`` says what may be done.

In each round new loads are ordered before the plan is made (``order``); after it loads move on and
chunks are given out (``go_on``). What threads have done comes back at the beginning of a round
(``take``). A step of a load is stored in the target before anything that follows from it is begun.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from shardmerge.connectors.event_log import logger
from shardmerge.connectors.growing_pause import GrowingPause
from shardmerge.schemas.model.errors import ContractError, ShardMergeError
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.spark_sink.barrier.applied import LoadPlace
from shardmerge.spark_sink.barrier.barrier import Barrier
from shardmerge.spark_sink.barrier.decisions import TargetDecisions
from shardmerge.spark_sink.barrier.shard_gates import ShardGates
from shardmerge.spark_sink.kafka.intake import Intake
from shardmerge.spark_sink.loading.load_estimate import rows_of
from shardmerge.spark_sink.loading.load_orders import load_orders, load_place, new_load
from shardmerge.spark_sink.loading.load_rules import (
    may_give_out,
    moved,
    next_base,
    next_order,
    proves,
)
from shardmerge.spark_sink.loading.load_state import Load, LoadKind
from shardmerge.spark_sink.loading.load_turns import LoadLimits, RateBudget, next_chunks
from shardmerge.spark_sink.planning.chunk_orders import (
    ChunkEnd,
    ChunkFailure,
    ChunkResult,
    chunk_order,
    unfit_for_chunks,
)
from shardmerge.spark_sink.planning.plan import BatchPlan, TargetPlan
from shardmerge.spark_sink.planning.sink_state import SinkState
from shardmerge.spark_sink.process.failpoints import reach
from shardmerge.spark_sink.targets.interface import Loads

from .applied_rows import AppliedRows
from .load_jobs import LoadJobs, PlannedPart

log = logger(__name__)

Trouble = tuple[str, str, str]
"""Why a load does not go on, what the operator can do, and the code of that."""
_MOST_THREADS = 64
_SPARE = 4
"""A chunk may have so many times the rows that it should have before it is split: as many as
numbers of an even plan (``chunk_ranges``)."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 10.0
_ELSEWHERE = (
    "give the source snapshot = 'debezium' when its other loads are complete, start the sink anew, "
    "and run shardmerge command reread for the shard"
)


@dataclass(frozen=True, slots=True)
class _Ended:
    """A job that has ended: what to do with its result, or its error."""

    take: Callable[[Any], None]
    failed: Callable[[Exception], None]
    result: Any = None
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class _Proof:
    """A mark that came through Kafka: the loads that it is for, each with its base."""

    barrier: Barrier
    known_to: SourcePosition
    bases: Mapping[ShardId, tuple[int, int]]


class LoadRuns:
    """The first loads of one driver. All methods belong to its thread.

    Args:
        pipeline: Says which sources the sink reads itself.
        target: Stores loads, and runs chunks; None for a kind of target that has no loads.
        jobs: Asks the sources.
        intake, rows: What is decided, and how far rows are applied.
        epoch: Of this writer.
        clock: Monotonic seconds.

    Attributes:
        latest: Shard → its latest load.
        orders: Shard → versions of the decisions that order it to be loaded.
        troubles: Shard whose load does not go on → why.
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
        self._target, self._jobs, self._epoch, self._clock = target, jobs, epoch, clock
        self._intake, self._rows = intake, rows
        self._sources = {s.name: s for s in pipeline.sources if s.is_loaded}
        self._small = pipeline.sink.spark_min_records
        self.latest: dict[ShardId, Load] = {}
        self.orders: dict[ShardId, Sequence[int]] = {}
        self.troubles: dict[ShardId, Trouble] = {}
        self._active: set[ShardId] = set()
        self._seen = -1
        self._pauses: dict[ShardId, GrowingPause] = {}
        self._planning: set[ShardId] = set()
        self._fenced: dict[ShardId, int] = {}
        self._fencing: set[str] = set()
        self._proving: set[str] = set()
        self._proofs: dict[str, _Proof] = {}
        self._readings: dict[ShardId, int] = {}
        self._chunk_rows: dict[ShardId, int] = {}
        self._budgets: dict[str, RateBudget] = {}
        self._ended: queue.SimpleQueue[_Ended] = queue.SimpleQueue()
        self._running = 0
        self._stale = False
        self._source_pauses: dict[str, GrowingPause] = {}
        most = sum(s.load_connections + 2 for s in self._sources.values())
        self._pool = ThreadPoolExecutor(max(1, min(most, _MOST_THREADS)), "first-load")

    @property
    def sources(self) -> frozenset[str]:
        """The sources whose first rows the sink reads itself."""
        return frozenset(self._sources)

    @property
    def is_busy(self) -> bool:
        """Whether something runs whose end brings a load on."""
        return self._running > 0

    def load(self) -> None:
        """Take the state from the target; plan again what an earlier driver had given out.

        Raises:
            WriterReplaced: Another writer took over.
            TargetError: The target does not answer.
        """
        if self._target is None:
            return
        if self._sources:
            self._target.prepare()
        self._reread()

    def _reread(self) -> None:
        assert self._target is not None
        # Later versions come later, and take the place of earlier ones.
        self.latest = {load.shard: load for load in self._target.loads()}
        if self._sources:
            self._keep([(load, load.give_all_back()) for load in self.latest.values()])
        self._active = {s for s, load in self.latest.items() if not load.is_complete}
        self._readings = dict.fromkeys(self.latest, 1)
        self._seen = -1
        self._place()

    def stop(self) -> None:
        """Wait for the chunks that run, and begin no others."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._jobs.close()

    # --- one round of the driver ----------------------------------------------

    def take(self, wait_s: float) -> bool:
        """Take what threads have done. Returns whether anything ended.

        Args:
            wait_s: Longest wait for a first one while something runs.

        Raises:
            ContractError: A chunk has failed in a way that a repetition cannot help.
            TargetError: The target cannot be written now (``retryable``).
        """
        found = self._stale
        if self._stale:
            self._stale = False
            self._reread()
        while self._running:
            try:
                ended = self._ended.get(timeout=0 if found or not wait_s else wait_s)
            except queue.Empty:
                break
            self._running -= 1
            found = True
            with self._known_again():
                if ended.error is None:
                    ended.take(ended.result)
                else:
                    ended.failed(ended.error)
        if found:
            self._place()
        return found

    def order(self) -> None:
        """Begin the loads that decisions order; before the plan of the round is made.

        Raises:
            WriterReplaced: Another writer took over.
            TargetError: The target cannot be written now (``retryable``).
        """
        decisions = self._intake.decisions
        if not self._sources or decisions.seen == self._seen:
            return
        rows, new = self._rows.progress, list[tuple[Load | None, Load]]()
        for target in decisions.targets.values():
            for name, gates in target.shards.items():
                if name.source not in self._sources:
                    continue
                latest = self.latest.get(name)
                if latest is None and name in self.orders and not gates.restarts:
                    continue  # its rows came by Debezium's snapshot
                orders = self.orders[name] = load_orders(gates, latest, rows)
                version = orders[0] if latest is None and orders else None
                if latest is not None and latest.is_complete:
                    version = next_order(latest, orders)
                if version is not None:
                    load = new_load(name, target.target, version, LoadKind.CHUNKS, latest)
                    new.append((None, load))
        self._keep(new)
        for _, load in new:
            self._active.add(load.shard)
            log.info("load_begun", shard=load.shard, target=load.target, version=load.version)
        self._seen = decisions.seen
        self._place()

    def go_on(self, batch: BatchPlan, state: SinkState) -> bool:
        """Move loads to later gates, complete them, and give chunks out.

        Args:
            batch: The round's plan.
            state: From which it was made.

        Returns:
            Whether a load moved or was completed, so that another plan is worth it at once.

        Raises:
            WriterReplaced: Another writer took over.
            TargetError: The target cannot be written now (``retryable``).
        """
        if not self._active:
            return False
        plans = {plan.target: plan for plan in batch.targets}
        went_on = self._move(plans)
        went_on |= self._prove()
        if went_on:
            self._place()
            return True
        self._fence(plans)
        ready = self._ready(plans, state)
        self._plan_more(ready)
        self._give_out(ready, state)
        self._seek_proof()
        return False

    # --- steps of loads ---------------------------------------------------------

    def _move(self, plans: Mapping[TargetTable, TargetPlan]) -> bool:
        steps = []
        for name in self._active:
            load = self.latest[name]
            gates = self._gates(load)
            blocked = plans[load.target].blocked.get(name)
            if blocked is None:
                continue
            index = next_base(gates, load, blocked)
            if index is not None:
                again = [gates.gates[place].version for place in gates.restarts]
                steps.append((load, moved(gates, load, index, again)))
        self._keep(steps)
        for _, load in steps:
            reach("load-moved")
            self.troubles.pop(load.shard, None)
            self._pauses.pop(load.shard, None)
            log.info("load_moved", shard=load.shard, version=load.base, rows=rows_of(load))
            self._completed(load)
        return bool(steps)

    def _prove(self) -> bool:
        """Complete the loads for which it is known that no schema change came meanwhile."""
        went_on = False
        for source, proof in list(self._proofs.items()):
            if not self._intake.is_settled(proof.barrier):
                continue
            del self._proofs[source]
            self._proving.discard(source)
            steps = []
            for name, (version, base) in proof.bases.items():
                load = self.latest[name]
                is_same = (load.version, load.base) == (version, base) and not load.is_complete
                if is_same and proves(self._gates(load), load, proof.known_to):
                    steps.append((load, load.proven()))
            self._keep(steps)
            for _, load in steps:
                self._completed(load)
            went_on |= bool(steps)
        return went_on

    def _completed(self, load: Load) -> None:
        if not load.is_complete:
            return
        self._active.discard(load.shard)
        self.troubles.pop(load.shard, None)
        self._readings[load.shard] = self._intake.watermarks.number + 1
        # Another load may be ordered already.
        self._seen = -1
        log.info("load_completed", shard=load.shard, target=load.target, rows=rows_of(load))

    def _ready(
        self, plans: Mapping[TargetTable, TargetPlan], state: SinkState
    ) -> dict[ShardId, Load]:
        """The loads whose chunks may be planned and given out now."""
        found, now = {}, self._clock()
        for name in self._active:
            load = self.latest[name]
            target, plan = self._decided(load), plans[load.target]
            gates, blocked = target.shards[name], plan.blocked.get(name)
            pause = self._pauses.get(name)
            if blocked is None or plan.ready or load.target in state.busy:
                continue
            if name in target.paused or not target.lives(name):
                continue
            if pause is not None and not pause.is_over(now):
                continue
            has_base = self._fenced.get(name) == load.base
            if not may_give_out(gates, load, blocked, source_has_base=has_base):
                continue
            if unfit := unfit_for_chunks(target, name, state):
                self._trouble(name, (unfit, _ELSEWHERE, "SM-1616"))
                continue
            found[name] = load
        return found

    def _fence(self, plans: Mapping[TargetTable, TargetPlan]) -> None:
        """Have the sources commit what they have shown, once for all loads that wait for it."""
        waiting: dict[str, dict[ShardId, int]] = {}
        for name in self._active:
            load = self.latest[name]
            if self._fenced.get(name) != load.base and name in plans[load.target].blocked:
                waiting.setdefault(name.source, {})[name] = load.base
        for source, bases in waiting.items():
            if source in self._fencing or not self._may_ask(source):
                continue
            self._fencing.add(source)

            def take(_: None, source: str = source, bases: Mapping[ShardId, int] = bases) -> None:
                self._fencing.discard(source)
                self._source_pauses.pop(source, None)
                self._fenced.update(bases)

            def failed(error: Exception, source: str = source) -> None:
                self._fencing.discard(source)
                self._source_failed(source, error)

            self._begin(take, failed, self._jobs.commit_seen, self._sources[source])

    def _plan_more(self, ready: Mapping[ShardId, Load]) -> None:
        assert self._target is not None
        for name, load in ready.items():
            if load.is_planned or name in self._planning:
                continue
            self._planning.add(name)
            identity = (load.version, load.base, load.planned_to)

            def take(
                part: PlannedPart, name: ShardId = name, identity: tuple[Any, ...] = identity
            ) -> None:
                self._planning.discard(name)
                load = self.latest[name]
                if (load.version, load.base, load.planned_to) == identity and not load.is_planned:
                    self._chunk_rows[name] = part.rows
                    if load.planned_to is None and part.is_last:
                        after = load.plan(*part.boundaries)
                    else:
                        after = load
                        for boundary in part.boundaries:
                            after = after.plan_next(boundary)
                        after = after.plan_next(None) if part.is_last else after
                    self._keep([(load, after)])

            def failed(error: Exception, name: ShardId = name) -> None:
                self._planning.discard(name)
                self._failed(name, error)

            gate = self._gates(load).gates[-1]
            source = self._sources[name.source]
            self._begin(take, failed, self._jobs.plan, source, load, gate, self._target.chunk_rows)

    def _give_out(self, ready: Mapping[ShardId, Load], state: SinkState) -> None:
        assert self._target is not None
        loads = [self.latest[name] for name in self._active]
        limits, now = {}, self._clock()
        for source in self._sources.values():
            rate = source.load_rows_per_s
            limits[source.name] = LoadLimits(source.load_connections, rate or None)
            if rate:
                budget = self._budgets.get(source.name, RateBudget(float(rate), now))
                self._budgets[source.name] = budget.later(now, rate)
        may = [load.shard in ready for load in loads]
        turns = next_chunks(loads, may, limits, self._budgets, _MOST_THREADS)
        begun: dict[int, Load] = {}
        for turn in turns:
            begun[turn.load] = begun.get(turn.load, loads[turn.load]).begin(turn.number)
        self._keep([(loads[index], after) for index, after in begun.items()])
        most = self._target.chunk_rows * _SPARE
        for turn in turns:
            load = begun[turn.load]
            order = chunk_order(self._decided(load), load, turn.number, state, most)
            name, base = load.shard, load.base
            small = self._chunk_rows.get(name, self._small) < self._small

            def take(
                result: ChunkResult | ChunkFailure,
                name: ShardId = name,
                number: int = turn.number,
                base: int = base,
            ) -> None:
                self._take_chunk(name, number, base, result)

            def failed(
                error: Exception, name: ShardId = name, number: int = turn.number, base: int = base
            ) -> None:
                self._give_back(name, number, base)
                self._failed(name, error)

            read_from = self._sources[name.source]
            self._begin(take, failed, partial(self._target.run, order, read_from, small=small))

    def _take_chunk(
        self, name: ShardId, number: int, base: int, result: ChunkResult | ChunkFailure
    ) -> None:
        load = self.latest[name]
        if isinstance(result, ChunkFailure):
            if result.final:
                raise ContractError(result.message, hint=result.hint, code=result.code)
            self._give_back(name, number, base)
            self._rest(name, (result.message, result.hint, result.code))
            return
        if not load.accepts(number, base):
            return
        if result.end is ChunkEnd.DONE:
            assert result.read_before is not None
            # Its own transaction has stored that.
            self.latest[name] = load.finish(number, result.rows, result.size, result.read_before)
            self.troubles.pop(name, None)
            self._pauses.pop(name, None)
            if (budget := self._budgets.get(name.source)) is not None:
                self._budgets[name.source] = budget.without(result.rows)
            return
        self._give_back(name, number, base)
        if result.end is ChunkEnd.OTHER_TABLE:
            why = f"its table has changed ({result.detail}): waits for the decision about that"
            self._rest(name, (why, "", "SM-1615"))
        elif result.end is ChunkEnd.TOO_LARGE:
            self._split(name, number)

    def _split(self, name: ShardId, number: int) -> None:
        """Have a chunk that is too large cut; no chunk of the shard is given out meanwhile."""
        assert self._target is not None
        load = self.latest[name]
        source, gate = self._sources[name.source], self._gates(load).gates[-1]
        chunk, rows = load.chunks[number], self._target.chunk_rows
        # A target that refuses a transaction for its size may need ever smaller ones.
        rows = max(1, min(rows, self._chunk_rows.get(name) or rows) // 2)
        self._chunk_rows[name] = rows
        identity = (load.version, load.base)
        self._rest(name, ("a part of its table has too many rows and is cut", "", "SM-1615"))

        def take(boundary: tuple[str, ...] | None) -> None:
            load = self.latest[name]
            known = (load.version, load.base) == identity and number < len(load.chunks)
            if boundary is not None and known and load.chunks[number] == chunk:
                self._keep([(load, load.split(number, boundary))])
            self._pauses.pop(name, None)

        def failed(error: Exception) -> None:
            self._failed(name, error)

        self._begin(take, failed, self._jobs.middle, source, name, gate, chunk, rows)

    def _seek_proof(self) -> None:
        """Write marks for the loads whose chunks are all done."""
        waiting: dict[str, dict[ShardId, tuple[int, int]]] = {}
        for name in self._active:
            load = self.latest[name]
            if load.is_read:
                waiting.setdefault(name.source, {})[name] = (load.version, load.base)
        for source, bases in waiting.items():
            if source in self._proving or not self._may_ask(source):
                continue
            self._proving.add(source)

            def take(
                end: SourcePosition,
                source: str = source,
                bases: Mapping[ShardId, tuple[int, int]] = bases,
            ) -> None:
                self._source_pauses.pop(source, None)
                try:
                    barrier = self._intake.mark_seen(source)
                except ShardMergeError:
                    self._proving.discard(source)
                    raise
                self._proofs[source] = _Proof(barrier, end, bases)

            def failed(error: Exception, source: str = source) -> None:
                self._proving.discard(source)
                self._source_failed(source, error)

            self._begin(take, failed, self._jobs.prove, self._sources[source])

    # --- helpers ----------------------------------------------------------------

    def _begin(
        self,
        take: Callable[[Any], None],
        failed: Callable[[Exception], None],
        job: Callable[..., Any],
        *arguments: Any,
    ) -> None:
        def run() -> None:
            ended = _Ended(take, failed)
            try:
                ended = replace(ended, result=job(*arguments))
            except Exception as error:  # told to the driver, in its thread
                ended = replace(ended, error=error)
            self._ended.put(ended)

        self._running += 1
        self._pool.submit(run)

    def _keep(self, steps: Sequence[tuple[Load | None, Load]]) -> None:
        """Store steps in the target, and then in memory."""
        assert self._target is not None
        changed = [(before, after) for before, after in steps if before != after]
        if changed:
            with self._known_again():
                self._target.keep(self._epoch, changed)
        for _, after in changed:
            self.latest[after.shard] = after

    @contextmanager
    def _known_again(self) -> Iterator[None]:
        """After an error it is not known what is stored: it is read again in the next round."""
        try:
            yield
        except ShardMergeError:
            self._stale = True
            raise

    def _place(self) -> None:
        """Tell the barrier where the loads stand."""
        found: dict[ShardId, LoadPlace] = {}
        for name, load in self.latest.items():
            target = self._intake.decisions.targets.get(load.target)
            if target is not None and name in target.shards:
                reading = self._readings.get(name, 1)
                found[name] = load_place(target.shards[name], load, reading)
        self._rows.loads = found

    def _gates(self, load: Load) -> ShardGates:
        return self._decided(load).shards[load.shard]

    def _decided(self, load: Load) -> TargetDecisions:
        return self._intake.decisions.targets[load.target]

    def _give_back(self, name: ShardId, number: int, base: int) -> None:
        load = self.latest[name]
        if load.accepts(number, base):
            self._keep([(load, load.give_back(number))])

    def _failed(self, name: ShardId, error: Exception) -> None:
        if not isinstance(error, ShardMergeError):
            raise error
        self._rest(name, (error.message, error.hint, error.code))

    def _rest(self, name: ShardId, why: Trouble) -> None:
        """Leave a load alone for a while, which grows with each time."""
        pause = self._pauses.setdefault(name, GrowingPause(_FIRST_PAUSE_S, _LONGEST_PAUSE_S))
        pause.begin(self._clock())
        self._trouble(name, why)

    def _trouble(self, name: ShardId, why: Trouble) -> None:
        if self.troubles.get(name) != why:
            self.troubles[name] = why
            log.warning("load_delayed", shard=name, reason=why[0], hint=why[1], code=why[2])

    def _source_failed(self, source: str, error: Exception) -> None:
        if not isinstance(error, ShardMergeError):
            raise error
        pause = GrowingPause(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)
        self._source_pauses.setdefault(source, pause).begin(self._clock())
        for name in self._active:
            if name.source == source:
                self._trouble(name, (error.message, error.hint, error.code))

    def _may_ask(self, source: str) -> bool:
        pause = self._source_pauses.get(source)
        return pause is None or pause.is_over(self._clock())
