"""Reads half-open offset ranges of row topics, several partitions at a time."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from time import monotonic
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from shardmerge.connectors.access.kafka import assigned_consumer
from shardmerge.connectors.kafka.client_offsets import valid_offset
from shardmerge.schemas.model.errors import ContractError, StackError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.pipeline.settings import Kafka
from shardmerge.schemas.pipeline.topics import MAX_ROW_BYTES
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka.windows.window import Kept
from shardmerge.spark_sink.rows.decoding.row_envelope import MOVES, MovedRow

CHUNK = 500
"""Most records that are handed on at once: that many stay in the processor's cache."""
_POLL_S = 0.2
_METADATA_S = 10.0
_OPEN_TRANSACTION_WAIT_S = 1.0
"""Seconds to wait for a transaction that is still open below a range's end."""
_STALL_S = 60.0
"""After these seconds without a record or an end of partition the broker counts as away."""


class OffsetRange(NamedTuple):
    """``[start, end)`` of a partition.

    Attributes:
        part: In a shared topic, the only shard whose records are wanted (``shard_demux``).
        tells_moves: Whether the two records of a changed primary key are to be marked.
    """

    topic: str
    partition: int
    start: int
    end: int
    part: ShardId | None = None
    tells_moves: bool = False

    @property
    def place(self) -> Partition:
        """The partition, or the shard's part of it, that this is a range of."""
        return Partition(self.topic, self.partition, self.part)


class Records(NamedTuple):
    """Committed records of one range, in offset order; a tombstone's value is None.

    If the range ``tells_moves``, the values of changed primary keys are ``MovedRow``.

    From a shared topic they are one shard's records, without tombstones, which name no shard.
    """

    partition: Partition
    offsets: Sequence[int]
    values: Sequence[bytes | None]


SMALL_FETCH_WAIT_MS, LARGE_FETCH_WAIT_MS = 1, 25
"""``fetch_wait_ms`` for small batches and for backlogs.

A range ends at the end of its partition, with a commit marker, so each range waits for one empty
answer. While records of a backlog that were fetched ahead are applied, the brokers get only such
empty requests: for a million rows these cost them 1.1 s of CPU time at 5 ms and 0.5 s at 100 ms
(half a core at 1 ms). A small batch is read to its end before it is applied.
"""


