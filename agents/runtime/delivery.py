"""Each source record takes effect exactly once, on top of Faust's at-least-once delivery.

Theory of operation, for records of one partition that came together (``Carrier.handle``):

1. If the table has records at hand, the work on them was interrupted: their stored effects are
   performed, byte for byte, before anything else is looked at (steps 4 and 5). So whichever record
   comes first after a restart, it is folded onto complete rows, and no later record's rows are
   lost.
2. The source partition's journal row tells which of its records was folded last. That one and older
   ones are skipped; a record after a gap is folded only if the gap holds no record. The consumer
   that brought the record knows that (``fetched_records``); where it does not, the gap is read
   again (``GapCheck``). Else the worker stops before the acknowledgement, and the restart reads
   from the committed offset.
3. Each record is folded: a pure function of the record and of the rows that the records before it
   leave (``RecordGroup``). All effects of the records, the journals' rows among them, are put as
   one row, the records at hand, and this row's changelog record is awaited: from now on the effects
   are decided, whichever worker performs them.
4. The effects' rows are put and the effects' records are sent; all are acknowledged by the broker.
   Requests to act on a record (topics in ``later``) are sent after that record is acknowledged.
5. The row of the records at hand is deleted. Nobody waits for that: where the deletion is lost, the
   same effects are performed once more, with equal bytes.
6. The records are acknowledged. Faust commits their offsets some time later.

So records that come together need two waits for the broker, not two each. Step 3 waits for the
changelog: neither the local table nor the changelog gets rows of a record before the changelog has
it among the records at hand; and there is only one such row at a time. One agent handles all
records of a table partition one after the other, even if they are of several topics. Readers of the
sent records recognise a repeated one by its identity.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any, TypeAlias

from aiokafka import AIOKafkaConsumer, TopicPartition
from mode import CrashingSupervisor

from shardmerge.agents.handling import effects as journal
from shardmerge.agents.handling.effects import (
    Arrival,
    Effects,
    Fold,
    JournalEntry,
    Send,
    SourceRecord,
)
from shardmerge.agents.handling.record_group import MAX_RECORDS, RecordGroup
from shardmerge.connectors.access.aiokafka_arguments import aiokafka_arguments
from shardmerge.connectors.event_log import logger
from shardmerge.connectors.failpoints import Passed, nowhere
from shardmerge.schemas.model.errors import InternalError, StackError
from shardmerge.schemas.pipeline.settings import Kafka

log = logger(__name__)

GAP_CHECK_TIMEOUT_S = 30.0
BLOCK_CACHE_BYTES = 32 * 1024 * 1024
"""Per partition database; Faust's default is 2 GiB."""
WRITE_BUFFER_BYTES = 8 * 1024 * 1024


class SkippedRecords(InternalError):
    """The stream jumped over records. The worker must stop; its restart reads them."""


class GapCheck:
    """Tells whether offsets between two records hold records, by reading them again.

    It is needed where a consumer has not read on from the record before, such as after a restart.
    The check has its own consumers, one per partition and apart from Faust's. The first record that
    they read from the gap's start must be the record that just came.
    """

    def __init__(self, kafka: Kafka) -> None:
        self._kafka = kafka
        self._readers: dict[tuple[str, int], tuple[Any, int]] = {}
        """By topic and partition: the consumer, and the offset from which it reads next."""

    async def first_record(self, topic: str, partition: int, start_offset: int) -> int:
        """Offset of the first committed record at or after ``start_offset``.

        Raises:
            StackError: The broker did not answer in time.
        """
        tp = TopicPartition(topic, partition)
        consumer, at = self._readers.get(tp) or (await self._open(tp), -1)
        if at != start_offset:
            consumer.seek(tp, start_offset)
        try:
            record = await asyncio.wait_for(consumer.getone(tp), GAP_CHECK_TIMEOUT_S)
        except TimeoutError:
            raise StackError(
                f"no record of {topic}/{partition} from offset {start_offset} on could be read "
                f"within {GAP_CHECK_TIMEOUT_S:.0f} s",
                hint="check the broker; the worker goes on from the same place when restarted",
                code="SM-4108",
            ) from None
        offset: int = record.offset
        self._readers[tp] = (consumer, offset + 1)
        return offset

    async def _open(self, tp: TopicPartition) -> Any:
        consumer = AIOKafkaConsumer(
            **aiokafka_arguments(self._kafka),
            group_id=None,
            enable_auto_commit=False,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            max_partition_fetch_bytes=256 * 1024,
        )
        await consumer.start()
        consumer.assign([tp])
        self._readers[tp] = (consumer, -1)
        return consumer

    async def stop(self) -> None:
        """Close the connections; a later check opens them again."""
        while self._readers:
            _, (consumer, _) = self._readers.popitem()
            await consumer.stop()


