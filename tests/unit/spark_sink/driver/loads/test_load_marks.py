from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.settings import Connect, Kafka, Pipeline, Source, Target
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.driver.loads import load_marks
from shardmerge.spark_sink.driver.loads.load_marks import MarkSearch
from shardmerge.spark_sink.kafka.range_reader import OffsetRange, Records

SOURCE = Source("s1", "h", 1, "u", "p", 1)
PIPELINE = Pipeline("p", Kafka("k"), Connect("c"), (SOURCE,), (), Target("h", 1, "u", "p"))
TOPIC = "s1.shardmerge_p_s1.signals"


class Topic:
    """Two partitions; each look at their ends finds one more step of ``steps``."""

    def __init__(self, *steps: dict[int, list[bytes | None]]) -> None:
        self.records: dict[int, list[bytes | None]] = {0: [b"old-7"], 1: []}
        self.steps = list(steps)
        self.asked: list[OffsetRange] = []

    def partitions(self, names: Sequence[str]) -> dict[str, int]:
        assert list(names) == [TOPIC]
        return {TOPIC: 2}

    def high_watermarks(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        return {p: len(self.records[p.number]) for p in partitions}

    def stable_ends(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        for number, records in (self.steps.pop(0) if self.steps else {}).items():
            self.records[number] += records
        return self.high_watermarks(partitions)

    def open(self, ranges: Sequence[OffsetRange]) -> Any:
        self.asked += ranges
        left = [
            Records(r.place, range(r.start, r.end), self.records[r.partition][r.start : r.end])
            for r in ranges
        ]

        class Cursor:
            @property
            def is_open(self) -> bool:
                return bool(left)

            def read(self) -> list[Records]:
                return [left.pop()]

        return Cursor()

    def close(self) -> None: ...


def search(monkeypatch: pytest.MonkeyPatch, topic: Topic) -> MarkSearch:
    monkeypatch.setattr(load_marks, "OffsetReader", lambda _: topic)
    monkeypatch.setattr(load_marks, "RowReader", lambda _: topic)
    monkeypatch.setattr(load_marks, "_LOOK_S", 0.0)
    return MarkSearch(PIPELINE, SOURCE)


def test_a_mark_is_found_behind_the_ends_that_were_there(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Topic({}, {1: [b'{"id": "other"}', None]}, {0: [b'{"id": "mark-1"}']})
    search(monkeypatch, topic).wait("mark-1", 60.0)
    assert topic.asked == [OffsetRange(TOPIC, 1, 0, 2), OffsetRange(TOPIC, 0, 1, 2)]


def test_a_mark_that_does_not_come_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StackError, match=r"source s1: a mark .* has not come") as raised:
        search(monkeypatch, Topic()).wait("old-7", 0.0)
    assert raised.value.code == "SM-4410"
