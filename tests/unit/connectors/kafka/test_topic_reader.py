"""Reading topics as a whole, as far as it needs no broker."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import KafkaError, Message, TopicPartition

from shardmerge.connectors.formats.stored_record import Extent
from shardmerge.connectors.kafka import topic_reader
from shardmerge.connectors.kafka.topic_reader import TopicReader
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.settings import Kafka
from tests.toy_client import ToyClient

NOBODY = "127.0.0.1:1"


def test_a_broker_that_does_not_answer_is_told_with_its_address() -> None:
    with (
        TopicReader(Kafka(NOBODY), timeout_s=0.5) as reader,
        pytest.raises(StackError, match=f"Kafka at {NOBODY}") as caught,
    ):
        reader.extents(["a"])
    assert caught.value.hint


def test_silence_before_the_end_is_told_with_the_partition() -> None:
    with (
        TopicReader(Kafka(NOBODY), timeout_s=0.5) as reader,
        pytest.raises(StackError, match=r"Kafka at|a/0 gave nothing .* offset 3"),
    ):
        list(reader.records(Extent("a", 0, 0, 3, 3)))


def test_an_empty_partition_needs_no_reading() -> None:
    with TopicReader(Kafka(NOBODY), timeout_s=0.5) as reader:
        assert list(reader.records(Extent("a", 0, 3, 3, 3))) == []


def leaders(
    monkeypatch: pytest.MonkeyPatch, *answers: int | KafkaError, timeout_s: float = 30.0
) -> TopicReader:
    """A reader of two partitions of ``a``; the answers are those for partition 1."""
    coming = iter(answers)
    client = ToyClient(lambda _topic, number: 7 if number == 0 else next(coming), {"a": 2})
    monkeypatch.setattr(topic_reader, "assigned_consumer", lambda *_: client)
    monkeypatch.setattr(topic_reader, "_LEADER_PAUSE_S", 0.0)
    return TopicReader(Kafka(NOBODY), timeout_s)


def test_a_partition_whose_leader_moves_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    passing = KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION)
    made_now = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
    with leaders(monkeypatch, passing, made_now, 2, passing, 2, 5, 6) as reader:
        assert reader.extents(["a"]) == (Extent("a", 0, 7, 7, 7), Extent("a", 1, 2, 5, 6))


def test_a_leader_that_does_not_come_is_told_after_the_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    passing = KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION)
    with (
        leaders(monkeypatch, *[passing] * 3, timeout_s=-1.0) as reader,
        pytest.raises(StackError, match="Not leader"),
    ):
        reader.extents(["a"])


def test_an_error_that_does_not_pass_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    with (
        leaders(monkeypatch, refused) as reader,
        pytest.raises(StackError, match=r"Kafka at .*authorization"),
    ):
        reader.extents(["a"])


class LostClient(ToyClient):
    """A consumer that has lost all brokers: it says nothing, or that no broker is there."""

    def __init__(self) -> None:
        super().__init__(lambda _topic, _number: KafkaError(KafkaError._ALL_BROKERS_DOWN), {"a": 1})
        self.is_closed = False

    def assign(self, _partitions: object) -> None:
        """Nothing comes of it."""

    def close(self) -> None:
        self.is_closed = True


class Found(ToyClient):
    """A consumer that reads one record from each partition."""

    def __init__(self) -> None:
        super().__init__(lambda _topic, _number: 1, {"a": 1})

    def assign(self, partitions: list[TopicPartition]) -> None:
        self.place = partitions[0]

    def poll(self, _timeout: float) -> Message | None:
        return Message(topic=self.place.topic, partition=0, offset=0) if self.place else None

    place: TopicPartition | None = None

    def consume(self, _count: int, timeout: float) -> list[Message]:
        return []


def reader_after_loss(
    monkeypatch: pytest.MonkeyPatch, times: list[float]
) -> tuple[TopicReader, list[LostClient], list[ToyClient]]:
    """A reader whose first two pairs of consumers have lost all brokers; then one has not."""
    lost: list[LostClient] = []
    found: list[ToyClient] = []

    def client(*_: object) -> ToyClient:
        if len(lost) < 4:
            lost.append(LostClient())
            return lost[-1]
        found.append(Found())
        return found[-1]

    monkeypatch.setattr(topic_reader, "assigned_consumer", client)
    monkeypatch.setattr(time, "monotonic", lambda: times[-1])
    return TopicReader(Kafka(NOBODY), timeout_s=5.0), lost, found


def test_consumers_that_are_refused_for_long_are_made_anew(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A client of librdkafka 2.13 to 2.16 can lose all brokers for good (its issue 5301)."""
    times = [100.0]
    reader, lost, found = reader_after_loss(monkeypatch, times)
    for now, pairs in ((100.0, 1), (119.0, 1), (121.0, 2), (140.0, 2), (142.0, 3)):
        times.append(now)
        with pytest.raises(StackError, match=f"Kafka at {NOBODY}"):
            reader.extents(["a"])
        assert len(lost) + len(found) == 2 * pairs
    assert all(client.is_closed for client in lost)
    assert caplog.text.count("kafka_client_renewed") == 2
    assert reader.extents(["a"]) == (Extent("a", 0, 1, 1, 1),)


def test_consumers_that_are_silent_for_long_are_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    times = [100.0]
    reader, lost, found = reader_after_loss(monkeypatch, times)

    def silent(_self: object, _timeout: float) -> None:
        times.append(times[-1] + 6.0)

    monkeypatch.setattr(LostClient, "poll", silent)
    for pairs in (1, 1, 1, 1, 2, 2, 2, 2, 3):
        with pytest.raises(StackError, match="gave nothing for 5 s"):
            list(reader.records(Extent("a", 0, 0, 1, 1)))
        assert len(lost) + len(found) == 2 * pairs
    (record,) = reader.records(Extent("a", 0, 0, 1, 1))
    assert (record.topic, record.offset) == ("a", 0)


def test_an_answer_ends_the_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    times = [100.0]
    refused = KafkaError(KafkaError._ALL_BROKERS_DOWN)
    made = 0

    def client(*_: object) -> ToyClient:
        nonlocal made
        made += 1
        return ToyClient(lambda _topic, _number: refused if times[-1] != 110.0 else 1, {"a": 1})

    monkeypatch.setattr(topic_reader, "assigned_consumer", client)
    monkeypatch.setattr(time, "monotonic", lambda: times[-1])
    reader = TopicReader(Kafka(NOBODY), timeout_s=5.0)
    for now in (100.0, 110.0, 121.0, 131.0):
        times.append(now)
        if now == 110.0:
            assert reader.extents(["a"])
        else:
            with pytest.raises(StackError):
                reader.extents(["a"])
    assert made == 2
