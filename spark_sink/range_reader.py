"""Reads half-open offset ranges of row topics."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from shardmerge.schemas.errors import ContractError, StackError
from shardmerge.schemas.topics import MAX_ROW_BYTES

_CHUNK = 10_000
_POLL_S = 0.2
_METADATA_S = 10.0
_OPEN_TRANSACTION_WAIT_S = 1.0
"""How long to wait for a transaction that is still open below a range's end."""
_STALL_S = 60.0
"""No record, no end of partition: the broker is not there."""


class RangeCursor:
    """Iterates over ``(offset, value)`` of the committed records of a range, in offset order.

    An iteration that was left goes on where it stood: nothing is read twice or passed over.

    Attributes:
        reached: Offset up to which everything was read (exclusive): the range's end after a
            whole iteration, unless a transaction stayed open below it.
    """

    def __init__(
        self, consumer: Consumer, topic: str, partition: int, start: int, end: int
    ) -> None:
        """Point the consumer at the range; raises ``StackError`` when no broker answers."""
        self.reached = start
        self._consumer = consumer
        self._where = f"{topic}/{partition}"
        self._end = end
        self._records = self._read()
        try:
            # The client looks for the leader of a topic that is new to it only once a second;
            # asked for its metadata it knows at once (measured: 1.0 s against 4 ms a topic).
            consumer.list_topics(topic, timeout=_METADATA_S)
            consumer.assign([TopicPartition(topic, partition, start)])
        except KafkaException as error:
            raise StackError(
                f"reading {self._where}: {error.args[0].str()}", hint="check the Kafka brokers"
            ) from error

    def __iter__(self) -> Iterator[tuple[int, bytes | None]]:
        return self._records

    def _read(self) -> Iterator[tuple[int, bytes | None]]:
        end, open_since = self._end, None
        heard = monotonic()
        while self.reached < end:
            for message in self._messages():
                heard = monotonic()
                if (error := message.error()) is None:
                    offset = message.offset()
                    if offset >= end:
                        self.reached = end
                        return
                    # Offsets between two records are commit markers: nothing is lost.
                    self.reached = offset + 1
                    open_since = None
                    yield offset, message.value()
                elif error.code() == KafkaError._PARTITION_EOF:
                    self.reached = max(self.reached, min(message.offset(), end))
                    if self.reached >= end:
                        return
                    open_since = open_since or monotonic()
                else:
                    self._raise(error)
            if open_since is not None and monotonic() - open_since > _OPEN_TRANSACTION_WAIT_S:
                return
            if monotonic() - heard > _STALL_S:
                raise StackError(
                    f"no record of {self._where} came within {_STALL_S:.0f} s,"
                    f" offset {self.reached}",
                    hint="check the Kafka brokers",
                )

    def _messages(self) -> list[Any]:
        """One message when there is one soon, and all that are there with it."""
        message = self._consumer.poll(_POLL_S)
        if message is None:
            return []
        if self._end - self.reached == 1 or message.error() is not None:
            return [message]
        return [message, *self._consumer.consume(_CHUNK, 0)]

    def _raise(self, error: KafkaError) -> None:
        if error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
            raise ContractError(
                f"offset {self.reached} of {self._where} does not exist: {error.str()}",
                hint="retention removed rows that were not applied, or the topic was made anew: "
                "take a new snapshot of the shard",
            )
        if error.fatal() or not error.retriable():
            raise StackError(
                f"reading {self._where}: {error.str()}", hint="check the Kafka brokers"
            ) from KafkaException(error)


def row_consumer(bootstrap_servers: str) -> Consumer:
    """A consumer for row topics: read committed, assigned by hand, no offsets kept in Kafka."""
    return Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "shardmerge-sink",  # needed by the client, never joined
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 1,  # ranges end below what is there: waiting only costs
            "max.partition.fetch.bytes": 8 << 20,  # a range is one partition: fewer round trips
            "fetch.queue.backoff.ms": 5,
            "receive.message.max.bytes": MAX_ROW_BYTES + (1 << 20),
            "queued.max.messages.kbytes": 65_536,
            "socket.nagle.disable": True,
        }
    )
