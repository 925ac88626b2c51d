"""Reading topics as a whole, as far as it needs no broker."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

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
