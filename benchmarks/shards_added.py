"""The work of the sink's driver while shards are added, without any server.

Usage: ``python -m benchmarks.shards_added [--shards 1000,3000,10000] [--topics
shard|shared] [--each 5] [--late 200] [--batches 50] [--profile
added|idle]``

The driver is the real one; Kafka and the target are played. The sources have described all tables
at the beginning, as Debezium's snapshots do. Then each round shows ``--each`` more decisions, and
``--late`` decisions after a shard's own its row topic exists, with one row.

Given are the processor seconds of the driver's Python, how often it asked Kafka, and about how many
topics and partitions in all: what Kafka's client and the brokers do grows with these. ``model`` is
what the client alone needs for that, by the figures of ``docs/explanation/scale.md``. The driver's
clock goes on by as much, so the driver asks less often if an answer takes long. ``growth`` is the
exponent between the last two numbers of shards.

``idle, ms a second``: what the driver needs for each second in which nothing comes afterwards, mean
of a minute. ``--profile idle`` tells where that goes, ``--profile added`` the same of the start.

``a batch, ms`` are the driver's processor milliseconds for one of ``--batches`` batches that come
when all shards are there, each with a row of 1% of them. For a shared topic the reference is there,
too: the same with all shards of the topic moved in each batch.
"""

from __future__ import annotations

import argparse
import cProfile
import math
import pstats
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast
from unittest.mock import patch

from confluent_kafka import TopicPartition

from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import Column
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.settings import Connect, Kafka, Pipeline, Sink, Source, Target
from shardmerge.schemas.pipeline.topics import RowTopics
from shardmerge.schemas.records import codec
from shardmerge.schemas.records.decisions import (
    Binding,
    Decision,
    Outcome,
    StatementKind,
    TargetStatement,
)
from shardmerge.schemas.records.schema_changes import ChangeId
from shardmerge.spark_sink.barrier.closing import Marks
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.driver.loop import Driver
from shardmerge.spark_sink.driver.statement_runs import StatementRunner
from shardmerge.spark_sink.kafka.arrivals import Arrivals
from shardmerge.spark_sink.kafka.intake import Intake, tailed_topics
from shardmerge.spark_sink.kafka.publisher import ProgressPublisher
from shardmerge.spark_sink.kafka.row_topics import RowTopic
from shardmerge.spark_sink.kafka.topic_tail import TailEnd, TailRecord
from shardmerge.spark_sink.kafka.waits import Waits
from shardmerge.spark_sink.kafka.windows.window import Window
from shardmerge.spark_sink.planning.ranges import RangeResult, RangeTask
from shardmerge.spark_sink.targets.interface import JournalEntry

SOURCES = ("s1", "s2")
TARGET = TargetTable("merged", "tbl")
SHARED = "merged.rows"
DDL = "p.ddl"
COSTS_S = {"ends": 21e-6, "listed": 6e-6, "described": 40e-6}
"""Processor seconds of Kafka's client for the answer about one partition or topic."""
PACE_S = 0.05
"""Seconds of the driver's clock from one round to the next, besides those that are spent."""
BATCH = "a batch, ms"
IDLE = "idle, ms a second"
IDLE_S, WAIT_S = 60.0, 0.5
MOST_ROUNDS = 10
"""So many rounds for each shard are too many."""


