"""When waiting rows may be deleted; what Kafka would answer is given."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from shardmerge.schemas.pipeline.settings import Kafka
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka import retention_watch
from shardmerge.spark_sink.kafka.retention_watch import Place, RetentionWatch, Waiting
from shardmerge.spark_sink.planning.retention import Bounds, OldestRow, RetentionLeft

A, B, EVER = Partition("a", 0), Partition("b", 0), Partition("ever", 0)
SMALL = Partition("small", 0)
KEPT = {"ever": Bounds(), "small": Bounds(None, 1000)}


class Answered(RetentionWatch):
    """With records that came at ten times their offset."""

    def __init__(self) -> None:
        super().__init__(Kafka(""), lambda: self.waits, lambda _: None)
        self.waits: Waiting = {}
        self.read: list[Place] = []

    def _bounds(self, names: Collection[str]) -> dict[str, Bounds]:
        return {name: KEPT.get(name, Bounds(1000.0)) for name in names}

    def _ends(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        return dict.fromkeys(partitions, 10)

    def _read(self, places: Collection[Place]) -> None:
        self.read += places
        self._seen |= {place: OldestRow(place[1] * 10.0, 20.0) for place in places}


def test_the_oldest_row_of_a_source_and_target_counts_and_is_read_once() -> None:
    watch = Answered()
    watch.waits = {("s1", "t"): [(A, 7), (B, 3)], ("s2", "t"): [(EVER, 1)]}
    assert watch.look() == watch.look() == {("s1", "t"): RetentionLeft(1030.0, None)}
    assert watch.read == [(A, 7), (B, 3)]


def test_a_row_that_no_longer_waits_is_forgotten() -> None:
    watch = Answered()
    watch.waits = {("s1", "t"): [(A, 7)]}
    watch.look()
    watch.waits = {}
    assert watch.look() == {}
    watch.waits = {("s1", "t"): [(A, 8)]}
    assert watch.look() == {("s1", "t"): RetentionLeft(1080.0, None)}


def test_a_bound_of_bytes_counts_from_the_row_to_the_end_of_its_partition() -> None:
    watch = Answered()
    watch.waits = {("s1", "t"): [(SMALL, 6)]}
    assert watch.look() == {("s1", "t"): RetentionLeft(None, 1000 - 4 * 20.0)}


class Described(Answered):
    """Asks a cluster that describes every topic but one."""

    _bounds = RetentionWatch._bounds


class Admin:
    """Keeps rows for 1,000 seconds, and does not describe topic b."""

    def describe_configs(self, resources: Any, request_timeout: float) -> dict[Any, Future[Any]]:
        assert request_timeout > 0
        return {resource: self._answer(resource.name) for resource in resources}

    @staticmethod
    def _answer(name: str) -> Future[Any]:
        answer: Future[Any] = Future()
        if name == "b":
            refused = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
            answer.set_exception(KafkaException(refused))
        else:
            values = {
                "retention.ms": "1000000",
                "retention.bytes": "-1",
                "cleanup.policy": "delete",
            }
            answer.set_result({k: SimpleNamespace(value=v) for k, v in values.items()})
        return answer


def test_a_topic_that_cannot_be_described_does_not_hide_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retention_watch, "admin_client", lambda _: Admin())
    watch = Described()
    watch.waits = {("s1", "t"): [(A, 7)], ("s2", "u"): [(B, 3)]}
    assert watch.look() == {("s1", "t"): RetentionLeft(1070.0, None)}
