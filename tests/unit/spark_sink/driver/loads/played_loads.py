"""Loads of two shards: real decisions, plans and rules; sources and target are played."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from shardmerge.schemas.model.errors import TargetError
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.settings import Connect, Kafka, Pipeline, Source, Target
from shardmerge.schemas.records.decisions import Binding, Decision, TargetStatement
from shardmerge.spark_sink.barrier.applied import Applied, RowProgress, Watermarks
from shardmerge.spark_sink.barrier.barrier import Barrier
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.driver.loads.load_jobs import PlannedPart
from shardmerge.spark_sink.driver.loads.load_runs import LoadRuns
from shardmerge.spark_sink.loading.load_state import Load, LoadKind
from shardmerge.spark_sink.planning.chunk_orders import (
    ChunkEnd,
    ChunkFailure,
    ChunkOrder,
    ChunkResult,
)
from shardmerge.spark_sink.planning.plan import BatchPlan, plan
from shardmerge.spark_sink.planning.sink_state import SinkState
from tests.unit.spark_sink.decided import (
    A_ROWS,
    B_ROWS,
    EXPANDING,
    TARGET,
    A,
    B,
    at,
    decision,
    folded,
    key,
    statement,
)

CREATE = statement(EXPANDING, "table", binds=(Binding("id#1", "id"),))
FIRST = (decision(1, A, 10, CREATE, snapshot=True), decision(2, B, 10, snapshot=True))
ROUTE = RoutingRule(".*", ".*", ".*", "merged", "t")


def pipeline(**changes: Any) -> Pipeline:
    source = Source("s1", "h", 1, "u", "p", 1, **{"snapshot": "spark", **changes})
    target = Target("h", 1, "u", "p")
    return Pipeline(
        "p",
        kafka=Kafka("k"),
        connect=Connect("c"),
        sources=(source,),
        routes=(ROUTE,),
        target=target,
    )


class Intake:
    def __init__(self) -> None:
        self.decisions = folded(*FIRST)
        self.watermarks = Watermarks(seen=2, number=7)
        self.settled = True

    @property
    def questions(self) -> Intake:
        return self

    def mark_seen(self, source: str) -> Barrier:
        return Barrier(source, 5, {})

    def is_settled(self, barrier: Barrier) -> bool:
        return self.settled


@dataclass
class Rows:
    applied: dict[Partition, Applied] = field(default_factory=dict)
    loads: Any = field(default_factory=dict)
    written: Counter[Any] = field(default_factory=Counter)

    @property
    def progress(self) -> RowProgress:
        marks = Watermarks(100, {"s1.app.a": 1, "s1.app.b": 1}, {A_ROWS: 10, B_ROWS: 10}, number=7)
        return RowProgress(self.applied, marks, loads=self.loads)


class Jobs:
    """Answers at once; ``errors`` come first."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.errors: dict[str, list[Exception]] = {}
        self.end = at(100)
        self.parts: list[PlannedPart] = []
        self.asked: list[int] = []

    def _called(self, name: str) -> None:
        self.calls.append(name)
        if self.errors.get(name):
            raise self.errors[name].pop(0)

    def commit_seen(self, source: Source) -> None:
        self._called("commit")

    def prove(self, source: Source) -> SourcePosition:
        self._called("prove")
        return self.end

    def plan(self, source: Source, load: Load, gate: Any, rows: int) -> PlannedPart:
        self._called("plan")
        self.asked.append(rows)
        if load.kind is LoadKind.SNAPSHOT:
            return PlannedPart((), True, 5)
        return self.parts.pop(0) if self.parts else PlannedPart((("5",),), True, 5)

    def middle(self, *_: Any) -> tuple[str, ...]:
        self._called("middle")
        return ("3",)

    def close(self) -> None: ...