class World:
    """Kafka and the target as the driver sees them; each part plays several of its interfaces.

    Attributes:
        asked: What the driver asked for, and about how many.
        model_s: Seconds of Kafka's client, by ``COSTS_S``.
        slept_s: Seconds that the driver has waited: they are not spent.
    """

    def __init__(self, count: int, *, shared: bool) -> None:
        self.shards = [
            ShardId(SOURCES[n * 2 // count], f"db{n % 100:02}", f"t{n}") for n in range(count)
        ]
        rules = [RoutingRule(".*", r"db\d+", r"t\d+", *_names(), row_topic=SHARED * shared)]
        self.pipeline = Pipeline(
            "p",
            Kafka("127.0.0.1:1"),
            Connect("http://127.0.0.1:1"),
            tuple(Source(name, "h", 1, "u", "p", n) for n, name in enumerate(SOURCES, 1)),
            tuple(rules),
            Target("h", 1, "u", "p"),
            Sink(drift_interval_s=0),
        )
        topic_of = RowTopics(self.pipeline.routes).topic_of
        self.topics = [topic_of(shard) for shard in self.shards]
        self.ends: Counter[str] = Counter()
        self.asked: Counter[str] = Counter()
        self.model_s = self.slept_s = 0.0
        self.arrived: deque[str] = deque()
        self.rows: dict[int, ShardId] = {}
        """Offset in the shared topic → the shard of the row there."""
        self.applied: set[ShardId] = set()
        self.decided = 0
        self.offsets_of = [n - count // 2 * (n >= (count + 1) // 2) for n in range(count)]

    def now(self) -> float:
        """Monotonic seconds, with those of the model."""
        return time.process_time() + self.model_s + self.slept_s

    def ask(self, what: str, about: int) -> None:
        """Count a question, and let the model's time pass."""
        self.asked[f"{what}: questions"] += 1
        self.asked[what] += about
        self.model_s += COSTS_S[what] * about

    def decision(self, number: int) -> bytes:
        """The decision about a shard."""
        shard = self.shards[number]
        statements: tuple[TargetStatement, ...] = ()
        if number == 0:
            binds = tuple(Binding(f"{name}#1", name) for name in ("id", "a"))
            statements = (
                TargetStatement("CREATE TABLE", StatementKind.EXPANDING, "", ("table",), binds),
            )
        change = ChangeId(shard.source, self.offsets_of[number])
        columns = tuple(
            ShardColumn(f"{name}#1", Column(name, ColumnType("int"))) for name in ("id", "a")
        )
        return codec.encode(
            Decision(
                change, TARGET, number + 1, shard,
                SourcePosition(0, "binlog.000001", 4, 0),
                Outcome.EMIT if statements else Outcome.NOOP, statements,
                columns=columns, key=("id",), snapshot=True, ts_ms=1,
            )
        )  # fmt: skip

    def row_comes(self, number: int) -> None:
        """A shard's first row: its topic exists by that."""
        topic = self.topics[number]
        self.rows[self.ends[topic]] = self.shards[number]
        self.ends[topic] += 2
        self.arrived.append(topic)


def _names() -> tuple[str, str]:
    return TARGET.database, TARGET.table


class _Offsets:
    """An ``OffsetReader``."""

    def __init__(self, world: World) -> None:
        self._world = world

    def partitions(self, topics: Collection[str]) -> dict[str, int]:
        self._world.ask("listed", len(self._world.ends))
        return {topic: 1 for topic in topics if topic in self._world.ends}

    def described(self, topics: Collection[str]) -> dict[str, RowTopic]:
        self._world.ask("described", len(topics))
        return {topic: RowTopic(topic, 1) for topic in topics if topic in self._world.ends}

    def high_watermarks(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        named = tuple(partitions)
        self._world.ask("ends", len(named))
        world = self._world
        own = {DDL: world.decided} | dict.fromkeys(SOURCES, len(world.shards))
        return {p: own[p.topic] if p.topic in own else world.ends[p.topic] for p in named}

    stable_ends = high_watermarks

    def both_ends(
        self, partitions: Iterable[Partition], readable: Iterable[Partition]
    ) -> tuple[dict[Partition, int], dict[Partition, int]]:
        return self.high_watermarks(partitions), self.high_watermarks(readable)

    def high_watermarks_and_topics(
        self, partitions: Iterable[Partition], topics: Collection[str]
    ) -> tuple[dict[Partition, int], dict[str, RowTopic]]:
        return self.high_watermarks(partitions), self.described(topics)

    def begin_asking(
        self, partitions: Iterable[Partition], topics: Collection[str]
    ) -> Callable[[], tuple[dict[Partition, int], dict[str, RowTopic]]]:
        return lambda: self.high_watermarks_and_topics(partitions, topics)


class _Tail:
    """A ``TopicTail`` that never sleeps."""

    is_asleep = False
    silent_s = 0.0

    def __init__(self, world: World) -> None:
        self._world = world
        self.events: list[TailRecord | TailEnd] = []
        per_source = Counter(shard.source for shard in world.shards)
        for source, count in per_source.items():
            self.events += [TailRecord(source, offset, b"{}") for offset in range(count)]
            self.events.append(TailEnd(source, len(world.shards)))
        self._places = dict.fromkeys(tailed_topics(world.pipeline), 0)

    def places(self) -> Mapping[str, int]:
        return self._places

    def read(self, timeout_s: float) -> Iterator[TailRecord | TailEnd]:
        events, self.events = self.events, []
        if not events:
            self._world.slept_s += timeout_s
        yield from events


class _Message:
    """A row that has arrived."""

    def __init__(self, topic: str) -> None:
        self._topic = topic

    def topic(self) -> str:
        return self._topic

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return 0

    def error(self) -> None:
        return None


class _Consumer:
    """Of ``Arrivals``."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._followed: set[str] = set()

    def incremental_assign(self, partitions: Sequence[TopicPartition]) -> None:
        self._world.asked["followed: questions"] += 1
        self._world.asked["followed"] += len(partitions)
        added = {p.topic for p in partitions}
        assert not added & self._followed, "Kafka's client refuses that"
        self._followed |= added

    def incremental_unassign(self, partitions: Sequence[TopicPartition]) -> None:
        self._followed -= {p.topic for p in partitions}

    def poll(self, timeout_s: float) -> _Message | None:
        while self._world.arrived:
            topic = self._world.arrived.popleft()
            if topic in self._followed:
                return _Message(topic)
        self._world.slept_s += timeout_s
        return None

    def consume(self, count: int, timeout: float) -> Sequence[_Message]:
        return ()

    def close(self) -> None:
        pass


class _State:
    """The target: epoch, offsets, journal, batches, and the producer of progress records."""

    orders_partitions = False

    def __init__(self, world: World) -> None:
        self._world = world

    def offsets(self) -> dict[Partition, int]:
        return {}

    rows = row_topics = closed_targets = load = offsets

    def move(self, *told: object) -> None:
        self._world.asked["stored offsets: transactions"] += 1

    def marks(self) -> Marks:
        return Marks({}, 0)

    def keep_row_topics(self, epoch: int, topics: Mapping[str, RowTopic]) -> None:
        self._world.asked["stored topics"] += len(topics)

    def execute(self, *told: object) -> JournalEntry:
        return JournalEntry("done")

    def close(self) -> None:
        pass

    def stage(self, target: TargetTable) -> str:
        return ""

    def bound(self, records: int) -> int:
        return records

    def expect(self, *told: object) -> None:
        pass

    def read_windows(self, asked: Mapping[Partition, tuple[int, int]]) -> dict[Partition, Window]:
        rows, found = self._world.rows, dict[Partition, Window]()
        for whole, (start, end) in asked.items():
            of = [rows[offset] for offset in range(start, end) if offset in rows]
            found[whole] = Window(end, {(s.source, s.database, s.table) for s in of})
        return found

    def run(self, tasks: Sequence[RangeTask], is_safe: Callable[[], bool]) -> Iterator[RangeResult]:
        if not is_safe():
            return
        self._world.asked["tasks"] += len(tasks)
        for task in tasks:
            self._world.applied.add(task.stream.shard)
            yield RangeResult(
                task.topic, task.partition, task.start_offset, task.end_offset, None, 1, 1, 0,
                part=task.part,
            )  # fmt: skip

    def poll(self, timeout_s: float) -> int:
        return 0

    def produce(self, *told: object, **more: object) -> None:
        self._world.asked["progress records"] += 1


def driver_of(world: World, tail: _Tail, *, windows: bool = True) -> Driver:
    """The driver of a world; ``windows``: whether it reads what a shared topic got."""
    state, offsets = cast(Any, _State(world)), cast(Any, _Offsets(world))
    kafka = world.pipeline.kafka
    arrivals = Arrivals(kafka, frozenset(tailed_topics(world.pipeline)))
    with patch("shardmerge.spark_sink.kafka.publisher.producer", lambda *told: state):
        publisher = ProgressPublisher(kafka, "p.progress")
    return Driver(
        world.pipeline,
        intake=Intake(
            world.pipeline,
            offsets,
            cast(Any, tail),
            arrivals=arrivals,
            read_windows=state.read_windows if windows else None,
        ),
        control=state,
        journal=state,
        statements=StatementRunner(lambda: state, 1),
        runner=state,
        publisher=publisher,
        epoch=1,
    )


def batch_ms(driver: Driver, world: World, count: int) -> float:
    """Processor milliseconds of a batch with rows of 1% of the shards."""
    some = max(1, len(world.shards) // 100)
    used = 0.0
    for number in range(count):
        for row in range(some):
            world.row_comes((number * some + row) % len(world.shards))
        began, moved = time.process_time(), True
        while moved:
            moved = driver.step(0.0, idle=True)
        used += time.process_time() - began
        world.slept_s += PACE_S
    return 1_000 * used / count


def idle_ms(driver: Driver, world: World) -> float:
    """Processor milliseconds of the driver's Python for a second in which nothing comes."""
    began, since = time.process_time(), world.now()
    while world.now() - since < IDLE_S:
        driver.step(WAIT_S, idle=True)
    return 1_000 * (time.process_time() - began) / IDLE_S


def measure(
    count: int,
    each: int,
    late: int,
    batches: int,
    *,
    shared: bool,
    windows: bool = True,
    profile: str = "",
) -> dict[str, float]:
    """The figures of one number of shards."""
    world = World(count, shared=shared)
    tail = _Tail(world)
    decisions = [world.decision(number) for number in range(count)]
    profiler = cProfile.Profile()
    with (
        patch("shardmerge.spark_sink.kafka.arrivals._consumer", lambda *told: _Consumer(world)),
        patch("time.monotonic", world.now),
        patch.object(Waits.__init__, "__defaults__", (world.now,)),
    ):
        driver = driver_of(world, tail, windows=windows)
        driver.load()
        began, rounds, rows = time.process_time(), 0, 0
        if profile == "added":
            profiler.enable()
        moved = True
        while moved or len(world.applied) < count:
            assert rounds < MOST_ROUNDS * count, f"{len(world.applied)} shards have their rows"
            for number in range(world.decided, min(count, world.decided + each)):
                tail.events.append(TailRecord(DDL, number, decisions[number]))
                world.decided += 1
            if tail.events:
                tail.events.append(TailEnd(DDL, world.decided))
            came = max(0, rounds * each - late)
            for number in range(rows, min(count, came)):
                world.row_comes(number)
                rows = number + 1
            moved = driver.step(0.0 if moved else 0.2, idle=not moved)
            rounds += 1
            world.slept_s += PACE_S
        profiler.disable()
        used = time.process_time() - began
        asked, model_s = dict(world.asked), world.model_s
        batch = batch_ms(driver, world, batches)
        if profile == "idle":
            profiler.enable()
        idle = idle_ms(driver, world)
        profiler.disable()
        driver.stop()
    if profile:
        pstats.Stats(profiler, stream=sys.stderr).sort_stats("tottime").print_stats(30)
    figures = {"rounds": float(rounds), "Python, s": used, "model, s": model_s}
    figures |= {name: float(n) for name, n in sorted(asked.items())}
    return figures | {BATCH: batch, IDLE: idle}


def main() -> int:
    """Measure each number of shards, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shards", default="1000,3000,10000", help="numbers, with commas")
    parser.add_argument("--topics", choices=("shard", "shared"), default="shard")
    parser.add_argument("--each", type=int, default=5, help="decisions a round")
    parser.add_argument("--late", type=int, default=200, help="decisions before a row comes")
    parser.add_argument("--batches", type=int, default=50, help="batches with rows of 1%%")
    parser.add_argument("--profile", choices=("added", "idle"), default="")
    options = parser.parse_args()
    counts = [int(text) for text in options.shards.split(",")]
    shared, found = options.topics == "shared", list[dict[str, float]]()
    told = options.each, options.late, options.batches
    for count in counts:
        found.append(measure(count, *told, shared=shared, profile=options.profile))
        if shared:
            reference = measure(count, *told, shared=True, windows=False)
            found[-1][f"{BATCH}: all moved"] = reference[BATCH]
    print(f"{'':<24}" + "".join(f"{count:>13,}" for count in counts) + f"{'growth':>9}")
    for name in found[-1]:
        cells = [figures.get(name, 0.0) for figures in found]
        growth = ""
        if len(counts) > 1 and cells[-1] and cells[-2]:
            growth = f"{math.log(cells[-1] / cells[-2]) / math.log(counts[-1] / counts[-2]):.2f}"
        print(f"{name:<24}" + "".join(f"{cell:>13,.5g}" for cell in cells) + f"{growth:>9}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