Wire: TypeAlias = Callable[[Send], bytes]
Translate: TypeAlias = Callable[[SourceRecord], Coroutine[Any, Any, SourceRecord]]


async def unchanged(record: SourceRecord) -> SourceRecord:
    """The record unchanged: the fold reads it as it came."""
    return record


class Carrier:
    """Carries one agent's records through its fold: the numbered steps above.

    Args:
        translate: Turns a record into what the fold reads; it may wait for the schema registry.
        wire: The bytes in which a record is sent.
        check: Called before each write; it does not return when this worker may not write.
        later: Topics whose records are sent after those of the other topics are acknowledged:
            readers act on them at once, and must find the other records by then.

    Attributes:
        passed: Called at each place of ``runtime.failpoints.PLACES``.
        completed: How many records were handled, repeated ones included.
        next_offsets: Topic and partition → the offset of the record that is being handled; between
            records, the offset behind the last one that was handled.
    """

    def __init__(
        self,
        table: Any,
        fold: Fold,
        gaps: GapCheck,
        outputs: Mapping[str, Any],
        passed: Passed = nowhere,
        *,
        translate: Translate = unchanged,
        wire: Wire = attrgetter("value"),
        check: Passed = nowhere,
        later: Iterable[str] = (),
    ) -> None:
        self._check = check
        self._later = frozenset(later)
        self._translate = translate
        self._wire = wire
        self._table = table
        self._fold = fold
        self._gaps = gaps
        self._outputs = outputs
        self.passed = passed
        self.completed = 0
        self.next_offsets: dict[tuple[str, int], int] = {}

    async def handle(self, *records: SourceRecord) -> None:
        """Perform the effects of records; when this returns, they may be acknowledged.

        Args:
            records: Of one partition of the table, in the order in which they came; at least one.

        Raises:
            SkippedRecords: Records before one of these never came. What stands before that one is
                performed.
        """
        for record in reversed(records):
            self.next_offsets[record.topic, record.partition] = record.offset
        partition = records[0].partition
        await self._complete(partition)
        group = RecordGroup(self._table)
        for record in records:
            try:
                await self._fold_onto(group, record)
            except Exception:
                await self._perform_group(partition, group)
                raise
            if group.is_full:
                await self._perform_group(partition, group)
                group = RecordGroup(self._table)
        await self._perform_group(partition, group)
        for record in records:
            self.next_offsets[record.topic, record.partition] = record.offset + 1
        self.completed += len(records)

    async def _perform_group(self, partition: int, group: RecordGroup) -> None:
        if (entry := group.at_hand) is not None:
            await self._perform(partition, entry)

    async def _fold_onto(self, group: RecordGroup, record: SourceRecord) -> None:
        done = group.journal(record.topic, record.partition)
        arrival = journal.classify(done, record.offset)
        if arrival is Arrival.REPEATED and done is not None and done.effects != Effects():
            # Tables of the first format kept the effects here, and no records at hand.
            group.add(record, done.effects)
        elif arrival in (Arrival.PAST, Arrival.REPEATED):
            log.info(
                "repeat_skipped",
                topic=record.topic,
                partition=record.partition,
                offset=record.offset,
            )
        else:
            if arrival is Arrival.BEYOND:
                await self._check_gap(done, record)
            group.add(record, self._fold(group, await self._translate(record)))

    async def _complete(self, partition: int) -> None:
        """Perform what was interrupted in this partition of the table, if anything was."""
        stored = self._table.get(journal.at_hand_key(partition))
        if stored is not None:
            entry = journal.from_bytes(stored)
            log.info("record_completed", partition=partition, offset=entry.offset)
            await self._perform(partition, entry)

    async def _check_gap(self, entry: JournalEntry | None, record: SourceRecord) -> None:
        start = 0 if entry is None else entry.offset + 1
        if record.empty_since is not None and record.empty_since <= start:
            return  # transactions leave commit markers, so such a gap is usual
        first = await self._gaps.first_record(record.topic, record.partition, start)
        if first < record.offset:
            log.error(
                "records_skipped",
                topic=record.topic,
                partition=record.partition,
                offset=record.offset,
                expected_offset=first,
            )
            raise SkippedRecords(
                f"{record.topic}/{record.partition} came with offset {record.offset}, but there is "
                f"a record at {first} that did not come",
                hint="restart the worker: it reads on from the record that did not come",
                code="SM-2111",
            )

    async def _perform(self, partition: int, entry: JournalEntry) -> None:
        at_hand = journal.at_hand_key(partition)
        self._put(at_hand, journal.to_bytes(entry))
        await self._table.settle()
        self.passed("after-settle")
        for row, value in entry.effects.puts.items():
            self._put(row, value)
        sends = entry.effects.sends
        pending = [await self._send(send) for send in sends if send.topic not in self._later]
        await asyncio.gather(self._table.settle(), *pending)
        pending = [await self._send(send) for send in sends if send.topic in self._later]
        await asyncio.gather(*pending)
        self.passed("after-settle")
        self._put(at_hand, None)

    def _put(self, row: bytes, value: bytes | None) -> None:
        self.passed("before-put")
        self._check("before-put")
        if value is not None:
            self._table[row] = value
        elif self._table.get(row) is not None:
            del self._table[row]
        else:
            # Local rows can be ahead of the changelog: the deletion may not be there yet.
            self._table.send_changelog(self._table.partition_for_key(row), row, None)
        self.passed("after-put")

    async def _send(self, send: Send) -> Any:
        topic = self._outputs[send.topic]
        headers = [(name, text.encode()) for name, text in send.headers]
        self.passed("before-send")
        self._check("before-send")
        pending = await topic.send(key=send.key, value=self._wire(send), headers=headers)
        self.passed("after-send")
        return pending


