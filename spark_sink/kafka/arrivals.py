"""Ends a wait of the sink when a record arrives in Kafka, so that the sink need not poll.

Theory of operation. One consumer follows the ends of all partitions. The brokers keep its request
open until a committed record arrives. Its arrival ends a wait. A missed arrival costs time and
nothing else, because each wait is bounded and the sink reads the topics itself.

The records that ended a wait are there already, so a small batch need not fetch them once more
(``seen``). The consumer gives the committed records of a partition without gaps. So what it gave in
one wait is all that is committed between the offset at which it stood before and the last record.

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

from confluent_kafka import Consumer, Message, TopicPartition

from shardmerge.connectors.access.kafka import assigned_consumer
from shardmerge.schemas.pipeline.settings import Kafka
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka.windows.window import Kept

from .range_reader import told_value

_REQUEST_MS, _LONG_REQUEST_MS = 500, 2_500
"""Milliseconds for which the brokers keep a request open while nothing arrives; and with ``_LONG``
partitions. Each request and its answer name all of them, and librdkafka searches its lists from
their beginnings: 10,000 partitions cost 0.28 of a processor at 500 ms."""
_LONG = 2_000
_MANY = 100
"""This many records in one wait are a backlog: the sink then need not wait for single rows. A
consumer that is so far behind the sink goes on at the end."""
_CHUNK = 1_000
_SHARE = 20
"""New partitions are followed after this many times the time that the last ones took. librdkafka
sorts all of them each time; while thousands of shards are added, several are followed together."""


class Arrivals:
    """Follows partitions, and sees committed records only.

    Args:
        kafka: The Kafka with the partitions.
        always: Topics of one partition that are always followed, however much arrives there: their
            records are few and urgent.

    Attributes:
        rows_of: The partitions of other topics in which the last wait saw records → the offset
            behind the last of them; 0 after an error, and where records are a backlog.
        seen: Those of these partitions whose records the last wait has as a whole → the records.
    """

    def __init__(self, kafka: Kafka, always: AbstractSet[str]) -> None:
        self._kafka = kafka
        self._always = always
        self._consumer: Consumer | None = None
        self.rows_of: Mapping[Partition, int] = {}
        self.seen: Mapping[Partition, Kept] = {}
        self._followed: set[Partition] = set()
        self._places: dict[Partition, int] = {}
        """Partition → where the consumer stands: all committed records before that were given."""
        self._read_to: dict[Partition, int] = {}
        """Partition of a topic in ``always`` → up to where the sink has read it."""
        self._found: set[Partition] = set()
        self._unfollowed: AbstractSet[Partition] = frozenset()
        self._changes = 0
        """How often what is followed has changed."""
        self._rows: tuple[object, int, int] | None = None
        self._known: tuple[object, int, int] | None = None
        """The mappings for which the work was done last, with their lengths and ``_changes``."""
        self._new: dict[Partition, int] = {}
        self._add_at = 0.0
        self._complete_at = 0.0
        self._request_ms = _REQUEST_MS

    def follow(self, rows: Mapping[Partition, int], own: Mapping[Partition, int]) -> bool:
        """Follow these partitions, and no others.

        Args:
            rows: Whole partition of rows → the offset to follow it from, if it is not followed
                already. Between two calls partitions may be added to a mapping, not taken away.
            own: The partitions of topics in ``always`` → up to where the sink has read them.

        Returns:
            Whether an arrival in any of them ends a wait for sure. False just after a partition was
            added, because the request that is open does not name the new partition yet.
        """
        self._open(_REQUEST_MS if len(rows) < _LONG else _LONG_REQUEST_MS)
        self._read_to = dict(own)
        if not self._is_as_before(self._rows, rows):
            ends = {**rows, **own}
            self._leave(self._followed - ends.keys())
            self._new = {p: ends[p] for p in ends.keys() - self._followed}
            self._add()
            if not self._new:
                self._rows = rows, len(rows), self._changes
        return not self._new and time.monotonic() >= self._complete_at

    def follow_also(self, ends: Mapping[Partition, int]) -> None:
        """Follow partitions that are not followed yet, now or in a while.

        Args:
            ends: Whole partition of rows → the offset to follow it from.
        """
        self._open(self._request_ms)
        self._new.update((p, end) for p, end in ends.items() if p not in self._followed)
        self._add()

    def _open(self, request_ms: int) -> None:
        """Make a consumer; another one if its requests are to stay open for another time."""
        if request_ms != self._request_ms:
            self.close()
        if self._consumer is None:
            self._consumer = _consumer(self._kafka, request_ms)
            self._request_ms = request_ms

    def _add(self) -> None:
        """Follow the new partitions, unless the last ones were followed just now."""
        began = time.monotonic()
        if self._consumer is None or not self._new or began < self._add_at:
            return
        asked = [TopicPartition(p.topic, p.number, end) for p, end in self._new.items()]
        self._consumer.incremental_assign(asked)
        self._followed |= self._new.keys()
        self._places |= self._new
        self._new = {}
        self._changes += 1
        now = time.monotonic()
        self._add_at = now + _SHARE * (now - began)
        self._complete_at = now + 2 * self._request_ms / 1000

    def _is_as_before(
        self, before: tuple[object, int, int] | None, now: Mapping[Partition, object]
    ) -> bool:
        """Whether a mapping has the partitions for which the work was done last."""
        if before is None:
            return False
        mapping, length, changes = before
        return mapping is now and length == len(now) and changes == self._changes

    def wait(self, timeout_s: float, *, rows: bool) -> bool:
        """Wait until something arrives.

        Args:
            timeout_s: Longest wait, in seconds.
            rows: Whether any record ends the wait; else only a record of a topic in ``always``.

        Returns:
            Whether a record of a topic in ``always`` has arrived that the sink has not read.
        """
        self.rows_of, self.seen = {}, {}
        if self._consumer is None:
            return False
        until = time.monotonic() + timeout_s
        found, behind = Counter[Partition](), dict[Partition, int]()
        given: dict[Partition, list[Message]] = {}
        while (first := self._consumer.poll(max(0.0, until - time.monotonic()))) is not None:
            late: set[Partition] = set()
            for message in (first, *self._consumer.consume(_CHUNK, timeout=0)):
                # An error of one partition ends the wait, too: the sink will meet it as it reads.
                # An error without a topic says that brokers are away.
                if (topic := message.topic()) is None:
                    continue
                partition = Partition(topic, message.partition() or 0)
                offset = message.offset() if message.error() is None else None
                lag = 0 if offset is None else self._read_to.get(partition, 0) - offset
                if lag <= 0:
                    found[partition] += 1
                    behind[partition] = 0 if offset is None else offset + 1
                    given.setdefault(partition, []).append(message)
                elif lag > _MANY:
                    late.add(partition)
            self._leave(late)
            if any(partition.topic in self._always for partition in found) or (rows and found):
                break
        awaited = {partition for partition in found if partition.topic in self._always}
        self.rows_of = {p: end for p, end in behind.items() if p not in awaited}
        self._found.update(found)
        if found.total() >= _MANY:
            self._leave(self.rows_of.keys())
            self.rows_of = dict.fromkeys(self.rows_of, 0)
        self._take(given)
        return bool(awaited)

    def _take(self, given: Mapping[Partition, list[Message]]) -> None:
        """Note where the consumer stands behind the records that it gave, and keep those of rows.

        After an error, and after partitions were left, nobody knows where it stood before.
        """
        seen = {}
        for partition, messages in given.items():
            start, end = self._places.pop(partition, None), self.rows_of.get(partition, 0)
            if any(message.error() is not None for message in messages):
                continue
            offsets = [message.offset() or 0 for message in messages]
            if partition in self._followed:
                self._places[partition] = offsets[-1] + 1
            if start is not None and start <= offsets[0] and end:
                seen[partition] = Kept(start, end, offsets, list(map(told_value, messages)))
        self.seen = seen

    def take_found(self, known: Mapping[Partition, object]) -> AbstractSet[Partition]:
        """The partitions in which a record was seen since the last call.

        Those of ``known`` that are not followed count, too: there a record would not be seen.
        Between two calls partitions may be added to a mapping, not taken away.
        """
        if not self._is_as_before(self._known, known):
            self._unfollowed = known.keys() - self._followed
            self._known = known, len(known), self._changes
        found, self._found = self._unfollowed | self._found, set()
        return found

    def close(self) -> None:
        """End the connections. The next ``follow`` makes a new consumer."""
        if self._consumer is not None:
            self._consumer.close()
        self._consumer = None
        self._followed.clear()
        self._places.clear()
        self._new, self._add_at = {}, 0.0
        self._changes += 1

    def _leave(self, partitions: AbstractSet[Partition]) -> None:
        if self._consumer is not None and partitions:
            asked = [TopicPartition(p.topic, p.number) for p in partitions]
            self._consumer.incremental_unassign(asked)
            self._followed -= partitions
            for partition in partitions:
                self._places.pop(partition, None)
            self._changes += 1


def _consumer(kafka: Kafka, request_ms: int) -> Consumer:
    made = assigned_consumer(
        kafka,
        "shardmerge-sink-arrivals",
        {
            "client.id": "shardmerge-sink-arrivals",
            "fetch.wait.max.ms": request_ms,
            "fetch.error.backoff.ms": 100,
            # A backlog's records are thrown away, so few are fetched ahead.
            "fetch.message.max.bytes": 1_024,
            "queued.max.messages.kbytes": 1_024,
            "fetch.queue.backoff.ms": 50,
            "socket.nagle.disable": True,
        },
    )
    made.assign([])
    return made
