"""Reads whole topics once, from their beginning to where they ended when they were asked."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from shardmerge.connectors.access.kafka import assigned_consumer, client_error
from shardmerge.connectors.event_log import logger
from shardmerge.connectors.formats.stored_record import Extent, StoredRecord
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.settings import Kafka

from .partition_offsets import partition_begins, partition_ends
from .silence import Silence

log = logger(__name__)
_BATCH = 500
_POLL_S = 0.5
_LEADER_PAUSE_S = 0.2
_LEADER_MOVES = frozenset(
    {
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
)
"""What a broker says of a partition that was just made, or whose leader moves: it passes."""


class TopicReader:
    """Committed records of topics, without a consumer group. Use as a context manager.

    A reader that lives long makes its consumers anew when they got no answer for long: see
    ``silence``.

    Args:
        kafka: Whose topics.
        timeout_s: Bound of each request, of the wait for leaders, and of the silence while a
            partition is read.
        group: A consumer group that the user may read with: the client asks for it, and never
            joins it.
    """

    def __init__(
        self, kafka: Kafka, timeout_s: float = 30.0, group: str = "shardmerge-topic-reader"
    ) -> None:
        self._kafka = kafka
        self._timeout_s = timeout_s
        self._group = group
        self._known: set[str] = set()
        self._silence = Silence()
        self._uncommitted, self._consumer = _consumers(kafka, group)

    def __enter__(self) -> TopicReader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Leave Kafka."""
        self._uncommitted.close()
        self._consumer.close()

    def extents(self, topics: Sequence[str]) -> tuple[Extent, ...]:
        """The extents of these topics' partitions now, in the given order of topics.

        A topic that does not exist has none.

        Raises:
            StackError: Kafka does not answer.
        """
        with self._renewing():
            found = self._extents_of(topics)
        self._silence.ends()
        return found

    def _extents_of(self, topics: Sequence[str]) -> tuple[Extent, ...]:
        until = time.monotonic() + self._timeout_s
        while True:
            try:
                return self._extents(topics)
            except KafkaException as error:
                if error.args[0].code() not in _LEADER_MOVES or time.monotonic() > until:
                    raise self._unanswered(error) from error
            time.sleep(_LEADER_PAUSE_S)

    def records(self, extent: Extent) -> Iterator[StoredRecord]:
        """The committed records of a partition within its extent, in order of their offsets.

        Raises:
            StackError: Kafka does not answer, or records vanish while they are read.
        """
        if extent.begin >= extent.end:
            return
        with self._renewing():
            yield from self._records(extent)

    def _records(self, extent: Extent) -> Iterator[StoredRecord]:
        if extent.topic not in self._known:
            # The client looks for the leader of a new topic only once a second. A request for the
            # metadata finds it at once.
            try:
                self._consumer.list_topics(extent.topic, timeout=self._timeout_s)
            except KafkaException as error:
                raise self._unanswered(error) from error
            self._known.add(extent.topic)
        self._consumer.assign([TopicPartition(extent.topic, extent.partition, extent.begin)])
        heard = time.monotonic()
        while True:
            try:
                first = self._consumer.poll(_POLL_S)
                messages = (
                    [first, *self._consumer.consume(_BATCH, timeout=0)] if first is not None else []
                )
            except KafkaException as error:
                raise self._unanswered(error) from error
            if messages:
                heard = time.monotonic()
                self._silence.ends()
            elif time.monotonic() - heard > self._timeout_s:
                raise StackError(
                    f"{extent.topic}/{extent.partition} gave nothing for {self._timeout_s:.0f} s "
                    f"before its end at offset {extent.end}",
                    hint="see whether the partition has a leader",
                    code="SM-4108",
                )
            for message in messages:
                if (fault := message.error()) is not None:
                    if fault.code() != KafkaError._PARTITION_EOF:
                        raise self._unanswered(KafkaException(fault))
                    # Control records are not delivered: only this tells that the end is reached.
                    if message.offset() >= extent.end:
                        return
                    continue
                if message.offset() >= extent.end:
                    return
                yield _stored(message)
                if message.offset() == extent.end - 1:
                    return

    def _extents(self, topics: Sequence[str]) -> tuple[Extent, ...]:
        known = self._uncommitted.list_topics(timeout=self._timeout_s).topics
        partitions = [
            (name, number)
            for name in topics
            if name in known
            for number in sorted(known[name].partitions)
        ]
        begins = partition_begins(self._uncommitted, partitions, self._timeout_s)
        ends = partition_ends(self._consumer, partitions, self._timeout_s)
        # Asked last, so that it is never below the end.
        highs = partition_ends(self._uncommitted, partitions, self._timeout_s)
        return tuple(Extent(*at, begins[at], ends[at], highs[at]) for at in partitions)

    @contextmanager
    def _renewing(self) -> Iterator[None]:
        """Ask Kafka; make new consumers when nothing was answered for long."""
        try:
            yield
        except StackError:
            if self._silence.is_too_long():
                log.warning("kafka_client_renewed", client="topics")
                self.close()
                self._known.clear()
                self._uncommitted, self._consumer = _consumers(self._kafka, self._group)
            raise

    def _unanswered(self, error: KafkaException) -> StackError:
        return client_error(self._kafka, error)


def _consumers(kafka: Kafka, group: str) -> tuple[Consumer, Consumer]:
    """One that asks for offsets up to which nothing need be committed, and one that reads."""
    own = {"log_level": 0, "client.id": "shardmerge-topic-reader"}
    uncommitted = assigned_consumer(kafka, group, {**own, "isolation.level": "read_uncommitted"})
    reading = assigned_consumer(
        kafka,
        group,
        {
            **own,
            "enable.partition.eof": True,
            # The end of a partition is seen in an empty answer, which comes only after this time.
            "fetch.wait.max.ms": 10,
        },
    )
    return uncommitted, reading


def _stored(message: Any) -> StoredRecord:
    kind, timestamp = message.timestamp()
    headers = tuple((name, value) for name, value in message.headers() or ())
    return StoredRecord(
        message.topic(),
        message.partition(),
        message.offset(),
        message.key(),
        message.value(),
        headers,
        timestamp,
        kind,
    )