def carry(app: Any, name: str, source: Any, carrier: Carrier) -> Any:
    """Make the Faust agent that gives the records of ``source`` to ``carrier``.

    Records that have come while others were handled are handled together.

    The agent uses ``noack`` and acknowledges last, and its supervisor crashes the app. With Faust's
    defaults an exception acknowledges the record that caused it, and the record is lost.
    """

    async def agent(stream: Any) -> None:
        async for first in stream.noack().events():
            events = [first, *_waiting(stream.channel.queue)]
            # Partitions one after the other; within one, the order in which its records came.
            for partition in dict.fromkeys(event.message.partition for event in events):
                group = [event for event in events if event.message.partition == partition]
                # Faust reads and writes rows of the partition whose event is the stream's.
                stream._set_current_event(group[0])
                await carrier.handle(*map(_record, group))
                for event in group:
                    carrier.passed("before-ack")
                    event.ack()
                    carrier.passed("after-ack")
            stream._set_current_event(first)

    return app.agent(source, name=name, concurrency=1, supervisor_strategy=CrashingSupervisor)(
        agent
    )


def _waiting(queue: Any) -> Iterator[Any]:
    """The events that the stream has already; none is waited for."""
    for _ in range(MAX_RECORDS - 1):
        if queue.empty():
            return
        yield queue.get_nowait()


def _record(event: Any) -> SourceRecord:
    message = event.message
    return SourceRecord(
        message.topic,
        message.partition,
        message.offset,
        message.key,
        message.value,
        message.empty_since,
    )


def bytes_topic(app: Any, *names: str, partitions: int | None = None) -> Any:
    """A Faust topic of plain bytes; it must exist, see ``app``."""
    return app.topic(
        *names,
        partitions=partitions,
        key_type=bytes,
        value_type=bytes,
        key_serializer="raw",
        value_serializer="raw",
        allow_empty=True,
    )


def bytes_table(app: Any, name: str, *, partitions: int) -> Any:
    """A Faust table of bytes in RocksDB.

    ``key_type`` is set, since a table without one never ends its recovery; the driver is an option
    of the table, since Faust ignores it in the store's URL.
    """
    return app.Table(
        name,
        partitions=partitions,
        key_type=bytes,
        value_type=bytes,
        options={
            "driver": "rocksdict",
            "block_cache_size": BLOCK_CACHE_BYTES,
            "write_buffer_size": WRITE_BUFFER_BYTES,
        },
    )
