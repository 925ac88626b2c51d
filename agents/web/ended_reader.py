"""Shares ended sessions among the workers: writes them to a topic, and reads those of all workers.

A record's key is the digest of the session's nonce, its value the time at which no copy of the
session counts any more, as seconds since 1970 in digits. Kafka removes a record a day later.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Any

from aiokafka.errors import KafkaError
from confluent_kafka import KafkaException
from mode import Service

from shardmerge.agents.access.ended import EndedSessions, digest_of
from shardmerge.agents.access.sessions import SESSION_S
from shardmerge.connectors.access.kafka import client_error
from shardmerge.connectors.access.kafka import producer as producer_of
from shardmerge.connectors.event_log import logger
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.settings import Kafka, Pipeline

from .topic_follower import RETRY_S, TopicFollower

log = logger(__name__)

_SEND_S = 10.0
_LONGEST = 20
Tell = Callable[[str, int], None]
"""Tells all workers the digest of an ended session, and when its time is over; the call blocks.

Raises:
    StackError: Kafka does not take it.
"""


def tell_all(pipeline: Pipeline) -> Tell:
    """Writes ended sessions to the pipeline's topic."""

    def tell(digest: str, expires_s: int) -> None:
        topic = topics.ended_sessions(pipeline).name
        producer = producer_of(pipeline.kafka, {"enable.idempotence": True, "log_level": 0})
        try:
            producer.produce(topic, str(expires_s).encode(), digest.encode())
            left = producer.flush(_SEND_S)
        except KafkaException as error:
            raise client_error(pipeline.kafka, error, f"topic {topic}") from error
        if left:
            raise StackError(
                f"Kafka did not take the end of a session within {_SEND_S:.0f} s",
                hint="this worker accepts the session no more. Sign out again when Kafka answers, "
                "or change the token: then no worker accepts it",
                code="SM-6914",
            )

    return tell


class EndedReader(TopicFollower):
    """Knows which sessions were ended, on any worker.

    Args:
        kafka: How Kafka is reached.
        topic: Has the ended sessions, in one partition.
        tell: Tells the other workers.
        now_s: Returns seconds since 1970.
    """

    def __init__(
        self,
        kafka: Kafka,
        topic: str,
        tell: Tell,
        now_s: Callable[[], float] = time.time,
        **kwargs: Any,
    ) -> None:
        self._tell, self._now_s = tell, now_s
        self._ended = EndedSessions()
        super().__init__(kafka, [topic], **kwargs)

    def has(self, nonce: str) -> bool:
        """Whether the session with this nonce was ended."""
        return self._ended.has(nonce)

    async def end(self, nonce: str) -> None:
        """End a session: here at once, then on all workers.

        Raises:
            StackError: The other workers were not told.
        """
        digest, expires_s = digest_of(nonce), int(self._now_s()) + SESSION_S
        self._ended.add(digest, expires_s, self._now_s())
        await asyncio.to_thread(self._tell, digest, expires_s)

    async def take(self, records: Iterable[Any]) -> None:
        """Take records of the topic."""
        for record in records:
            self.take_record(record.key, record.value)

    def take_record(self, key: bytes | None, value: bytes | None) -> None:
        """Take a record; one that is none of ours changes nothing."""
        text = (value or b"").decode("ascii", "replace")
        if key is not None and text.isdecimal() and len(text) <= _LONGEST:
            self._ended.add(key.decode("ascii", "replace"), int(text), self._now_s())

    @Service.task  # type: ignore[untyped-decorator]
    async def _follow(self) -> None:
        while not self.should_stop:
            try:
                await self.follow()
            except KafkaError as error:
                log.warning("session_reader_failed", error=error)
                await self.sleep(RETRY_S)
