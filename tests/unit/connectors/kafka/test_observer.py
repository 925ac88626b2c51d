"""A consistent picture: what the topics hold below their ends, and nothing behind them."""

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
HELD_AGAIN = Decision(ChangeId("s1", 3), TARGET, 3, SHARD, PLACE, Outcome.HOLD, reason="new")


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


def _end(topic: str, offset: int) -> _Message:
    return _Message(topic, offset, None, KafkaError(KafkaError._PARTITION_EOF))


def test_a_hold_that_is_over_is_not_told_and_one_behind_the_end_is_not_yet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write = AVRO.write
    _Consumer.messages = [
        _Message("p.ddl", 0, write(HELD)),
        _Message("p.joined-schemas", 0, write(JoinedSchema(TARGET, 2, (), None, 2))),
        _end("p.joined-schemas", 1),
        # Steady for a while, and not at the end.
        *(_end("other", 0) for _ in range(50)),
        _Message("p.ddl", 1, write(OPENED)),
        _Message("p.sink-progress", 0, write(SinkProgress(TARGET, 2, 5))),
        _Message("p.sink-progress", 1, write(SinkProgress(TARGET, 3, 9))),
        _end("p.sink-progress", 2),
        _Message("p.ddl", 4, write(HELD_AGAIN)),
        _end("p.ddl", 5),
    ]
    monkeypatch.setattr(observer, "consumer", _Consumer)
    ends = {"p.ddl": 3, "p.joined-schemas": 1, "p.sink-progress": 1}

    facts = Observer(PIPELINE).read_to(ends, 60)

    assert facts.held(TARGET) == {}
    assert facts.progress[TARGET].executed_version == 2
    assert [decision.version for decision in facts.decisions] == [1, 2]


def test_topics_that_are_not_read_to_their_ends_are_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _Consumer.messages = [_Message("p.ddl", 0, AVRO.write(HELD)), _end("p.ddl", 1)]
    monkeypatch.setattr(observer, "consumer", _Consumer)
    with pytest.raises(StackError, match=r"not read to their ends in 0 s: p\.ddl"):
        Observer(PIPELINE).read_to({"p.ddl": 7}, 0.3)


def test_progress_is_read_before_the_decisions_that_it_tells_of() -> None:
    order = Observer(PIPELINE).topics
    assert order.index("p.sink-progress") < order.index("p.joined-schemas") < order.index("p.ddl")