class RowReader:
    """A consumer of row topics, for one ``RangeCursor`` at a time.

    Attributes:
        kept: Records that were read before a task asks for them (``windows``).
        seen: Records that ended the sink's last wait (``arrivals``).
    """

    def __init__(self, kafka: Kafka, fetch_wait_ms: int = SMALL_FETCH_WAIT_MS) -> None:
        self.consumer = row_consumer(kafka, fetch_wait_ms)
        self.kept: Mapping[Partition, Kept] = {}
        self.seen: Mapping[Partition, Kept] = {}
        self._known: set[str] = set()
        self._expected: dict[tuple[str, int], int] = {}

    def expect(self, starts: Mapping[Partition, int], seen: Mapping[Partition, Kept]) -> None:
        """Begin to fetch, so that a cursor that begins at these offsets finds the records here.

        No cursor may be in use.

        Args:
            starts: Whole partition → offset. Topics that were never read are left out. Replaces
                what was expected before; empty: nothing is fetched any more.
            seen: Whole partition → its records that are there already: they are not fetched.

        Raises:
            StackError: The client refuses it.
        """
        self.seen = {p: kept for p, kept in seen.items() if kept.start <= starts.get(p, -1)}
        wanted = starts.keys() - self.seen.keys()
        expected = {(p.topic, p.number): starts[p] for p in wanted if p.topic in self._known}
        if expected != self._expected:
            self._assign(expected)
            self._expected = expected

    def open(self, ranges: Sequence[OffsetRange]) -> RangeCursor:
        """A cursor over ranges. An earlier cursor of this reader must not be used any more.

        Raises:
            StackError: No broker answers.
        """
        starts = {(r.topic, r.partition): r.start for r in ranges}
        expected, self._expected = self._expected, {}
        if not starts or not starts.items() <= expected.items():
            self._assign(starts)
        elif others := expected.keys() - starts.keys():
            self.consumer.incremental_unassign([TopicPartition(*other) for other in others])
        return RangeCursor(self.consumer, ranges)

    def _assign(self, starts: Mapping[tuple[str, int], int]) -> None:
        """Fetch from these offsets, and nothing else."""
        topics = {topic for topic, _ in starts}
        try:
            for topic in sorted(topics - self._known):
                # The client looks for the leader of a new topic only once a second. A request for
                # the metadata finds it at once (measured: 4 ms a topic instead of 1.0 s).
                self.consumer.list_topics(topic, timeout=_METADATA_S)
                self._known.add(topic)
            self.consumer.assign([TopicPartition(*place, start) for place, start in starts.items()])
        except KafkaException as error:
            raise StackError(
                f"reading {', '.join(sorted(topics))}: {error.args[0].str()}",
                hint="check the Kafka brokers",
                code="SM-4108",
            ) from error

    def beginning(self, partition: Partition) -> int:
        """The first offset that a partition still has; raises ``StackError`` without an answer."""
        try:
            asked = TopicPartition(partition.topic, partition.number)
            low, _ = self.consumer.get_watermark_offsets(asked, _METADATA_S)
        except KafkaException as error:
            raise StackError(
                f"asking for the beginning of {partition.topic}: {error.args[0].str()}",
                hint="check the Kafka brokers",
                code="SM-4108",
            ) from error
        return valid_offset(int(low), partition.topic, partition.number)

    def close(self) -> None:
        """End the consumer."""
        self.consumer.close()


@dataclass(slots=True)
class _Progress:
    reached: int
    end: int
    open_since: float | None = None


