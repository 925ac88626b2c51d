from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from confluent_kafka import KafkaError, TopicPartition

from shardmerge.schemas.pipeline.settings import Kafka
from shardmerge.spark_sink.kafka import topic_tail
from shardmerge.spark_sink.kafka.topic_tail import TailEnd, TailRecord, TopicTail


class Message:
    def __init__(self, topic: str, offset: int, *, is_end: bool = False) -> None:
        self._topic, self._offset, self._is_end = topic, offset, is_end

    def error(self) -> KafkaError | None:
        return KafkaError(KafkaError._PARTITION_EOF) if self._is_end else None

    def topic(self) -> str:
        return self._topic

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes:
        return b"v"


class Consumer:
    """Delivers what it is given; remembers what it was assigned."""

    def __init__(self) -> None:
        self.assigned: dict[str, int] = {}
        self.arrived: list[Message] = []
        self.is_closed = False

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        self.assigned = {p.topic: p.offset for p in partitions}

    def unassign(self) -> None:
        self.assigned = {}

    def poll(self, timeout: float) -> Message | None:
        return self.arrived.pop(0) if self.arrived else None

    def consume(self, count: int, timeout: float) -> list[Message]:
        taken, self.arrived = self.arrived[:count], self.arrived[count:]
        return taken

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Consumer]:
    """Every consumer that was made."""
    consumers: list[Consumer] = []

    def consumer(kafka: Kafka, group: str, settings: Any) -> Consumer:
        consumers.append(Consumer())
        return consumers[-1]

    monkeypatch.setattr(topic_tail, "assigned_consumer", consumer)
    return consumers


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, in its last element."""
    times = [50.0]
    monkeypatch.setattr(topic_tail, "monotonic", lambda: times[-1])
    return times


def test_places_are_known_when_every_end_was_seen(made: list[Consumer]) -> None:
    tail = TopicTail(Kafka("k:1"), ["a", "b"])
    made[0].arrived = [Message("a", 0), Message("a", 2, is_end=True), Message("b", 4)]
    assert list(tail.read(0)) == [
        TailRecord("a", 0, b"v"),
        TailEnd("a", 2),
        TailRecord("b", 4, b"v"),
    ]
    assert tail.places() is None, "b may have more"
    made[0].arrived = [Message("b", 5, is_end=True)]
    assert list(tail.read(0)) == [TailEnd("b", 5)]
    assert tail.places() == {"a": 2, "b": 5}
    made[0].arrived = [Message("a", 2)]
    assert list(tail.read(0)) == [TailRecord("a", 2, b"v")]
    assert tail.places() is None


def test_who_sleeps_reads_nothing_and_goes_on_where_he_was(made: list[Consumer]) -> None:
    tail = TopicTail(Kafka("k:1"), ["a"])
    made[0].arrived = [Message("a", 7), Message("a", 9, is_end=True)]
    list(tail.read(0))
    tail.sleep()
    assert (tail.is_asleep, made[0].assigned) == (True, {})
    made[0].arrived = [Message("a", 9)]
    assert list(tail.read(0)) == []
    assert tail.places() == {"a": 9}
    tail.wake()
    assert (tail.is_asleep, made[0].assigned, tail.places()) == (False, {"a": 9}, None)


def test_a_consumer_that_hears_nothing_for_long_is_replaced_where_it_was(
    made: list[Consumer], clock: list[float]
) -> None:
    tail = TopicTail(Kafka("k:1"), ["a"])
    made[0].arrived = [Message("a", 3)]
    list(tail.read(0))
    clock.append(69.0)
    list(tail.read(0))
    assert len(made) == 1
    clock.append(71.0)
    list(tail.read(0))
    assert (len(made), made[0].is_closed, made[1].assigned) == (2, True, {"a": 4})


def test_a_consumer_that_has_seen_all_ends_is_not_replaced(
    made: list[Consumer], clock: list[float]
) -> None:
    tail = TopicTail(Kafka("k:1"), ["a"])
    made[0].arrived = [Message("a", 0, is_end=True)]
    list(tail.read(0))
    clock.append(500.0)
    list(tail.read(0))
    assert len(made) == 1


def test_only_a_record_breaks_the_silence(made: list[Consumer], clock: list[float]) -> None:
    tail = TopicTail(Kafka("k:1"), ["a"])
    made[0].arrived = [Message("a", 3)]
    list(tail.read(0))
    clock.append(60.0)
    tail.sleep()
    tail.wake()
    made[0].arrived = [Message("a", 4, is_end=True)]
    list(tail.read(0))
    assert tail.silent_s == 10.0, "a look without news does not keep the tail awake"
