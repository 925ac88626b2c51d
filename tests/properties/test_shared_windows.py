"""Shards of shared topics that have no rows stand at one offset, and no row is lost or doubled.

The intake, the applied rows and the plan are the real ones; Kafka and the target are played. Rows,
open transactions, new shards, holds, statements, rows that are taken back, failures, answers
that do not come and crashes come in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shardmerge.schemas.model.errors import StackError, TargetError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.settings import Connect, Kafka, Pipeline, Source, Target
from shardmerge.schemas.records.decisions import Decision
from shardmerge.spark_sink.barrier.decisions import StatementKey
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.driver.applied_rows import AppliedRows
from shardmerge.spark_sink.driver.rows_ahead import RowsAhead
from shardmerge.spark_sink.kafka.intake import Intake
from shardmerge.spark_sink.kafka.row_topics import RowTopic
from shardmerge.spark_sink.kafka.windows.window import Window
from shardmerge.spark_sink.planning.plan import plan
from shardmerge.spark_sink.planning.ranges import Advance, RangeResult, RangeTask
from shardmerge.spark_sink.planning.sink_state import SinkState
from tests.unit.spark_sink.decided import CONTRACTING, TARGET, at, decision, statement

SHARDS = tuple(
    ShardId(source, "app", f"t{number}") for number in range(3) for source in ("s1", "s2")
)
SOURCES = tuple(Source(name, "h", 1, "u", "p", n) for n, name in enumerate(("s1", "s2"), 1))
PIPELINE = Pipeline(
    "p", Kafka("k:9092"), Connect("http://c:8083"), SOURCES,
    (RoutingRule(".*", "app", "t.*", TARGET.database, TARGET.table, row_topic="all"),),
    Target("h", 1, "u", "p"),
)  # fmt: skip
WHOLE = (Partition("all", 0), Partition("all", 1))


class Row(NamedTuple):
    """A row, or a commit marker (``shard`` is None)."""

    shard: ShardId | None
    position: SourcePosition


class World:
    """Kafka, the target, and one sink at a time."""

    def __init__(self, few: int = 1) -> None:
        self.few = few
        self.logs: dict[Partition, list[Row]] = {whole: [] for whole in WHOLE}
        self.stable = dict.fromkeys(WHOLE, 0)
        self.stored: dict[Partition, int] = {}
        self.applied: dict[Partition, list[int]] = {}
        self.decisions: list[Decision] = []
        self.executed: set[StatementKey] = set()
        self.clock = {"s1": 0, "s2": 0}
        self.change_end = {"s1": 100, "s2": 100}
        self.now = 0.0
        self.arrived: set[Partition] = set()
        self.seen: dict[Partition, int] = {}
        self.fails = False
        self.known: set[ShardId] = set()
        self.held: set[ShardId] = set()
        self.meanwhile: list[tuple[ShardId, int]] = []
        self.fails_at = self.answers = 0
        self.loses_answer = False
        self.start()

    # --- what happens

    def do(self, name: str, *told: Any) -> None:
        if name in ("rows", "write", "later", "back") and told[0] not in self.known:
            return
        actions: dict[str, Callable[..., None]] = {
            "rows": self.apply_row,
            "write": self.write,
            "commit": self.commit,
            "later": self.write_later,
            "round": self.round,
            "decide": self.change,
            "back": self.take_back,
            "delay": self.delay_changes,
            "read": self.read_changes,
            "store": self.store,
            "fail": self.fail,
            "away": self.go_away,
            "lose": self.lose_answer,
            "crash": self.start,
        }
        actions[name](*told)

    def apply_row(self, shard: ShardId, number: int) -> None:
        self.write(shard, number)
        self.commit()
        self.round()

    def change(self, shard: ShardId, what: str) -> None:
        self.known.add(shard)
        if shard in self.held:
            self.held.discard(shard)
            self.decide(shard, releases=(shard,))
        elif what == "hold":
            self.held.add(shard)
            self.decide(shard, hold=True)
        else:
            dropping = (statement(CONTRACTING, "a"),)
            self.decide(shard, statements=dropping if what == "drop" else ())

    def delay_changes(self, source: str) -> None:
        self.change_end[source] += 1

    def store(self) -> None:
        self.now += 2
        self.rows.renew()
        with suppress(TargetError):
            self.rows.store_idle(self.now)

    def fail(self) -> None:
        self.fails = True

    def go_away(self, answers: int) -> None:
        """Kafka does not give one of the next answers about ends and windows."""
        self.answers, self.fails_at = 0, answers

    def lose_answer(self) -> None:
        """The target moves offsets, and its answer is lost."""
        self.loses_answer = True

    # --- what others do

    def position(self, shard: ShardId) -> SourcePosition:
        self.clock[shard.source] += 10
        return at(self.clock[shard.source])

    def decide(self, shard: ShardId, **more: Any) -> None:
        offset = sum(known.id.source == shard.source for known in self.decisions)
        statements = more.pop("statements", ())
        position = self.position(shard)
        record = decision(
            len(self.decisions) + 1, shard, position.pos, *statements, offset=offset, **more
        )
        self.decisions.append(record)
        self._show(record)

    def write(self, shard: ShardId, number: int) -> None:
        self.logs[WHOLE[number]].append(Row(shard, self.position(shard)))

    def write_later(self, shard: ShardId, number: int) -> None:
        """The row comes when the high watermarks are told, and is committed at once."""
        self.meanwhile.append((shard, number))

    def commit(self) -> None:
        for whole, log in self.logs.items():
            if len(log) > self.stable[whole]:
                self.arrived.add(whole)
                self.seen[whole] = len(log)
                log.append(Row(None, at(0)))
                self.stable[whole] = len(log)

    def read_changes(self, source: str) -> None:
        """The sink has read a source's schema changes to their end: its barriers settle."""
        self.intake.barriers.tails[source].reached(self.change_end[source])

    # --- the sink

    def start(self) -> None:
        """A process that begins, with what is stored."""
        tail = SimpleNamespace(
            is_asleep=True, places=dict, wake=lambda: None, read=lambda timeout_s: []
        )
        self.intake = Intake(
            PIPELINE, cast(Any, self), cast(Any, tail), arrivals=cast(Any, self),
            read_windows=self.read_windows, few=self.few,
        )  # fmt: skip
        for record in self.decisions:
            self._show(record)
        control = SimpleNamespace(offsets=lambda: dict(self.stored), rows=dict, move=self.move)
        self.rows = AppliedRows(self.intake, cast(Any, control), epoch=1)
        self.rows.load()

    def _show(self, record: Decision) -> None:
        self.intake.decisions.add(record)
        tail = self.intake.barriers.tails[record.id.source]
        tail.record(record.id.offset)
        tail.reached(100)

    def round(self, is_calm: bool = True, most: int = 1000) -> None:
        with suppress(StackError):
            self.try_round(is_calm, most)

    def try_round(self, is_calm: bool, most: int) -> None:
        self.rows.renew()
        self.now += 0.3
        self.intake.read(1.0, idle=True)
        ahead = RowsAhead(self.intake, self.settle)
        self.intake.observe(is_calm=is_calm, ahead=is_calm)
        self.intake.described.take_news()
        self.settle()
        state = self.state()
        planned = ahead.plan(state, most)
        batch = planned[0] if planned else plan(self.intake.decisions, self.state(), most)
        if not ahead.is_safe():
            return
        if planned:
            assert plan(self.intake.decisions, self.state(), most) == batch, "Kafka has answered"
        for target in batch.targets:
            for ready in target.ready:
                self.check_ready(ready.key)
                self.executed.add(ready.key)
        for task in batch.tasks:
            if self.fails:
                break
            self.rows.take(self.apply(task))
        if self.fails:
            self.fails = False
            self.rows.load()

    def settle(self) -> None:
        self.intake.settle()
        self.rows.look()

    def state(self) -> SinkState:
        return SinkState(
            executed={TARGET: self.executed},
            rows=self.rows.progress,
            safe_ends=self.intake.barriers.safe_ends,
            unapplied=self.rows.unapplied,
        )

    def check_ready(self, key: StatementKey) -> None:
        """Every row before a statement that drops something is applied."""
        gate = self.decisions[key.version - 1]
        assert gate.shard is not None
        for whole in WHOLE:
            part = Partition(*whole[:2], gate.shard)
            for offset in self.committed(part):
                if self.logs[whole][offset].position < gate.position:
                    assert offset in self.applied.get(part, [])

    def apply(self, task: RangeTask) -> RangeResult:
        part, log = task.place, self.logs[task.place.whole]
        assert task.end_offset <= self.stable[part.whole]
        next_offset, position = task.end_offset, None
        for offset in range(task.start_offset, task.end_offset):
            row = log[offset]
            if row.shard != part.shard:
                continue
            if task.stream.stop is not None and row.position >= task.stream.stop:
                next_offset, position = offset, row.position
                break
            assert offset not in self.applied.setdefault(part, [])
            self.applied[part].append(offset)
        stored = task.start_offset if task.stored_offset is None else task.stored_offset
        self._set(part, stored, next_offset)
        return RangeResult(
            task.topic, task.partition, task.start_offset, next_offset, position, 0, 0, 0,
            part=task.part,
        )  # fmt: skip

    def take_back(self, shard: ShardId, number: int, to: int) -> None:
        self.rows.renew()
        part = Partition("all", number, shard)
        start = self.rows.progress.at(part).offset
        if to < start:
            self.applied[part] = [o for o in self.applied.get(part, []) if o < to]
            with suppress(TargetError):
                self.rows.move([Advance(*part[:2], start, to, TARGET, 0, 0, 0, part.shard)])

    # --- the target

    def move(self, epoch: int, moves: Iterable[Advance], target: object = None) -> None:
        for move in moves:
            self._set(move.place, move.start_offset, move.next_offset)
        if self.loses_answer:
            self.loses_answer = False
            raise TargetError("Lost connection", retryable=True)

    def _set(self, part: Partition, before: int, after: int) -> None:
        assert self.stored.get(part, 0) == before, "another writer"
        self.stored[part] = after

    # --- Kafka

    def _answer(self) -> None:
        self.answers += 1
        if self.answers == self.fails_at:
            raise StackError("Kafka does not answer")

    def partitions(self, topics: Collection[str]) -> dict[str, int]:
        return {"all": 2} if "all" in topics else {}

    def described(self, topics: Collection[str]) -> dict[str, RowTopic]:
        return {topic: RowTopic(topic, 2) for topic in topics if topic == "all"}

    def high_watermarks(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        self._answer()
        self.now += 0.02
        other, asked = {"p.ddl": 0, **self.change_end}, list(partitions)
        told = {p: len(self.logs[p]) if p in self.logs else other[p.topic] for p in asked}
        if any(p in self.logs for p in asked):
            rows, self.meanwhile = self.meanwhile, []
            for row in rows:
                self.write(*row)
                self.commit()
        return told

    def stable_ends(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        self._answer()
        return {p: self.stable[p] for p in partitions}

    def both_ends(
        self, partitions: Iterable[Partition], readable: Iterable[Partition]
    ) -> tuple[dict[Partition, int], dict[Partition, int]]:
        return self.high_watermarks(partitions), self.stable_ends(readable)

    def high_watermarks_and_topics(
        self, partitions: Iterable[Partition], topics: Collection[str]
    ) -> tuple[dict[Partition, int], dict[str, RowTopic]]:
        return self.high_watermarks(partitions), self.described(topics)

    def begin_asking(
        self, partitions: Iterable[Partition], topics: Collection[str]
    ) -> Callable[[], tuple[dict[Partition, int], dict[str, RowTopic]]]:
        return lambda: self.high_watermarks_and_topics(partitions, topics)

    def read_windows(self, asked: Mapping[Partition, tuple[int, int]]) -> dict[Partition, Window]:
        """Windows of more than six offsets are too large."""
        self._answer()
        found = {}
        for whole, (start, end) in asked.items():
            shards = {row.shard for row in self.logs[whole][start:end] if row.shard is not None}
            if end - start <= 6:
                names = {(shard.source, shard.database, shard.table) for shard in shards}
                found[whole] = Window(end, names)
        return found

    # --- arrivals

    rows_of: Mapping[Partition, int] = {}

    def follow(self, rows: object, own: object) -> bool:
        return True

    def follow_also(self, ends: object) -> None:
        pass

    def wait(self, timeout_s: float, *, rows: bool) -> bool:
        self.rows_of, self.seen = self.seen, {}
        return False

    def take_found(self, known: object) -> set[Partition]:
        found, self.arrived = self.arrived, set()
        return found

    def close(self) -> None:
        pass

    # --- the end

    def committed(self, part: Partition) -> list[int]:
        log, end = self.logs[part.whole], self.stable[part.whole]
        return [offset for offset in range(end) if log[offset].shard == part.shard]


ACTIONS = st.one_of(
    st.tuples(st.just("rows"), st.sampled_from(SHARDS), st.integers(0, 1)),
    st.tuples(st.just("rows"), st.sampled_from(SHARDS), st.integers(0, 1)),
    st.tuples(st.just("write"), st.sampled_from(SHARDS), st.integers(0, 1)),
    st.tuples(st.just("commit")),
    st.tuples(st.just("later"), st.sampled_from(SHARDS), st.integers(0, 1)),
    st.tuples(st.just("round"), st.booleans(), st.sampled_from((1, 3, 1000))),
    st.tuples(st.just("round"), st.just(True), st.just(1000)),
    st.tuples(
        st.just("decide"), st.sampled_from(SHARDS), st.sampled_from("noop hold drop".split())
    ),
    st.tuples(st.just("back"), st.sampled_from(SHARDS), st.integers(0, 1), st.integers(0, 30)),
    st.tuples(st.just("delay"), st.sampled_from(("s1", "s2"))),
    st.tuples(st.just("read"), st.sampled_from(("s1", "s2"))),
    st.tuples(st.just("store")),
    st.tuples(st.just("fail")),
    st.tuples(st.just("away"), st.integers(1, 5)),
    st.tuples(st.just("lose")),
    st.tuples(st.just("crash")),
)


S1, S2 = SHARDS[0], SHARDS[-1]


# A transaction ends between the two readings of a round, and its shard was idle.
@example([
    ("delay", "s1"), ("decide", S2, "noop"), ("rows", S1, 0), ("write", S2, 0),
    ("round", True, 1000), ("later", S1, 0), ("back", S2, 0, 0), ("round", True, 1000),
])  # fmt: skip
@given(st.lists(ACTIONS, min_size=20, max_size=80))
def test_no_row_of_a_shared_topic_is_lost_or_doubled(actions: list[tuple[Any, ...]]) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("shardmerge.spark_sink.planning.partial_looks.FEW", 1)
        world = World()
        patched.setattr("time.monotonic", lambda: world.now)
        for shard in SHARDS[:4]:
            world.change(shard, "none")
        world.write(SHARDS[0], 0)
        world.apply_row(SHARDS[1], 1)
        for action in actions:
            world.do(*action)
        world.commit()
        world.fails_at, world.loses_answer = 0, False
        for shard in sorted(world.held):
            world.change(shard, "release")
        for source in ("s1", "s2"):
            world.read_changes(source)
        for _ in range(12):
            world.round(is_calm=False)
            world.now += 5
        parts = [Partition(*whole[:2], shard) for whole in WHOLE for shard in world.known]
        assert {p: world.applied.get(p, []) for p in parts} == {
            p: world.committed(p) for p in parts
        }
        world.store()
        ends = {part: world.stable[part.whole] for part in parts}
        assert {part: world.rows.progress.at(part).offset for part in parts} == ends
        assert {part: world.stored.get(part, 0) for part in parts} == ends


def test_a_row_that_comes_while_a_topic_gets_its_base_is_not_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(few=5)
    monkeypatch.setattr("time.monotonic", lambda: world.now)
    for shard in SHARDS[:4]:
        world.change(shard, "none")
    world.delay_changes("s1")
    world.apply_row(S1, 0)
    assert world.intake.barriers.settling == {"s1"}
    world.change(S2, "none")
    world.read_changes("s1")
    world.write_later(S1, 0)
    world.round(is_calm=False)
    part = Partition(*WHOLE[0][:2], S1)
    assert world.intake.idle.bases[WHOLE[0]] == 4, "the end that was read last"
    assert part not in world.intake.idle
    world.round(is_calm=False)
    assert world.applied[part] == world.committed(part) == [0, 2]
