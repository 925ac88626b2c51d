"""Follows topics from their beginning, as a background service of each worker."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from mode import Service

from shardmerge.connectors.access.aiokafka_arguments import aiokafka_arguments
from shardmerge.schemas.pipeline.settings import Kafka

POLL_MS = 500
RETRY_S = 2.0
"""Pause before the topics are read again after Kafka did not answer."""


class TopicFollower(Service):  # type: ignore[misc]
    """Reads the committed records of topics, with a consumer of its own and without a group.

    A service that inherits calls ``follow`` in a task, and again when it has ended with a
    ``KafkaError``: it goes on where it was.

    Args:
        kafka: How Kafka is reached.
        topics: The topics, each with one partition.
    """

    def __init__(self, kafka: Kafka, topics: Sequence[str], **kwargs: Any) -> None:
        self._kafka = kafka
        self._next = {TopicPartition(topic, 0): 0 for topic in topics}
        self.caught_up = False
        """Whether everything is read that was in the topics when the follower started."""
        super().__init__(**kwargs)

    @abstractmethod
    async def take(self, records: Iterable[Any]) -> None:
        """Take consecutive records of one partition."""

    async def follow(self) -> None:
        """Read until the service stops.

        Raises:
            KafkaError: Kafka does not answer.
        """
        consumer = AIOKafkaConsumer(
            **aiokafka_arguments(self._kafka),
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        )
        await consumer.start()
        try:
            consumer.assign(list(self._next))
            for tp, offset in self._next.items():
                consumer.seek(tp, offset)
            ends = await consumer.end_offsets(list(self._next))
            while not self.should_stop:
                batches = await consumer.getmany(timeout_ms=POLL_MS)
                for tp, records in batches.items():
                    await self.take(records)
                    self._next[tp] = records[-1].offset + 1
                if not self.caught_up:
                    self.caught_up = await self._reached(consumer, ends)
        finally:
            await consumer.stop()

    async def _reached(self, consumer: Any, ends: dict[TopicPartition, int]) -> bool:
        """Whether the consumer has reached the ends. Compaction may remove the last records."""
        for tp, end in ends.items():
            if await consumer.position(tp) < end:
                return False
        return True