class RangeCursor:
    """Reads committed records of several ranges side by side, each range in offset order.

    No record is read twice or skipped. A range that was read to its end, or left, is unassigned,
    so it costs the broker nothing any more.
    """

    def __init__(self, consumer: Consumer, ranges: Sequence[OffsetRange]) -> None:
        self._consumer = consumer
        self._progress = {r.place: _Progress(r.start, r.end) for r in ranges}
        self._open = set(self._progress)
        self._telling = {r.place for r in ranges if r.tells_moves}
        self._silent_s = 0.0
        for r in ranges:
            if r.start >= r.end:
                self.leave(r.place)

    @property
    def is_open(self) -> bool:
        """Whether a range is not read to its end yet."""
        return bool(self._open)

    def is_reading(self, partition: Partition) -> bool:
        """Whether the range of this partition is neither read to its end nor left."""
        return partition in self._open

    def reached(self, partition: Partition) -> int:
        """Offset up to which a range was read (exclusive).

        It is the range's end when the range was read as a whole, and less when it was left, or
        when a transaction stayed open below the end.
        """
        return self._progress[partition].reached

    def leave(self, partition: Partition) -> None:
        """Read no more of a range."""
        if partition in self._open:
            self._open.remove(partition)
            left = TopicPartition(partition.topic, partition.number)
            self._consumer.incremental_unassign([left])

    def read(self, most: int = CHUNK) -> list[Records]:
        """The records that have arrived, at most ``most``; waits a moment for the first.

        An empty list does not mean that there are no more: see ``is_open``.

        Raises:
            ContractError: A range's start does not exist any more.
            StackError: Kafka cannot be read.
        """
        asked = monotonic()
        messages = self._messages(most)
        found = [
            records
            for number, of_number in groupby(messages, Message.partition)
            for topic, group in groupby(of_number, Message.topic)
            for records in self._take(Partition(topic, number), list(group))
        ]
        now = monotonic()
        for partition in list(self._open):
            since = self._progress[partition].open_since
            if since is not None and now - since > _OPEN_TRANSACTION_WAIT_S:
                self.leave(partition)
        self._silent_s = 0.0 if messages else self._silent_s + now - asked
        if self._open and self._silent_s > _STALL_S:
            first = min(self._open)
            raise StackError(
                f"no record of {first} came within {_STALL_S:.0f} s, offset {self.reached(first)}",
                hint="check the Kafka brokers",
                code="SM-4108",
            )
        return found

    def _messages(self, most: int) -> list[Message]:
        """The messages that have arrived; waits a moment if there is none yet."""
        message = self._consumer.poll(_POLL_S)
        if message is None:
            return []
        if most == 1:
            return [message]
        return [message, *self._consumer.consume(min(most, CHUNK) - 1, 0)]

    def _take(self, partition: Partition, messages: list[Message]) -> Iterator[Records]:
        if not any(map(Message.error, messages)):
            yield from self._take_records(partition, messages)
            return
        for failed, group in groupby(messages, lambda m: m.error() is not None):
            if failed:
                for message in group:
                    self._take_error(partition, message)
            else:
                yield from self._take_records(partition, list(group))

    def _take_records(self, partition: Partition, messages: list[Message]) -> Iterator[Records]:
        if partition not in self._open:
            return
        progress = self._progress[partition]
        offsets = list(map(Message.offset, messages))
        told = told_value if partition in self._telling else Message.value
        values = list(map(told, messages))
        if offsets[-1] + 1 >= progress.end:
            within = bisect_left(offsets, progress.end)
            offsets, values = offsets[:within], values[:within]
            progress.reached = progress.end
            self.leave(partition)
        else:
            # Offsets without a record are commit markers or aborted records: nothing is lost.
            progress.reached = offsets[-1] + 1
            progress.open_since = None
        if offsets:
            yield Records(partition, offsets, values)

    def _take_error(self, partition: Partition, message: Message) -> None:
        error, progress = message.error(), self._progress.get(partition)
        where, reached = str(partition), progress.reached if progress else 0
        if progress is not None and partition not in self._open:
            return
        if error.code() == KafkaError._PARTITION_EOF and progress is not None:
            progress.reached = max(reached, min(message.offset(), progress.end))
            if progress.reached >= progress.end:
                self.leave(partition)
            else:
                progress.open_since = progress.open_since or monotonic()
        elif error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
            raise ContractError(
                f"offset {reached} of {where} does not exist: {error.str()}",
                hint="retention removed rows that were not applied, or the topic was made anew: "
                "take a new snapshot of the shard",
                code="SM-2118",
            )
        elif error.fatal() or not error.retriable():
            raise StackError(
                f"reading {where}: {error.str()}", hint="check the Kafka brokers", code="SM-4108"
            ) from KafkaException(error)


def told_value(message: Message) -> bytes | None:
    """A record's value, marked when the record is one of a changed primary key."""
    value: bytes | None = message.value()
    headers = message.headers() or ()
    is_moved = value is not None and any(name in MOVES for name, _ in headers)
    return MovedRow(value) if is_moved and value is not None else value


def row_consumer(kafka: Kafka, fetch_wait_ms: int = SMALL_FETCH_WAIT_MS) -> Consumer:
    """A consumer for row topics: read committed, assigned by hand, no offsets kept in Kafka.

    When there are no more records, a broker may delay its answer by ``fetch_wait_ms``.
    """
    return assigned_consumer(
        kafka,
        "shardmerge-sink",
        {
            "enable.partition.eof": True,
            "fetch.wait.max.ms": fetch_wait_ms,
            "max.partition.fetch.bytes": 8 << 20,  # few partitions at a time: fewer round trips
            "fetch.queue.backoff.ms": 5,
            "receive.message.max.bytes": MAX_ROW_BYTES + (1 << 20),
            "queued.max.messages.kbytes": 65_536,
            "socket.nagle.disable": True,
        },
    )
