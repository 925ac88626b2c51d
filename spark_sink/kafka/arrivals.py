"""Ends a wait of the sink when a record arrives in Kafka, so that the sink need not poll.

Theory of operation. One consumer follows the ends of all partitions. The brokers keep its request
open until a committed record arrives. The consumer throws the record away: its arrival only ends a
wait. A missed arrival costs time and nothing else, because each wait is bounded and the sink reads
the topics itself.

While many rows arrive, the sink does not wait. The consumer then leaves their partitions, so that
brokers do not send the rows twice. It follows them again, from their ends, at the next wait.

The other topics are never left, and a broker sends their records one after the other, since few are
fetched ahead. So after thousands of decisions this consumer is far behind the sink. A record that
the sink has read already ends no wait, and a consumer that is far behind goes on at the end.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from confluent_kafka import Consumer, TopicPartition

from shardmerge.connectors.access.kafka import assigned_consumer
from shardmerge.schemas.pipeline.settings import Kafka
from shardmerge.spark_sink.barrier.partitions import Partition

_REQUEST_MS, _LONG_REQUEST_MS = 500, 2_500
"""Milliseconds for which the brokers keep a request open while nothing arrives; and with ``_LONG``
partitions. Each request and its answer name all of them, and librdkafka searches its lists from
their beginnings: 10,000 partitions cost 0.28 of a processor at 500 ms."""
_LONG = 2_000
_MANY = 100
"""This many records in one wait are a backlog: the sink then need not wait for single rows. A
consumer that is so far behind the sink goes on at the end."""
_CHUNK = 1_000


class Arrivals:
    """Follows partitions, and sees committed records only.

    Args:
        kafka: The Kafka with the partitions.
        always: Topics of one partition that are always followed, however much arrives there: their
            records are few and urgent.

    Attributes:
        rows_of: The partitions of other topics in which the last wait saw records.
    """

    def __init__(self, kafka: Kafka, always: AbstractSet[str]) -> None:
        self._kafka = kafka
        self._always = always
        self._consumer: Consumer | None = None
        self.rows_of: AbstractSet[Partition] = frozenset()
        self._followed: set[Partition] = set()
        self._read_to: dict[Partition, int] = {}
        """Partition of a topic in ``always`` → up to where the sink has read it."""
        self._found: set[Partition] = set()
        self._complete_at = 0.0
        self._request_ms = _REQUEST_MS

    def follow(self, ends: Mapping[Partition, int]) -> bool:
        """Follow these partitions, and no others.

        Args:
            ends: Whole partition → the offset to follow it from, if it is not followed already.
                Partitions of topics in ``always`` were read by the sink up to there.

        Returns:
            Whether an arrival in any of them ends a wait for sure. False just after a partition was
            added, because the request that is open does not name the new partition yet.
        """
        now = time.monotonic()
        request_ms = _REQUEST_MS if len(ends) < _LONG else _LONG_REQUEST_MS
        if request_ms != self._request_ms:
            self.close()
        if self._consumer is None:
            self._consumer = _consumer(self._kafka, request_ms)
            self._request_ms = request_ms
        self._read_to = {p: end for p, end in ends.items() if p.topic in self._always}
        if gone := self._followed - ends.keys():
            self._leave(gone)
        if added := ends.keys() - self._followed:
            asked = [TopicPartition(p.topic, p.number, ends[p]) for p in added]
            self._consumer.incremental_assign(asked)
            self._followed |= added
            self._complete_at = now + 2 * request_ms / 1000
        return now >= self._complete_at

    def wait(self, timeout_s: float, *, rows: bool) -> bool:
        """Wait until something arrives.

        Args:
            timeout_s: Longest wait, in seconds.
            rows: Whether any record ends the wait; else only a record of a topic in ``always``.

        Returns:
            Whether a record of a topic in ``always`` has arrived that the sink has not read.
        """
        self.rows_of = frozenset()
        if self._consumer is None:
            return False
        until = time.monotonic() + timeout_s
        found: Counter[Partition] = Counter()
        while (first := self._consumer.poll(max(0.0, until - time.monotonic()))) is not None:
            late: set[Partition] = set()
            for message in (first, *self._consumer.consume(_CHUNK, timeout=0)):
                # An error of one partition ends the wait, too: the sink will meet it as it reads.
                # An error without a topic says that brokers are away.
                if (topic := message.topic()) is None:
                    continue
                partition = Partition(topic, message.partition() or 0)
                lag = 0 if message.error() else self._read_to.get(partition, 0) - message.offset()
                if lag <= 0:
                    found[partition] += 1
                elif lag > _MANY:
                    late.add(partition)
            self._leave(late)
            if any(partition.topic in self._always for partition in found) or (rows and found):
                break
        awaited = {partition for partition in found if partition.topic in self._always}
        self.rows_of = found.keys() - awaited
        self._found.update(found)
        if found.total() >= _MANY:
            self._leave(self.rows_of)
        return bool(awaited)

    def take_found(self, known: AbstractSet[Partition]) -> AbstractSet[Partition]:
        """The partitions in which a record was seen since the last call.

        Those of ``known`` that are not followed count, too: there a record would not be seen.
        """
        found = (known - self._followed) | self._found
        self._found.clear()
        return found

    def close(self) -> None:
        """End the connections. The next ``follow`` makes a new consumer."""
        if self._consumer is not None:
            self._consumer.close()
        self._consumer = None
        self._followed.clear()

    def _leave(self, partitions: AbstractSet[Partition]) -> None:
        if self._consumer is not None and partitions:
            asked = [TopicPartition(p.topic, p.number) for p in partitions]
            self._consumer.incremental_unassign(asked)
            self._followed -= partitions


def _consumer(kafka: Kafka, request_ms: int) -> Consumer:
    made = assigned_consumer(
        kafka,
        "shardmerge-sink-arrivals",
        {
            "client.id": "shardmerge-sink-arrivals",
            "fetch.wait.max.ms": request_ms,
            "fetch.error.backoff.ms": 100,
            # The records are thrown away, so few are fetched ahead.
            "fetch.message.max.bytes": 1_024,
            "queued.max.messages.kbytes": 1_024,
            "fetch.queue.backoff.ms": 50,
            "socket.nagle.disable": True,
        },
    )
    made.assign([])
    return made
