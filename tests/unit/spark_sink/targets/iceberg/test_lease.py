"""When a member of the group makes its client anew; the clients are toys."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from shardmerge.connectors.access.lease_names import Sinks
from shardmerge.connectors.kafka.silence import SILENT_S
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.settings import Kafka
from shardmerge.spark_sink.targets.iceberg import lease as group_lease
from shardmerge.spark_sink.targets.iceberg.lease import GroupLease


class Down:
    """What a client gives that has lost all brokers."""

    def error(self) -> KafkaError:
        return KafkaError(KafkaError._ALL_BROKERS_DOWN)


class Member:
    """A consumer without brokers, until ``answers``; each poll takes ``poll_s`` seconds."""

    def __init__(self, clock: list[float], *, answers: bool, tells: bool) -> None:
        self.clock, self.answers, self.tells = clock, answers, tells
        self.partitions: list[TopicPartition] = []
        self.questions, self.is_closed = 0, False

    def subscribe(self, *_: Any, **__: Any) -> None:
        pass

    def poll(self, timeout_s: float) -> Down | None:
        self.clock[0] += max(timeout_s, 0.1)
        return Down() if self.tells and not self.answers else None

    def assignment(self) -> list[TopicPartition]:
        return self.partitions

    def list_topics(self, topic: str, timeout: float) -> None:
        assert not self.is_closed
        self.questions += 1
        if not self.answers:
            self.clock[0] += timeout
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))

    def close(self) -> None:
        self.is_closed = True


class Brokers:
    """Makes consumers, and remembers them."""

    def __init__(self) -> None:
        self.clock = [50.0]
        self.made: list[Member] = []
        self.answers = self.tells = False

    def consumer(self, *_: Any) -> Member:
        self.made.append(Member(self.clock, answers=self.answers, tells=self.tells))
        return self.made[-1]


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Brokers:
    toy = Brokers()
    monkeypatch.setattr(group_lease, "consumer", toy.consumer)
    monkeypatch.setattr(group_lease, "monotonic", lambda: toy.clock[0])
    return toy


def lease() -> GroupLease:
    return GroupLease(Kafka("k:9092"), "group", "ddl", lambda: 1)


def wait_for_s(lease: GroupLease, brokers: Brokers, seconds: float) -> None:
    until = brokers.clock[0] + seconds
    while brokers.clock[0] < until:
        assert not lease.wait(1)


@pytest.mark.parametrize("tells", [True, False])
def test_a_standby_that_lost_all_brokers_makes_another_client(
    brokers: Brokers, *, tells: bool
) -> None:
    brokers.tells = tells
    waiting = lease()
    wait_for_s(waiting, brokers, SILENT_S - 5)
    assert len(brokers.made) == 1, "a broker that is away for a moment comes back by itself"
    brokers.answers = True
    wait_for_s(waiting, brokers, 15)
    first, second = brokers.made
    assert first.is_closed
    wait_for_s(waiting, brokers, 100)
    assert len(brokers.made) == 2 and not second.is_closed
    second.partitions = [TopicPartition("ddl", 0)]
    assert waiting.wait(1)


def test_a_standby_whose_brokers_answer_keeps_its_client(brokers: Brokers) -> None:
    brokers.answers = True
    wait_for_s(lease(), brokers, 200)
    (member,) = brokers.made
    assert 0 < member.questions <= 200 / group_lease._ASK_S


def test_a_writer_that_fell_out_of_the_group_makes_another_client(brokers: Brokers) -> None:
    writer = lease()
    for _ in range(60):
        assert writer.renew() == 1
        brokers.clock[0] += 1
    assert len(brokers.made) > 1


def test_a_writer_that_has_the_lease_asks_nothing(brokers: Brokers) -> None:
    writer = lease()
    writer.connect()
    brokers.made[0].partitions = [TopicPartition("ddl", 0)]
    for _ in range(60):
        writer.renew()
        brokers.clock[0] += 1
    assert (len(brokers.made), brokers.made[0].questions) == (1, 0)


def test_a_client_that_did_not_tell_the_members_is_made_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[object] = []

    def admin_client(_: Kafka) -> object:
        made.append(object())
        return made[-1]

    def sinks_in_group(_: Kafka, admin: object, __: str) -> Sinks:
        if admin is made[0]:
            raise StackError("no brokers", code="SM-4101")
        return Sinks("db1")

    monkeypatch.setattr(group_lease, "admin_client", admin_client)
    monkeypatch.setattr(group_lease, "sinks_in_group", sinks_in_group)
    asking = lease()
    with pytest.raises(StackError, match="no brokers"):
        asking.sinks()
    assert asking.sinks() == asking.sinks() == Sinks("db1")
    assert len(made) == 2
