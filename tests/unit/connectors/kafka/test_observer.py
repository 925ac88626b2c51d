"""What is known of a pipeline whose topics are followed."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from confluent_kafka import KafkaError

from shardmerge.connectors.kafka import observer
from shardmerge.connectors.kafka.observer import Observer
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.settings import Connect, Kafka, Pipeline, Source, Target
from shardmerge.schemas.records.decisions import Decision, JoinedSchema, Outcome, Release
from shardmerge.schemas.records.progress import SinkProgress
from shardmerge.schemas.records.record_format import AVRO
from shardmerge.schemas.records.schema_changes import ChangeId

PIPELINE = Pipeline(
    "p",
    Kafka("127.0.0.1:1"),
    Connect("http://127.0.0.1:1"),
    (Source("s1", "127.0.0.1", 1, "root", "", 1),),
    (RoutingRule(".*", "app", "t", "merged", "t"),),
    Target("127.0.0.1", 1, "root", ""),
)
TARGET = TargetTable("merged", "t")
SHARD = ShardId("s1", "app", "t")
PLACE = SourcePosition(0, "binlog.000001", 4, 0)
HELD = Decision(ChangeId("s1", 1), TARGET, 1, SHARD, PLACE, Outcome.HOLD, reason="of old")
OPENED = Decision(
    ChangeId("s1", 2), TARGET, 2, SHARD, PLACE, Outcome.NOOP, releases=(Release(SHARD, 1),)
)


class _Message:
    def __init__(self, topic: str, offset: int, value: bytes | None, error: Any = None) -> None:
        self._topic, self._offset, self._value, self._error = topic, offset, value, error

    def topic(self) -> str:
        return self._topic

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes | None:
        return self._value

    def error(self) -> Any:
        return self._error


class _Consumer:
    """Gives one message at a time, as a broker may; then nothing."""

    messages: ClassVar[list[_Message]] = []

    def __init__(self, *_: object) -> None:
        self._left = list(self.messages)

    def assign(self, _: object) -> None:
        pass

    def consume(self, **_: object) -> list[_Message]:
        return [self._left.pop(0)] if self._left else []

    def close(self) -> None:
        pass


def test_a_hold_that_is_over_is_not_told_and_the_last_progress_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write = AVRO.write
    _Consumer.messages = [
        _Message("p.ddl", 0, write(HELD)),
        _Message("p.joined-schemas", 0, write(JoinedSchema(TARGET, 2, (), None, 2))),
        # A broker that restarts: it comes back.
        _Message("p.ddl", 1, None, KafkaError(KafkaError._TRANSPORT)),
        _Message("p.ddl", 1, write(OPENED)),
        _Message("p.sink-progress", 0, write(SinkProgress(TARGET, 2, 5))),
        _Message("p.sink-progress", 1, write(SinkProgress(TARGET, 3, 9))),
    ]
    monkeypatch.setattr(observer, "consumer", _Consumer)
    with Observer(PIPELINE) as observed:
        assert observed.wait(lambda facts: len(facts.decisions) == 2 and bool(facts.progress), 60)
        assert observed.wait(lambda facts: facts.progress[TARGET].executed_version == 3, 60)
        facts = observed.facts()

    assert facts.held(TARGET) == {}
    assert [decision.version for decision in facts.decisions] == [1, 2]


def test_topics_that_cannot_be_read_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    _Consumer.messages = [_Message("p.ddl", 0, None, refused)]
    monkeypatch.setattr(observer, "consumer", _Consumer)
    with (
        Observer(PIPELINE) as observed,
        pytest.raises(StackError, match="reading the pipeline's topics failed"),
    ):
        observed.wait(lambda _: False, 60)
