"""Writing a few records, as far as it needs no broker."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError

from shardmerge.connectors.kafka import record_sender
from shardmerge.connectors.kafka.record_sender import RecordSender
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.settings import Kafka

Reported = Callable[[KafkaError | None, object], None]


class ToyProducer:
    """Answers every record as it is told to; None: never."""

    def __init__(self, answers: list[KafkaError | str | None]) -> None:
        self._answers = answers
        self._open: list[Reported] = []
        self.taken: list[tuple[str, bytes, bytes | None, int]] = []
        self.is_purged = False

    def produce(
        self, topic: str, value: bytes, key: bytes | None, partition: int, on_delivery: Reported
    ) -> None:
        self.taken.append((topic, value, key, partition))
        self._open.append(on_delivery)

    def flush(self, _timeout_s: float) -> int:
        answer = self._answers.pop(0)
        if answer is None:
            return len(self._open)
        for reported in self._open:
            reported(answer if isinstance(answer, KafkaError) else None, None)
        self._open.clear()
        return 0

    def purge(self) -> None:
        self.is_purged = True


def sender(
    monkeypatch: pytest.MonkeyPatch, *answers: KafkaError | str | None
) -> tuple[RecordSender, list[ToyProducer]]:
    left, made = list(answers), list[ToyProducer]()

    def producer(*_: object) -> ToyProducer:
        made.append(ToyProducer(left))
        return made[-1]

    monkeypatch.setattr(record_sender, "producer", producer)
    return RecordSender(Kafka("127.0.0.1:1"), 5.0), made


def test_one_client_writes_all_records(monkeypatch: pytest.MonkeyPatch) -> None:
    sends, made = sender(monkeypatch, "taken", "taken")
    sends.send("a", [(b"k", b"1"), (None, b"2")])
    sends.send("b", [(None, b"3")])
    (client,) = made
    assert client.taken == [("a", b"1", b"k", 0), ("a", b"2", None, 0), ("b", b"3", None, 0)]


def test_a_client_that_gets_no_answer_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have lost all brokers for good."""
    sends, made = sender(monkeypatch, None, "taken")
    with pytest.raises(StackError, match="a cannot be written: no answer within 5 s"):
        sends.send("a", [(None, b"1")])
    sends.send("a", [(None, b"1")])
    assert [client.is_purged for client in made] == [True, False]
    assert made[1].taken == [("a", b"1", None, 0)]


def test_a_refused_record_is_told_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    sends, made = sender(monkeypatch, refused, "taken")
    with pytest.raises(StackError, match=r"a cannot be written: .*TOPIC_AUTHORIZATION_FAILED"):
        sends.send("a", [(None, b"1")])
    sends.send("a", [(None, b"1")])
    assert len(made) == 1, "the broker answered"
