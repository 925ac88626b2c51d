"""Reads topics of one partition from their beginning, and goes on for ever.

A tail can sleep while nothing is expected. A sleeping tail sends no requests to the brokers, and
keeps its offsets. ``waits`` puts it to sleep and wakes it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from time import monotonic

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from shardmerge.connectors.access.kafka import assigned_consumer
from shardmerge.connectors.debezium.signals import notice
from shardmerge.connectors.event_log import logger
from shardmerge.connectors.formats.avro_wire import RegistryUnreachable
from shardmerge.connectors.kafka.silence import SILENT_S
from shardmerge.schemas.model.errors import ContractError, StackError
from shardmerge.schemas.pipeline.settings import Kafka

log = logger(__name__)

_CHUNK = 1_000


@dataclass(frozen=True, slots=True)
class TailRecord:
    """A record of a tailed topic; ``value`` is None for a tombstone."""

    topic: str
    offset: int
    value: bytes | None


@dataclass(frozen=True, slots=True)
class TailEnd:
    """The partition ended at ``offset``: the tail has delivered every record below."""

    topic: str
    offset: int


class TopicTail:
    """Reads topics of one partition from their beginning, committed records only, for ever.

    It uses no consumer group. Each tail keeps its offsets in memory, so a new tail begins again.
    """

    def __init__(self, kafka: Kafka, topics: Iterable[str]) -> None:
        self._kafka = kafka
        self._places = dict.fromkeys(topics, 0)
        """Topic → the offset to read next."""
        self._ended: set[str] = set()
        """Topics that are read to their ends, with no record yet at the offset to read next."""
        self._consumer: Consumer | None = None
        self._answered_at = self._heard_at = 0.0
        self.wake()

    @property
    def is_asleep(self) -> bool:
        """Whether it sleeps. A sleeping tail reads nothing."""
        return self._asleep

    def places(self) -> Mapping[str, int] | None:
        """Topic → its end, if all topics are read to their ends; None while one may have more."""
        return dict(self._places) if len(self._ended) == len(self._places) else None

    @property
    def silent_s(self) -> float:
        """Seconds since the tail read a record."""
        return monotonic() - self._heard_at

    def sleep(self) -> None:
        """Send no requests until ``wake``."""
        if self._consumer is not None:
            self._consumer.unassign()
        self._asleep = True

    def wake(self) -> None:
        """Read on from the offsets that were kept."""
        if self._consumer is None:
            self._consumer = _consumer(self._kafka)
        self._ended.clear()
        self._answered_at = monotonic()
        self._consumer.assign([TopicPartition(t, 0, place) for t, place in self._places.items()])
        self._asleep = False

    def read(self, timeout_s: float) -> Iterator[TailRecord | TailEnd]:
        """The records that have arrived. Waits at most ``timeout_s`` seconds for the first one.

        Raises:
            StackError: Kafka reports an error that does not pass by itself.
            ContractError: The offset to read from does not exist any more.
        """
        if self._asleep or self._consumer is None:
            return
        first = self._consumer.poll(timeout_s)
        if first is None:
            self._renew_if_silent()
            return
        messages = [first]
        while messages:
            for message in messages:
                if (event := _event(message)) is not None:
                    self._keep_place(event)
                    yield event
            messages = self._consumer.consume(_CHUNK, timeout=0)

    def _keep_place(self, event: TailRecord | TailEnd) -> None:
        self._answered_at = monotonic()
        if isinstance(event, TailEnd):
            self._places[event.topic] = event.offset
            self._ended.add(event.topic)
        else:
            self._heard_at = self._answered_at
            self._places[event.topic] = event.offset + 1
            self._ended.discard(event.topic)

    def _renew_if_silent(self) -> None:
        """Make a new consumer if an end is not reached and the brokers are silent for too long."""
        now = monotonic()
        if len(self._ended) == len(self._places) or now - self._answered_at < SILENT_S:
            return
        log.warning("kafka_client_renewed", client="tail")
        self.close()
        self.wake()

    def close(self) -> None:
        """End the connections."""
        if self._consumer is not None:
            self._consumer.close()
        self._consumer = None


def _consumer(kafka: Kafka) -> Consumer:
    return assigned_consumer(
        kafka,
        "shardmerge-sink-tail",
        {
            "client.id": "shardmerge-sink-tail",
            "enable.partition.eof": True,
            # An empty answer shows the end of a partition. The broker sends it after this time.
            "fetch.wait.max.ms": 20,
            "fetch.error.backoff.ms": 100,
        },
    )


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
            hint="somebody made it anew, or retention removed records: it must keep all of them",
            code="SM-2118",
        )
    if error.fatal():
        raise StackError(f"reading {topic}: {error.str()}", code="SM-4108")
    # A broker is away. The client tries again; until then no offset moves.
    return None


class ScanNotices:
    """The connectors' notices that tables were read again.

    Args:
        to_json: Gives a notice's value as JSON; raises ``RegistryUnreachable`` for now.

    Attributes:
        found: Tables that were read again, see ``RowProgress``.
    """

    def __init__(self, to_json: Callable[[bytes | None], bytes | None]) -> None:
        self.found: dict[tuple[str, str], list[int]] = {}
        self._to_json = to_json
        self._waiting: deque[TailRecord] = deque()

    def add(self, event: TailRecord) -> None:
        """Take a record of the notifications topic."""
        self._waiting.append(event)

    def read(self, number: int) -> None:
        """Read what was taken. While a registry is away, the rest is kept for later.

        Args:
            number: Of the first reading of watermarks after these notices.
        """
        while self._waiting:
            event = self._waiting[0]
            try:
                said = notice(self._to_json(event.value))
            except RegistryUnreachable:
                return
            except ContractError as error:
                # Without this notice a debt may wait until the table is read once more.
                log.warning(
                    "notification_skipped", topic=event.topic, offset=event.offset, error=error
                )
                said = None
            self._waiting.popleft()
            if said is not None and said.tells_scan:
                self.found.setdefault((said.source, said.table), []).append(number)
