"""Kafka's answers about topics and ends, and arrivals, as an intake's tests play them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, cast

from shardmerge.schemas.pipeline.settings import Connect, Kafka, Pipeline, Source, Target
from shardmerge.schemas.records.decisions import Decision
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka.intake import Intake
from shardmerge.spark_sink.kafka.row_topics import RowTopic
from shardmerge.spark_sink.kafka.topic_tail import TailRecord
from shardmerge.spark_sink.kafka.windows.window import Kept

PIPELINE = Pipeline(
    "p",
    Kafka("k:9092"),
    Connect("http://c:8083"),
    (Source("s1", "h", 3306, "u", "p", 6001),),
    (),
    Target("h", 1, "u", "p"),
)


class Offsets:
    """Every topic has one partition with ten rows."""

    def __init__(self, *missing: str) -> None:
        self.asked: list[str] = []
        self.missing = missing
        self.high = self.stable = 10
        self.ends: dict[str, int] = {}
        self.decided = 0
        self.counts: dict[str, int] = {}
        self.lists = self.descriptions = 0
        self.made = "id"

    def partitions(self, topics: Collection[str]) -> dict[str, int]:
        self.asked = sorted(topics)
        self.lists += 1
        return {t: self.counts.get(t, 1) for t in topics if t not in self.missing}

    def described(self, topics: Collection[str]) -> dict[str, RowTopic]:
        self.descriptions += 1
        return {
            t: RowTopic(f"{self.made} of {t}", self.counts.get(t, 1))
            for t in topics
            if t not in self.missing
        }

    def high_watermarks(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        ends = {"p.ddl": self.decided, "s1": 10, "s2": 10, **self.ends}
        return {p: ends.get(p.topic, self.high) for p in partitions}

    def stable_ends(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        return {p: self.ends.get(p.topic, self.stable) for p in partitions}

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


class Counting(Offsets):
    """Takes half a second to answer about ends, and remembers the question."""

    def __init__(self, now: list[float]) -> None:
        super().__init__()
        self.now = now
        self.questions: list[set[Partition]] = []

    def high_watermarks(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        asked = set(partitions)
        self.questions.append(asked)
        self.now[0] += 0.5
        return super().high_watermarks(asked)


class Asleep:
    is_asleep = True

    def places(self) -> dict[str, int]:
        return {}

    def wake(self) -> None:
        pass

    def read(self, _: float) -> list[TailRecord]:
        return []


class Followed:
    """Arrivals that see every partition, and ``found`` in some."""

    def __init__(self) -> None:
        self.found: set[Partition] = set()
        self.followed: dict[Partition, int] = {}
        self.rows_of: dict[Partition, int] = {}
        self.seen: dict[Partition, Kept] = {}
        self.waited: Callable[[float], None] = lambda _: None
        self.closed = 0

    def follow(self, rows: Mapping[Partition, int], own: Mapping[Partition, int]) -> bool:
        return True

    def wait(self, timeout_s: float, *, rows: bool) -> bool:
        if not self.rows_of:
            self.waited(timeout_s)
        return False

    def close(self) -> None:
        self.closed += 1

    def take_found(self, known: Mapping[Partition, object]) -> set[Partition]:
        return self.found

    def follow_also(self, ends: Mapping[Partition, int]) -> None:
        self.followed.update(ends)


def observed(*decisions: Decision) -> tuple[Intake, list[str]]:
    offsets = Offsets()
    intake = Intake(PIPELINE, cast(Any, offsets), cast(Any, None))
    for record in decisions:
        intake.decisions.add(record)
    intake.observe()
    return intake, offsets.asked
