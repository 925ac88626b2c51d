"""Which progress records are sent."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.pipeline.settings import Kafka
from shardmerge.schemas.records.progress import RENEWED_S, SinkProgress
from shardmerge.spark_sink.kafka import publisher as module
from shardmerge.spark_sink.kafka.publisher import ProgressPublisher

T = TargetTable("m", "t")


class Producer:
    def __init__(self) -> None:
        self.sent: list[str] = []

    def poll(self, timeout: float) -> None:
        pass

    def produce(self, topic: str, value: bytes, key: str, headers: object) -> None:
        self.sent.append(key)


def test_a_change_is_sent_at_once_and_the_same_again_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept, now = Producer(), [1_000.0]

    def producer(kafka: Kafka, settings: Mapping[str, object]) -> Producer:
        return kept

    monkeypatch.setattr(module, "producer", producer)
    monkeypatch.setattr("shardmerge.spark_sink.kafka.publisher.time.monotonic", lambda: now[0])
    publisher = ProgressPublisher(Kafka("b:1"), "progress")
    record = SinkProgress(T, 1, 0)
    publisher.offer(record)
    now[0] += RENEWED_S - 1
    publisher.offer(record)
    assert len(kept.sent) == 1
    publisher.offer(SinkProgress(T, 1, 5))
    assert len(kept.sent) == 2
    now[0] += RENEWED_S
    publisher.offer(SinkProgress(T, 1, 5))
    assert kept.sent == ["m.t"] * 3


def test_a_record_that_takes_long_is_made_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_000.0]
    monkeypatch.setattr(module, "producer", lambda *_: Producer())
    monkeypatch.setattr("shardmerge.spark_sink.kafka.publisher.time.monotonic", lambda: now[0])
    publisher = ProgressPublisher(Kafka("b:1"), "progress")
    assert publisher.is_due(T)
    publisher.took(T, 0.3)
    now[0] += 2.5
    assert not publisher.is_due_soon(T)
    now[0] += 0.4
    assert not publisher.is_due(T)
    assert publisher.is_due_soon(T)
    now[0] += 0.2
    assert publisher.is_due(T)
