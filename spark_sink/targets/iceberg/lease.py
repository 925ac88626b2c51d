"""The writer's lease of an Iceberg target: the only partition of a consumer group in Kafka.

Theory of operation. A catalog frees nothing when a process is killed, so the lease is in Kafka,
which every sink needs anyway:

1. All sinks of a pipeline are members of one group, and ask for a topic of one partition. Kafka
   gives the partition to one of them: that one has the lease. Its records are not read.
2. The assignment is sticky: a member that joins takes nothing from the one that writes.
3. A member that is killed, or whose machine loses power or its network, is out of the group after
   ``SILENCE_S`` seconds without a heartbeat. Then the partition goes to another one. A sink that
   ends by itself leaves the group, and another one has the lease at once.
4. The lease only says when a waiting sink takes over. That the sink before writes nothing more is
   the work of the writer epoch (``store``), which the waiting one takes then.

Source: Apache Kafka documentation, consumer configuration (``session.timeout.ms``,
``partition.assignment.strategy``); measured, tests/integration/kafka/test_group_lease.py.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from shardmerge.connectors.access.kafka import admin_client, consumer
from shardmerge.connectors.access.lease_names import Sinks
from shardmerge.connectors.event_log import logger
from shardmerge.connectors.kafka.lease_group import sinks_in_group
from shardmerge.connectors.kafka.silence import SILENT_S
from shardmerge.schemas.model.errors import ConfigError, StackError
from shardmerge.schemas.pipeline.settings import Kafka

log = logger(__name__)

SILENCE_S = 6
"""Seconds without a heartbeat after which Kafka frees the lease. Brokers take no less, unless
their ``group.min.session.timeout.ms`` is changed."""
_POLL_S = 0.1
_ASK_S, _ANSWER_S = 5.0, 1.0
"""Pause between two questions to the brokers of a member without the partition, and the longest
wait for an answer. A client that lost all brokers for good gives no error: it is only silent, as
one whose group does not change."""
_REFUSALS = frozenset(
    {
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.INVALID_SESSION_TIMEOUT,
        KafkaError.INCONSISTENT_GROUP_PROTOCOL,
    }
)
"""What does not pass by itself."""


class GroupLease:
    """One process's claim to be the pipeline's writer. One thread at a time uses it.

    Args:
        kafka: The brokers.
        group: The group's name.
        topic: A topic of one partition that exists.
        epoch: Reads the current writer epoch.
    """

    def __init__(self, kafka: Kafka, group: str, topic: str, epoch: Callable[[], int]) -> None:
        self._kafka, self._group, self._topic = kafka, group, topic
        self._epoch = epoch
        self._consumer: Consumer | None = None
        self._admin: AdminClient | None = None
        self._last_epoch: int | None = None
        self._answered_at = self._ask_at = 0.0

    def connect(self) -> None:
        """Join the group, if that is not done."""
        if self._consumer is None:
            self._consumer = consumer(
                self._kafka,
                {
                    "client.id": self._group,
                    "group.id": self._group,
                    "partition.assignment.strategy": "cooperative-sticky",
                    "session.timeout.ms": SILENCE_S * 1000,
                    "heartbeat.interval.ms": 1000,
                    "enable.auto.commit": False,
                    "auto.offset.reset": "latest",
                },
            )
            self._consumer.subscribe([self._topic], on_assign=_without_records)
            self._heard()

    def wait(self, wait_s: int) -> bool:
        """Wait for the lease as a standby; returns whether this process has it now.

        Args:
            wait_s: Longest wait, in whole seconds.

        Raises:
            ConfigError: Kafka refuses this member.
        """
        self.connect()
        self._renew_if_silent()
        until = monotonic() + wait_s
        while not self._has_it() and monotonic() < until:
            self._poll(_POLL_S)
        return self._has_it()

    def keep(self) -> None:
        """Stay in the group.

        Raises:
            ConfigError: Kafka refuses this member.
        """
        self.connect()
        self._renew_if_silent()
        self._poll(0.0)

    def renew(self) -> int:
        """As ``keep``; returns the current writer epoch.

        While this process has the lease, no standby takes the next epoch. So the epoch is read
        only when the lease was lost, and once before.

        Raises:
            ConfigError: Kafka refuses this member.
            TargetError: The catalog does not answer.
        """
        self.keep()
        if self._last_epoch is None or not self._has_it():
            self._last_epoch = self._epoch()
        return self._last_epoch

    def sinks(self) -> Sinks:
        """Where this sink runs, and where standbys wait, as Kafka sees them.

        Raises:
            StackError: Kafka does not answer.
        """
        if self._admin is None:
            self._admin = admin_client(self._kafka)
        try:
            return sinks_in_group(self._kafka, self._admin, self._group)
        except StackError:
            # It may have lost all brokers for good: see ``SILENT_S``.
            self._admin = None
            raise

    def close(self) -> None:
        """Leave the group: another member has the lease at once."""
        if self._consumer is not None:
            self._consumer.close()
        self._consumer = self._admin = None

    def _has_it(self) -> bool:
        return self._consumer is not None and bool(self._consumer.assignment())

    def _heard(self) -> None:
        self._answered_at = monotonic()
        self._ask_at = self._answered_at + _ASK_S

    def _renew_if_silent(self) -> None:
        """Join with a new client if this one lacks the partition and reaches no broker for long."""
        assert self._consumer is not None
        if self._has_it():
            self._heard()
            return
        if monotonic() < self._ask_at:
            return
        try:
            self._consumer.list_topics(self._topic, timeout=_ANSWER_S)
        except KafkaException:
            self._ask_at = monotonic() + _ASK_S
        else:
            self._heard()
        if monotonic() - self._answered_at >= SILENT_S:
            log.warning("kafka_client_renewed", client="lease")
            self._consumer.close()
            self._consumer = None
            self.connect()

    def _poll(self, timeout_s: float) -> None:
        assert self._consumer is not None
        message = self._consumer.poll(timeout_s)
        # Other errors say that brokers are away: the client tries again by itself.
        if message is not None and (error := message.error()) and error.code() in _REFUSALS:
            raise ConfigError(
                f"Kafka does not admit this sink to the group {self._group}: {error.str()}",
                hint="the sink's user needs Read on it; it asks for a session timeout of"
                f" {SILENCE_S} seconds",
                code="SM-6610",
            )


def _without_records(joined: Consumer, partitions: list[TopicPartition]) -> None:
    joined.incremental_assign(partitions)
    joined.pause(partitions)