class Store:
    """Stores loads; ``answers`` are of the next chunks, the others are done."""

    chunk_rows = 10

    def __init__(self) -> None:
        self.kept: dict[tuple[ShardId, int], Load] = {}
        self.orders: list[ChunkOrder] = []
        self.answers: list[ChunkEnd | str | Exception] = []
        self.refuses = 0
        self.unique = False
        self.copies: list[ChunkOrder] = []
        self.failures: list[ChunkFailure] = []
        self.cleared: list[str] = []
        self.refused: list[TargetError] = []
        self.forgotten: list[ShardId] = []
        self.left: list[ShardId] = []
        self.is_stopped = False

    def has_other_unique_key(self, target: TargetTable) -> bool:
        return self.unique

    def clear(self, epoch: int, target: TargetTable, statement: TargetStatement) -> None:
        if self.refused:
            raise self.refused.pop(0)
        self.cleared.append(statement.sql)

    def copy(self, order: ChunkOrder) -> ChunkFailure | None:
        self.copies.append(order)
        return self.failures.pop(0) if self.failures else None

    def staged(self) -> list[ShardId]:
        return self.left

    def forget_staged(self, loads: Collection[Load]) -> None:
        self.forgotten += [load.shard for load in loads]

    def stop(self) -> None:
        self.is_stopped = True

    def prepare(self) -> None: ...

    def loads(self) -> list[Load]:
        return [self.kept[place] for place in sorted(self.kept)]

    def keep(self, epoch: int, steps: Sequence[tuple[Load | None, Load]]) -> None:
        if self.refuses:
            self.refuses -= 1
            raise TargetError("away", retryable=True, code="SM-3111")
        for _, after in steps:
            self.kept[after.shard, after.version] = after

    def run(self, order: ChunkOrder, source: Source, *, small: bool) -> Any:
        self.orders.append(order)
        shard, number = order.load.shard, order.chunk.number
        answer = self.answers.pop(0) if self.answers else ChunkEnd.DONE
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, str) and not isinstance(answer, ChunkEnd):
            return ChunkFailure(shard, number, answer, final=answer == "final")
        if answer is not ChunkEnd.DONE:
            return ChunkResult(shard, number, answer)
        stored = self.kept[shard, order.load.version].finish(number, 2, 8, at(50))
        self.kept[shard, order.load.version] = stored
        return ChunkResult(shard, number, answer, 2, 8, at(50))


class Driver:
    def __init__(self, store: Store | None = None, **changes: Any) -> None:
        self.intake, self.rows, self.jobs = Intake(), Rows(), Jobs()
        self.store = store or Store()
        self.executed = {key(1)}
        self.routes = (ROUTE,)
        self.busy: set[Any] = set()
        self.clock = 0.0
        self.runs = LoadRuns(
            pipeline(**changes),
            self.store,
            cast(Any, self.jobs),
            intake=cast(Any, self.intake),
            rows=cast(Any, self.rows),
            epoch=1,
            clock=lambda: self.clock,
        )
        self.runs.load()

    def round(self) -> BatchPlan:
        """One round, and everything that was begun before it."""
        self.settle()
        return self.round_without_waiting()

    def settle(self) -> None:
        """Everything that the last round has begun."""
        while self.runs.is_busy:
            self.runs.take(5.0)

    def round_without_waiting(self) -> BatchPlan:
        """One round, while what was begun may go on."""
        self.runs.take(0.01)
        self.clock += 60
        self.runs.order({TARGET: self.executed})
        state = SinkState(
            executed={TARGET: self.executed},
            rows=self.rows.progress,
            safe_ends={A_ROWS: 10, B_ROWS: 10},
            busy=self.busy,
            loads=self.runs.latest,
            load_orders=self.runs.orders,
            loaded=self.runs.sources,
            passed_over=self.runs.passed_over,
            routes=self.routes,
        )
        batch = plan(self.intake.decisions, state, 100)
        self.runs.go_on(batch, state)
        return batch

    def rounds(self, number: int = 12) -> BatchPlan:
        for _ in range(number):
            batch = self.round()
        return batch

    def decide(self, *decisions: Decision) -> None:
        for one in decisions:
            self.intake.decisions.add(one)
