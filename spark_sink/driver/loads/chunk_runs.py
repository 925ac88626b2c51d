"""Plans the chunks of first loads, gives them out, and takes their results."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial

from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.pipeline.settings import Source
from shardmerge.spark_sink.loading.key_order import Boundary
from shardmerge.spark_sink.loading.load_state import Attempt, Chunk, Load, LoadKind
from shardmerge.spark_sink.loading.load_turns import LoadLimits, RateBudget, next_chunks
from shardmerge.spark_sink.planning.chunk_orders import (
    ChunkEnd,
    ChunkFailure,
    ChunkResult,
    chunk_order,
)
from shardmerge.spark_sink.planning.progress import Trouble
from shardmerge.spark_sink.planning.sink_state import SinkState
from shardmerge.spark_sink.targets.load_interface import Loads

from .load_book import LoadBook
from .load_jobs import LoadJobs, PlannedPart
from .load_threads import LoadThreads

MOST_CHUNKS = 64
"""Most chunks at once, over all sources."""
_LIMITED_S = 2
"""If a source has a limit of rows a second, a chunk has the rows of this many seconds."""
_SPARE = 4
"""A chunk is split if it has more than this many times the rows that it should have. An even plan
can make chunks up to this large (``chunk_ranges``)."""


class ChunkRuns:
    """Plans, gives out and takes the chunks of all loads.

    Each step is stored in the target before anything begins that depends on it.

    Args:
        sources: Name → source.
        target: Runs chunks.
        jobs, threads: Ask the sources.
        book: The loads.
        signals: Source's name → the database of its signal table.
        small: A chunk with fewer rows is not worth a Spark job.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        sources: Mapping[str, Source],
        target: Loads,
        jobs: LoadJobs,
        threads: LoadThreads,
        book: LoadBook,
        *,
        signals: Mapping[str, str],
        small: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sources, self._signals = sources, signals
        self._target, self._jobs = target, jobs
        self._threads, self._book, self._small, self._clock = threads, book, small, clock
        self._planning: set[ShardId] = set()
        # Two attempts to read one snapshot would each make the other one void, again and again. The
        # book can plan a snapshot again while its reader still runs.
        self._snapshots: set[ShardId] = set()
        self._rows: dict[ShardId, int] = {}
        self._budgets: dict[str, RateBudget] = {}

    def plan(self, ready: Mapping[ShardId, Load]) -> None:
        """Ask sources for more boundaries, for the loads whose planning has not ended."""
        for name, load in ready.items():
            if load.is_planned or name in self._planning:
                continue
            self._planning.add(name)
            source, gate = self._sources[name.source], self._book.gates(load).gates[-1]
            self._threads.begin(
                partial(self._jobs.plan, source, load, gate, self._chunk_rows(source)),
                partial(self._planned, load),
                partial(self._plan_failed, name),
            )

    def _planned(self, asked: Load, part: PlannedPart) -> None:
        name = asked.shard
        self._planning.discard(name)
        load = after = self._book.latest[name]
        place = (asked.version, asked.kind, asked.base, asked.planned_to)
        if (load.version, load.kind, load.base, load.planned_to) != place or load.is_planned:
            return
        self._rows[name] = part.rows
        if load.planned_to is None and part.is_last:
            after = load.plan(*part.boundaries)
        else:
            for boundary in part.boundaries:
                after = after.plan_next(boundary)
            after = after.plan_next(None) if part.is_last else after
        self._book.keep([(load, after)])

    def _plan_failed(self, name: ShardId, error: Exception) -> None:
        self._planning.discard(name)
        self._book.failed(name, error)

    def give_out(self, ready: Mapping[ShardId, Load], state: SinkState) -> None:
        """Give out as many chunks as the sources' limits allow.

        Args:
            ready: Loads whose chunks may be given out.
            state: The state from which the round's plan was made.

        Raises:
            WriterReplaced: Another writer took over.
            TargetError: The target cannot be written now (``retryable``).
        """
        loads = [self._book.latest[name] for name in self._book.active]
        may = [load.shard in ready and load.shard not in self._snapshots for load in loads]
        turns = next_chunks(loads, may, self._limits(), self._budgets, MOST_CHUNKS)
        begun: dict[int, Load] = {}
        for turn in turns:
            begun[turn.load] = begun.get(turn.load, loads[turn.load]).begin(turn.number)
        self._book.keep([(loads[index], after) for index, after in begun.items()])
        for turn in turns:
            load = begun[turn.load]
            source = self._sources[load.shard.source]
            # Of a snapshot these are the rows that are held at once.
            spare = 1 if load.kind is LoadKind.SNAPSHOT else _SPARE
            order = chunk_order(
                self._book.decided(load),
                load,
                turn.number,
                state,
                self._target.chunk_rows * spare,
                signals=self._signals[source.name],
            )
            if load.kind is LoadKind.SNAPSHOT:
                self._snapshots.add(load.shard)
            small = self._rows.get(load.shard, self._small) < self._small
            given = (load.shard, order.chunk.given)
            self._threads.begin(
                partial(self._target.run, order, source, small=small),
                partial(self._take, given),
                partial(self._failed, given),
            )

    def _chunk_rows(self, source: Source) -> int:
        """How many rows a chunk should have: few under a limit, since it is read without pauses."""
        most, rate = self._target.chunk_rows, source.load_rows_per_s
        return min(most, rate * _LIMITED_S) if rate else most

    def _limits(self) -> dict[str, LoadLimits]:
        """The limits of all sources; their budgets are brought up to date."""
        limits, now = {}, self._clock()
        for source in self._sources.values():
            rate = source.load_rows_per_s
            limits[source.name] = LoadLimits(source.load_connections, rate or None)
            if rate:
                budget = self._budgets.get(source.name, RateBudget(float(rate), now))
                self._budgets[source.name] = budget.later(now, rate)
        return limits

    def _take(self, given: tuple[ShardId, Attempt], result: ChunkResult | ChunkFailure) -> None:
        name, attempt = given
        self._snapshots.discard(name)
        load = self._book.latest[name]
        if isinstance(result, ChunkFailure):
            if result.final:
                raise ContractError(result.message, hint=result.hint, code=result.code)
            self._give_back(given)
            self._book.rest(name, Trouble(result.message, result.hint, result.code))
        elif not load.accepts(attempt):
            return  # it was planned again meanwhile, and nothing of this attempt counts
        elif result.end is ChunkEnd.DONE:
            assert result.read_before is not None
            # The chunk's own transaction has stored this step.
            done = load.finish(attempt.chunk, result.rows, result.size, result.read_before)
            self._book.note(done, result.rows)
            self._book.goes_on(name)
            budget = self._budgets.get(name.source)
            # The reader of a snapshot keeps to the limit by itself.
            if budget is not None and load.kind is LoadKind.CHUNKS:
                self._budgets[name.source] = budget.without(result.rows)
        else:
            self._give_back(given)
            if result.end is ChunkEnd.OTHER_TABLE:
                why = f"its table has changed ({result.detail}): it waits for the decision on that"
                self._book.waits(name, why)
            elif result.end is ChunkEnd.TOO_LARGE:
                self._split(name, attempt.chunk)

    def _failed(self, given: tuple[ShardId, Attempt], error: Exception) -> None:
        self._snapshots.discard(given[0])
        self._give_back(given)
        self._book.failed(given[0], error)

    def _give_back(self, given: tuple[ShardId, Attempt]) -> None:
        name, attempt = given
        load = self._book.latest[name]
        if load.accepts(attempt):
            self._book.keep([(load, load.give_back(attempt.chunk))])

    def _split(self, name: ShardId, number: int) -> None:
        """Begin to split a chunk that is too large. Until then its shard gets no chunks."""
        load, usual = self._book.latest[name], self._target.chunk_rows
        source, gate = self._sources[name.source], self._book.gates(load).gates[-1]
        # A target that refuses a transaction for its size may need smaller and smaller chunks.
        self._rows[name] = rows = max(1, min(usual, self._rows.get(name) or usual) // 2)
        self._book.waits(name, "a part of its table has too many rows and is cut")
        chunk = load.chunks[number]
        self._threads.begin(
            partial(self._jobs.middle, source, name, gate, chunk, rows),
            partial(self._cut, load, chunk),
            partial(self._book.failed, name),
        )

    def _cut(self, asked: Load, chunk: Chunk, boundary: Boundary | None) -> None:
        load = self._book.latest[asked.shard]
        is_same = (load.version, load.base) == (asked.version, asked.base)
        if boundary is not None and is_same and load.chunks[chunk.number] == chunk:
            self._book.keep([(load, load.split(chunk.number, boundary))])
        self._book.goes_on(asked.shard)
