"""Reads of Kafka: watermarks of many partitions at once, and the tails of the small topics."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass

from confluent_kafka import (
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    TopicCollection,
    TopicPartition,
    Uuid,
)
from confluent_kafka.admin import OffsetSpec, TopicDescription

from shardmerge.connectors.access.kafka import admin_client, consumer, unanswered
from shardmerge.connectors.kafka.partition_offsets import partition_offsets
from shardmerge.schemas.model.errors import ContractError, StackError
from shardmerge.schemas.pipeline.settings import Kafka
from shardmerge.spark_sink.barrier.partitions import Partition

from .row_topics import RowTopic

_REQUEST_TIMEOUT_S = 5.0
_CHUNK = 1_000


class OffsetReader:
    """Answers where partitions end. A query that fails raises, so nothing advances."""

    def __init__(self, kafka: Kafka) -> None:
        self._kafka = kafka
        # A failed query raises, which says it once.
        self._admin = admin_client(kafka, client_id="shardmerge-sink-offsets")

    def partitions(self, topics: Collection[str]) -> dict[str, int]:
        """Topic → number of its partitions; only topics that exist.

        Raises:
            StackError: Kafka does not answer.
        """
        try:
            metadata = self._admin.list_topics(timeout=_REQUEST_TIMEOUT_S).topics
        except KafkaException as error:
            raise unanswered(self._kafka, error) from error
        found = {}
        for topic in topics:
            known = metadata.get(topic)
            if known is None:
                continue
            if known.error is not None:
                raise StackError(
                    f"the metadata of topic {topic}: {known.error.str()}", code="SM-4101"
                )
            found[topic] = len(known.partitions)
        return found

    def described(self, topics: Collection[str]) -> dict[str, RowTopic]:
        """Topic → its id and number of partitions; only topics that exist.

        Raises:
            StackError: Kafka does not answer.
        """
        names = sorted(topics)
        found = {}
        try:
            asked: dict[str, Future[TopicDescription]] = {}
            for first in range(0, len(names), _CHUNK):
                chunk = TopicCollection(names[first : first + _CHUNK])
                asked |= self._admin.describe_topics(chunk, request_timeout=_REQUEST_TIMEOUT_S)
            for name, future in asked.items():
                try:
                    topic = future.result()
                except KafkaException as error:
                    if (told := error.args[0]).code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                        continue
                    raise StackError(
                        f"the metadata of topic {name}: {told.str()}", code="SM-4101"
                    ) from error
                found[name] = RowTopic(_topic_id(topic.topic_id), len(topic.partitions))
        except KafkaException as error:
            raise unanswered(self._kafka, error) from error
        return found

    def high_watermarks(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Whole partition → end offset, open transactions included (read uncommitted, exclusive).

        Raises:
            StackError: Kafka does not answer for one of them.
        """
        return self._ends(partitions, IsolationLevel.READ_UNCOMMITTED)

    def stable_ends(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Whole partition → end offset of what is readable (read committed, exclusive).

        Raises:
            StackError: Kafka does not answer for one of them.
        """
        return self._ends(partitions, IsolationLevel.READ_COMMITTED)

    def _ends(
        self, partitions: Iterable[Partition], isolation: IsolationLevel
    ) -> dict[Partition, int]:
        asked = {TopicPartition(p.topic, p.number): OffsetSpec.latest() for p in partitions}
        try:
            ends = partition_offsets(self._admin, asked, isolation, _REQUEST_TIMEOUT_S)
        except KafkaException as error:
            names = sorted(f"{p.topic}/{p.partition}" for p in asked)
            others = f" and {len(names) - 1} others" if len(names) > 1 else ""
            raise StackError(
                f"Kafka does not tell the end of {names[0]}{others}: {error.args[0].str()}",
                hint="see the brokers' logs",
                code="SM-4101",
            ) from error
        return {Partition(topic, number): end for (topic, number), end in ends.items()}


@dataclass(frozen=True, slots=True)
class TailRecord:
    """A record of a tailed topic; ``value`` is None for a tombstone."""

    topic: str
    offset: int
    value: bytes | None


@dataclass(frozen=True, slots=True)
class TailEnd:
    """The end of the partition was seen at ``offset``: everything below it was delivered."""

    topic: str
    offset: int


class TopicTail:
    """Reads topics of one partition from their beginning, committed records only, for ever.

    It uses no consumer group: the object itself keeps its place, and a new one begins again.
    """

    def __init__(self, kafka: Kafka, topics: Iterable[str]) -> None:
        self._consumer = consumer(
            kafka,
            {
                "client.id": "shardmerge-sink-tail",
                "group.id": "shardmerge-sink-tail",  # required by the client, never joined
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                # A record that vanished is a broken contract, not a reason to begin elsewhere.
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": 20,
                "fetch.error.backoff.ms": 100,
            },
        )
        self._consumer.assign([TopicPartition(topic, 0, 0) for topic in topics])

    def read(self, timeout_s: float) -> Iterator[TailRecord | TailEnd]:
        """The records that have arrived; waits for the first at most ``timeout_s`` seconds.

        Raises:
            StackError: Kafka reports an error that does not pass by itself.
            ContractError: The offset to read from does not exist any more.
        """
        first = self._consumer.poll(timeout_s)
        if first is None:
            return
        messages = [first]
        while messages:
            for message in messages:
                if (event := _event(message)) is not None:
                    yield event
            messages = self._consumer.consume(_CHUNK, timeout=0)

    def close(self) -> None:
        """End the connections."""
        self._consumer.close()


def _event(message: Message) -> TailRecord | TailEnd | None:
    error = message.error()
    topic, offset = message.topic(), message.offset()
    if error is None:
        return TailRecord(topic, offset, message.value())
    if error.code() == KafkaError._PARTITION_EOF:
        return TailEnd(topic, offset)
    if error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
        raise ContractError(
            f"topic {topic} does not hold offset {offset} any more: {error.str()}",
            hint="it was made anew, or retention removed records: it must keep all of them",
            code="SM-2118",
        )
    if error.fatal():
        raise StackError(f"reading {topic}: {error.str()}", code="SM-4108")
    # A broker is away: the client tries again, and nothing advances meanwhile.
    return None


def _topic_id(told: Uuid | None) -> str:
    """A topic's id as text; "" from a broker before Kafka 2.8, which has no topic ids."""
    if told is None:
        return ""
    halves = (told.get_most_significant_bits(), told.get_least_significant_bits())
    return str(told) if any(halves) else ""
