"""Loads of two shards: real decisions, plans and rules; sources and target are played."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from shardmerge.schemas.model.errors import ContractError, StackError, TargetError
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.policies import RowOperation
from shardmerge.schemas.model.position import BEGINNING, SourcePosition
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.settings import Connect, Kafka, Pipeline, Source, Target
from shardmerge.schemas.records.decisions import Binding, Decision, Fixup, FixupKind
from shardmerge.schemas.records.reloads import Reload
from shardmerge.spark_sink.barrier.applied import Applied, RowProgress, Watermarks
from shardmerge.spark_sink.barrier.barrier import Barrier
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.driver.loads.load_jobs import PlannedPart
from shardmerge.spark_sink.driver.loads.load_runs import LoadRuns
from shardmerge.spark_sink.loading.load_state import ChunkState, Load, LoadKind
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
        self.forgotten: list[ShardId] = []
        self.left: list[ShardId] = []
        self.is_stopped = False

    def has_other_unique_key(self, target: TargetTable) -> bool:
        return self.unique

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
        """One round, and everything that it has begun."""
        while self.runs.is_busy:
            self.runs.take(5.0)
        return self.round_without_waiting()

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


@pytest.fixture
def driver() -> Driver:
    return Driver()


def test_a_shards_rows_wait_for_its_load_and_then_flow(driver: Driver) -> None:
    batch = driver.round()
    (target,) = batch.targets
    assert {name: stop.code for name, stop in target.stops.items()} == {
        A: "SM-1615",
        B: "SM-1615",
    }
    batch = driver.rounds()
    assert driver.runs.latest[A].is_complete and driver.runs.latest[B].is_complete
    assert not batch.targets[0].stops
    assert len(driver.store.orders) == 4
    assert all(load.is_complete for load in driver.store.kept.values())


def test_nothing_is_read_before_the_source_has_committed_what_it_has_shown(driver: Driver) -> None:
    driver.jobs.errors["commit"] = [StackError("no server", code="SM-4401")] * 2
    driver.rounds(3)
    assert driver.jobs.calls.count("commit") >= 2
    assert "plan" not in driver.jobs.calls
    assert driver.runs.troubles[A][0] == "no server"
    driver.rounds()
    assert driver.runs.latest[A].is_complete
    assert driver.runs.troubles == {}


def test_nothing_is_read_before_the_target_has_its_table(driver: Driver) -> None:
    driver.executed = set()
    driver.rounds(3)
    assert driver.store.orders == []


def test_nothing_is_given_out_while_a_statement_runs(driver: Driver) -> None:
    driver.busy = {TARGET}
    driver.rounds(4)
    assert driver.store.orders == []


def test_a_schema_change_moves_the_load_and_what_was_read_before_stays(driver: Driver) -> None:
    driver.intake.settled = False
    driver.rounds(5)
    assert driver.runs.latest[A].is_read
    driver.decide(decision(3, A, 60, columns=("id", "c")))
    driver.intake.settled = True
    driver.rounds()
    load = driver.runs.latest[A]
    assert (load.base, load.is_complete) == (3, True)
    # Read before 50, and the change stands at 60.
    assert {o.chunk.base for o in driver.store.orders if o.load.shard == A} == {1}


def test_what_may_have_been_read_behind_a_schema_change_is_read_again(driver: Driver) -> None:
    driver.intake.settled = False
    driver.rounds(5)
    driver.decide(decision(3, A, 40, columns=("id", "c")))
    driver.intake.settled = True
    driver.rounds()
    of_a = [o for o in driver.store.orders if o.load.shard == A]
    assert [o.chunk.base for o in of_a] == [1, 1, 3, 3]
    assert of_a[-1].stream.segments[0].columns[-1].column.name == "c"
    assert driver.runs.latest[A].is_complete


def test_a_load_waits_at_a_held_gate_with_its_shard(driver: Driver) -> None:
    driver.decide(decision(3, A, 40, hold=True))
    driver.rounds()
    assert not driver.runs.latest[A].is_complete
    assert {o.load.shard for o in driver.store.orders} == {B}
    driver.decide(decision(4, A, 60, releases=(A,)))
    driver.rounds()
    assert driver.runs.latest[A].is_complete
    assert driver.runs.latest[A].base == 4


def test_a_table_that_is_dropped_is_not_read_on(driver: Driver) -> None:
    driver.intake.settled = False
    driver.rounds(5)
    driver.decide(decision(3, A, 60, live=False))
    batch = driver.rounds(2)
    assert driver.runs.latest[A].is_void
    assert A not in batch.targets[0].stops


def test_rows_of_a_dropped_table_agree_once_the_topic_has_what_its_chunks_include(
    driver: Driver,
) -> None:
    driver.intake.settled = False
    driver.rounds(5)
    driver.decide(decision(3, A, 60, live=False))
    driver.rounds(2)
    # The stream goes on, but the connector may be behind the chunks.
    assert driver.rows.loads[A].position is None
    assert driver.rows.loads[A].reading > driver.intake.watermarks.number + 1
    asked = driver.jobs.calls.count("prove")

    later = Driver(driver.store)
    later.intake.settled = False
    later.decide(decision(3, A, 60, live=False))
    later.rounds(2)
    assert later.rows.loads[A].reading > later.intake.watermarks.number + 1
    for one in (driver, later):
        one.intake.settled = True
        one.rounds(3)
        assert one.rows.loads[A].reading == one.intake.watermarks.number + 1
    assert driver.jobs.calls.count("prove") <= asked + 2


def test_a_table_that_is_dropped_before_a_chunk_was_written_has_no_rows_to_wait_for(
    driver: Driver,
) -> None:
    driver.store.answers = [ChunkEnd.REFUSED] * 4
    driver.rounds(1)
    driver.decide(decision(3, A, 60, live=False))
    driver.rounds(2)
    assert driver.runs.latest[A].is_void
    assert driver.rows.loads[A].reading == 0


def test_a_chunk_that_fails_is_given_out_again_and_the_reason_is_told(
    driver: Driver, caplog: pytest.LogCaptureFixture
) -> None:
    driver.store.answers = ["the target is full", StackError("gone", code="SM-4409")]
    driver.rounds(4)
    told = [record.getMessage() for record in caplog.records]
    assert any("the target is full" in text for text in told)
    driver.rounds()
    assert driver.runs.latest[A].is_complete and driver.runs.latest[B].is_complete
    assert len(driver.store.orders) == 6


def test_a_failure_that_cannot_pass_ends_the_sink(driver: Driver) -> None:
    driver.store.answers = ["final"]
    with pytest.raises(ContractError, match="final"):
        driver.rounds()


def test_another_table_is_waited_for(driver: Driver) -> None:
    driver.store.answers = [ChunkEnd.OTHER_TABLE] * 40
    driver.rounds(6)
    while driver.runs.is_busy:
        driver.runs.take(5.0)
    assert "its table has changed" in driver.runs.troubles[A][0]
    driver.store.answers = []
    driver.rounds()
    assert driver.runs.latest[A].is_complete


def test_a_chunk_that_is_too_large_is_cut(driver: Driver) -> None:
    driver.store.answers = [ChunkEnd.TOO_LARGE]
    driver.rounds()
    assert driver.jobs.calls.count("middle") == 1
    assert sorted(len(load.chunks) for load in driver.runs.latest.values()) == [2, 3]
    assert all(load.is_complete for load in driver.runs.latest.values())


def test_a_table_is_read_while_it_is_planned(driver: Driver) -> None:
    part = PlannedPart((("1",), ("2",)), False, 5)
    driver.jobs.parts = [part, part, part]
    driver.rounds()
    assert all(load.is_complete for load in driver.runs.latest.values())
    assert sum(len(load.chunks) for load in driver.runs.latest.values()) >= 8


def test_another_driver_reads_again_only_what_was_given_out() -> None:
    first = Driver()
    first.store.answers = ["later"] * 1
    first.rounds(4)
    given = first.store.kept[A, 1].chunks
    assert ChunkState.DONE in {chunk.state for chunk in given}
    second = Driver(first.store)
    before = len(second.store.orders)
    second.rounds()
    assert second.runs.latest[A].is_complete
    assert len(second.store.orders) - before < 4


def test_what_could_not_be_stored_is_read_again_from_the_target(driver: Driver) -> None:
    driver.rounds(2)
    for _ in range(4):
        driver.store.refuses = 1
        with pytest.raises(TargetError):
            driver.rounds()
    driver.rounds()
    assert all(load.is_complete for load in driver.runs.latest.values())


def test_rows_that_came_by_debeziums_snapshot_are_not_loaded(driver: Driver) -> None:
    driver.intake.decisions = folded(FIRST[0], decision(2, B, 30, snapshot=True))
    driver.rows.applied = {A_ROWS: Applied(4)}
    driver.rounds()
    assert set(driver.runs.latest) == {B}


def test_nor_are_those_that_the_same_snapshot_is_still_to_bring(driver: Driver) -> None:
    driver.rows.applied = {A_ROWS: Applied(4)}
    driver.rounds()
    assert driver.runs.latest == {}
    # It was interrupted, and now the connector only describes: nobody else would read the rows.
    driver.decide(replace(decision(3, A, 70, snapshot=True), ts_ms=2_000))
    driver.decide(replace(decision(4, B, 70, snapshot=True), ts_ms=2_000))
    driver.rounds(3)
    assert set(driver.runs.latest) == {A, B}


def test_what_a_snapshot_brought_is_taken_back_before_the_load_that_it_ordered(
    driver: Driver,
) -> None:
    driver.rows.applied = {A_ROWS: Applied(4)}
    driver.decide(replace(decision(3, A, 70, snapshot=True), ts_ms=2_000))
    driver.rounds(2)
    assert driver.runs.latest[A].version == 3
    driver.executed |= {key(3, -1)}
    batch = driver.round()
    # The load passes over the rows before its place. They were applied before it was ordered.
    (task,) = [task for task in batch.tasks if task.stream.undoes]
    assert (task.topic, task.end_offset) == (A_ROWS.topic, 4)
    assert [segment.passed_over for segment in task.stream.segments] == [False, False]


def test_a_load_from_before_has_no_row_to_be_taken_back(driver: Driver) -> None:
    driver.intake.settled = False
    driver.executed = set()
    driver.rounds(2)
    assert driver.runs.latest[A].version == 1
    # Its stream goes on to the next place, and nothing of that is applied.
    driver.decide(replace(decision(3, A, 70, snapshot=True), ts_ms=2_000))
    driver.executed = {key(1), key(3, -1)}
    driver.rounds(2)
    driver.rows.applied = {A_ROWS: Applied(4)}
    batch = driver.round()
    (task,) = [task for task in batch.tasks if task.stream.undoes]
    assert task.stream.segments[0].passed_over


def test_what_an_interrupted_snapshot_brought_before_orders_nothing_once_it_is_settled(
    driver: Driver,
) -> None:
    again = (replace(decision(3 + n, s, 70, snapshot=True), ts_ms=9) for n, s in enumerate((A, B)))
    driver.intake.decisions = folded(*FIRST, *again)
    driver.rows.applied = {A_ROWS: Applied(4)}
    driver.executed |= {key(3, -2), key(4, -3)}
    driver.rounds()
    assert driver.runs.latest == {}


def test_a_source_of_debeziums_snapshot_has_no_loads() -> None:
    store = Store()
    runs = LoadRuns(
        replace(pipeline(), sources=(replace(pipeline().sources[0], snapshot="debezium"),)),
        store,
        cast(Any, Jobs()),
        intake=cast(Any, Intake()),
        rows=cast(Any, Rows()),
        epoch=1,
    )
    runs.load()
    runs.order({})
    assert runs.latest == {} and store.kept == {}
    assert not runs.is_loading, "the sink need not look for more than rows"


def test_a_shard_whose_rows_must_be_of_one_moment_is_read_as_a_whole(driver: Driver) -> None:
    driver.routes = (replace(ROUTE, ignore=(RowOperation.DELETE,)),)
    batch = driver.rounds()
    load = driver.runs.latest[A]
    assert (load.kind, len(load.chunks), load.is_complete) == (LoadKind.SNAPSHOT, 1, True)
    assert sorted(o.load.shard for o in driver.store.copies) == [A, B]
    assert driver.store.copies[0].chunk.read_before == at(50)
    assert sorted(driver.store.forgotten) == [A, B]
    # Rows of the stream from before the snapshot are in it.
    (target,) = batch.targets
    assert not target.stops
    assert driver.runs.passed_over == {A: at(50), B: at(50)}
    (task,) = [t for t in batch.tasks if t.stream.shard == A]
    assert [(s.start, s.passed_over) for s in task.stream.segments] == [
        (BEGINNING, True),
        (at(50), False),
    ]


def test_a_target_with_another_unique_key_is_found_when_it_is_there(driver: Driver) -> None:
    driver.executed = set()
    driver.rounds(3)
    driver.store.unique = True
    driver.executed = {key(1)}
    driver.rounds()
    assert {load.kind for load in driver.runs.latest.values()} == {LoadKind.SNAPSHOT}
    assert {o.signals for o in driver.store.orders} == {"shardmerge_p_s1"}
    assert all(load.is_complete for load in driver.runs.latest.values())


def test_a_snapshot_is_not_copied_before_it_is_proven(driver: Driver) -> None:
    driver.store.unique, driver.intake.settled = True, False
    driver.rounds(5)
    assert driver.runs.latest[A].is_read and driver.store.copies == []
    driver.decide(decision(3, A, 40, columns=("id", "c")))
    driver.intake.settled = True
    driver.rounds()
    # It was read behind the schema change, so it is read again.
    assert [o.chunk.base for o in driver.store.orders if o.load.shard == A] == [1, 3]
    assert [o.chunk.base for o in driver.store.copies if o.load.shard == A] == [3]
    assert driver.runs.latest[A].is_complete


def test_a_copy_that_fails_is_tried_again(driver: Driver) -> None:
    driver.store.unique = True
    driver.store.failures = [ChunkFailure(A, 0, "Duplicate entry '5'", code="SM-3101")] * 40
    driver.rounds(9)
    assert "Duplicate entry '5'" in {t.reason for t in driver.runs.troubles.values()}
    driver.store.failures = []
    driver.rounds()
    assert all(load.is_complete for load in driver.runs.latest.values())


def test_a_snapshot_is_not_read_twice_at_once(driver: Driver) -> None:
    driver.store.unique = True
    reading, ends = threading.Event(), threading.Event()
    run, running, most = driver.store.run, list[ShardId](), list[int]()

    def slow(order: ChunkOrder, source: Source, *, small: bool) -> Any:
        running.append(order.load.shard)
        most.append(running.count(order.load.shard))
        reading.set()
        assert ends.wait(5)
        running.remove(order.load.shard)
        # The target has planned it again meanwhile.
        is_wanted = driver.store.kept[order.load.shard, order.load.version].accepts(
            0, order.chunk.base
        )
        if not is_wanted:
            return ChunkResult(order.load.shard, 0, ChunkEnd.REFUSED)
        return run(order, source, small=small)

    driver.store.run = slow  # type: ignore[method-assign]
    while not reading.is_set():
        driver.round_without_waiting()
    # The state is read again, as after an error of the target.
    driver.runs.load()
    for _ in range(3):
        driver.round_without_waiting()
    ends.set()
    driver.rounds()
    assert set(most) == {1}
    assert all(load.is_complete for load in driver.runs.latest.values())


def test_snapshots_end_with_the_sink(driver: Driver) -> None:
    driver.rounds(2)
    driver.runs.stop()
    assert driver.store.is_stopped


def test_the_target_is_asked_for_its_keys_once(driver: Driver) -> None:
    asked: list[TargetTable] = []

    def is_asked(target: TargetTable) -> bool:
        asked.append(target)
        return False

    driver.store.has_other_unique_key = is_asked  # type: ignore[method-assign]
    driver.store.answers = ["away"] * 6
    driver.rounds()
    assert asked == [TARGET]


def test_a_copy_that_can_never_succeed_ends_the_sink(driver: Driver) -> None:
    driver.store.unique = True
    driver.store.failures = [ChunkFailure(A, 0, "no user", final=True)]
    with pytest.raises(ContractError, match="no user"):
        driver.rounds()


def test_another_driver_goes_on_copying_and_tidies_up() -> None:
    first = Driver()
    first.store.unique = True
    first.store.failures = [ChunkFailure(A, 0, "away")] * 40
    first.rounds(9)
    first.store.failures = []
    assert first.store.forgotten == []
    first.store.left = [A, B]
    second = Driver(first.store)
    second.rounds()
    assert len([o for o in second.store.orders if o.load.shard == A]) == 1
    assert second.runs.latest[A].is_complete
    assert sorted(second.store.forgotten) == [A, B]
    # A later driver, for a source that Debezium reads now, still skips what the snapshot has.
    third = Driver(first.store, snapshot="debezium")
    assert third.runs.passed_over == {A: at(50), B: at(50)}


def test_a_table_in_parts_whose_route_begins_to_ignore_an_operation_waits(driver: Driver) -> None:
    driver.intake.settled = False
    driver.store.answers = ["away"] * 3
    driver.rounds(5)
    driver.routes = (replace(ROUTE, ignore=(RowOperation.DELETE,)),)
    driver.store.answers = ["away"] * 9
    driver.rounds(2)
    assert driver.runs.latest[A].kind is LoadKind.CHUNKS
    assert driver.runs.troubles[A].code == "SM-1616"


def test_a_paused_shard_is_not_read(driver: Driver) -> None:
    driver.decide(replace(decision(3, A, 0), shard=None, pauses=(A,)))
    driver.rounds()
    assert {o.load.shard for o in driver.store.orders} == {B}


def test_a_connector_that_describes_its_tables_anew_orders_another_load(driver: Driver) -> None:
    driver.rounds()
    driver.decide(replace(decision(3, A, 70, snapshot=True), ts_ms=2_000))
    batch = driver.rounds(3)
    # The earlier rows have to go first.
    (restart,) = batch.restarts
    assert restart.shard == A
    assert driver.runs.latest[A].version == 3
    assert len(driver.store.orders) == 4
    driver.executed |= {key(3, -2)}
    driver.jobs.end = at(200)
    driver.rounds()
    assert driver.runs.latest[A].is_complete
    assert [o.load.version for o in driver.store.orders].count(3) == 2


def ordered(version: int = 3) -> Decision:
    """What answers ``shardmerge load again``."""
    fixup = Fixup(A, FixupKind.LOAD, (), "", "SM-1642")
    told = replace(decision(version, A, 0), shard=None)
    return replace(told, fixups=(fixup,), reloads=(Reload(A, at(10)),))


@pytest.mark.parametrize("by_debezium", [False, True])
def test_an_operator_orders_a_load_wherever_the_stream_stands(by_debezium: bool) -> None:
    driver = Driver()
    if by_debezium:
        driver.rows.applied = {A_ROWS: Applied(4, at(60)), B_ROWS: Applied(4, at(60))}
    driver.rounds()
    known, commits = len(driver.store.orders), driver.jobs.calls.count("commit")
    driver.rows.applied = {A_ROWS: Applied(8, at(90)), B_ROWS: Applied(8, at(90))}

    driver.decide(ordered())
    batch = driver.rounds(3)

    # The rows have to go first. Meanwhile the shard's stream stands where it is.
    (restart,) = batch.restarts
    assert (restart.shard, restart.gate.loads) == (A, True)
    assert {task.place for task in batch.tasks} == {B_ROWS}
    assert len(driver.store.orders) == known
    driver.executed |= {key(3, -2)}
    driver.jobs.end = at(200)
    batch = driver.rounds()
    assert driver.runs.latest[A].is_complete
    assert [(o.load.shard, o.load.version) for o in driver.store.orders[known:]] == [(A, 3)] * 2
    # The server has shown that it has committed what the stream had passed by then.
    assert driver.jobs.calls.count("commit") > commits
    assert {task.place for task in batch.tasks} == {A_ROWS, B_ROWS}


def test_an_order_reaches_a_load_that_is_under_way() -> None:
    driver = Driver()
    away = StackError("no server", code="SM-4401")
    driver.store.answers = [ChunkEnd.DONE, ChunkEnd.DONE, *[away] * 9]
    driver.rounds(3)
    driver.decide(ordered())
    driver.rounds(3)
    load = driver.runs.latest[A]
    assert (load.version, load.base) == (1, 3)
    assert {chunk.state for chunk in load.chunks} <= {ChunkState.PLANNED}


def test_as_few_rows_are_read_as_the_limit_says() -> None:
    driver = Driver(load_connections=1, load_rows_per_s=3)
    driver.rounds(4)
    assert set(driver.jobs.asked) == {6}
    assert max(len(load.running) for load in driver.runs.latest.values()) <= 1
    driver.rounds(20)
    assert all(load.is_complete for load in driver.runs.latest.values())


def test_a_shard_that_is_taken_out_holds_nothing_up_and_is_loaded_when_it_joins_again(
    driver: Driver,
) -> None:
    driver.round()
    driver.decide(replace(decision(3, A, 0), shard=None, leaves=(A,)))
    batch = driver.rounds()
    assert A not in batch.targets[0].stops
    assert driver.rows.loads[A].position is None
    assert A not in driver.runs.latest
    driver.decide(decision(4, A, 70, columns=("id", "c")))
    driver.rounds()
    load = driver.runs.latest[A]
    assert (load.is_complete, load.base) == (True, 4)


def test_loads_of_a_source_that_debezium_reads_now_only_tell_which_rows_there_are() -> None:
    first = Driver()
    first.rounds(4)
    second = Driver(first.store, snapshot="debezium")
    batch = second.rounds()
    assert second.runs.latest == {}
    assert not batch.targets[0].stops
    assert second.rows.loads[A].has_rows
