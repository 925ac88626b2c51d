"""Copies of the tables of other workers, so that a takeover reads next to nothing.

Theory of operation:

1. A worker has the partitions of the tables that Kafka's group gives it: the active ones. It
   copies all others from their changelogs into its own RocksDB, by a consumer without a group.
2. A batch of records is applied first, and the offset of its last record is stored behind it. So
   the stored offset never runs ahead of the copy, whenever the worker is killed. What is applied
   twice gives the same rows.
3. When the group changes, the copying ends before Faust opens a partition (``TableManager``). Faust
   then reads an active partition's changelog from the stored offset on: only what the copy lacks.
4. The copying begins again when the streams flow (``Recovery``): a recovery never waits for it.

Faust's own standby tables (``table_standby_replicas``) are not used. Their changelog records pass
the queue that is cleared whenever the streams' queues are. In each rebalance this happens after the
seek of the standby partitions: what is cleared is never read again, while the records behind it are
applied and move the stored offset. While a group has workers of an earlier version, these must not
be given standby partitions either, so the group's assignment knows nothing of the copies.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError
from faust.exceptions import ConsistencyError
from faust.types import TP

from shardmerge.connectors.access.aiokafka_arguments import aiokafka_arguments
from shardmerge.connectors.event_log import logger
from shardmerge.schemas.pipeline.settings import Kafka

log = logger(__name__)

POLL_MS = 500
BATCH_RECORDS = 500
BATCH_BYTES = 1024 * 1024
"""A batch is applied in one piece, and the worker does nothing else meanwhile."""
PAUSE_S = 3.0
"""Between attempts, while the broker cannot be read."""


@dataclass(frozen=True, slots=True)
class CopiedMessage:
    """What a store of Faust reads of a changelog record's message."""

    tp: TP
    partition: int
    offset: int
    key: bytes
    value: bytes | None


@dataclass(frozen=True, slots=True)
class CopiedRecord:
    """A changelog record in the form of Faust's events."""

    message: CopiedMessage


def copied_record(record: Any) -> CopiedRecord:
    """A record of aiokafka's consumer as a store of Faust reads it."""
    tp = TP(record.topic, record.partition)
    return CopiedRecord(
        CopiedMessage(tp, record.partition, record.offset, record.key, record.value)
    )


def others_partitions(tables: Iterable[Any], actives: Iterable[TP]) -> dict[TP, Any]:
    """The changelog partitions that this worker does not have, each with its table.

    Args:
        tables: Faust's, each with all its partitions.
        actives: The partitions that the group gave to this worker.
    """
    own = frozenset(actives)
    return {
        tp: table
        for table in tables
        for partition in range(table.partitions)
        if (tp := TP(table.changelog_topic_name, partition)) not in own
    }


def first_missing(persisted: int | None, end: int, tp: TP) -> int:
    """The offset from which a copy is to be read.

    Args:
        persisted: Of the last record in the copy; ``None`` where there is none.
        end: The changelog's end, behind its last record.
        tp: The changelog partition.

    Raises:
        ConsistencyError: The copy has records that the changelog has not: the topic was deleted.
            Faust ends the worker of an active partition for the same reason.
    """
    start = 0 if persisted is None else persisted + 1
    if start > end:
        raise ConsistencyError(
            f"the copy of {tp.topic}/{tp.partition} was read up to offset {persisted}, but the"
            f" topic ends at {end}: was it deleted? Then delete the worker's data directory, too"
        )
    return start


class TableCopies:
    """Copies changelog partitions into their tables, until it is told to stop.

    Args:
        kafka: The broker.
        crash: Ends the worker; called when the copying breaks for another reason than the broker.
        new_consumer: Makes a consumer; for tests.
    """

    def __init__(
        self,
        kafka: Kafka,
        crash: Callable[[BaseException], Awaitable[None]],
        new_consumer: Callable[[], Any] | None = None,
    ) -> None:
        self._kafka = kafka
        self._crash = crash
        self._new_consumer = new_consumer or self._aiokafka_consumer
        self._task: asyncio.Task[None] | None = None

    async def follow(self, partitions: Mapping[TP, Any]) -> None:
        """Copy these partitions from now on, and no others."""
        await self.stop()
        if partitions:
            self._task = asyncio.ensure_future(self._run(dict(partitions)))

    async def stop(self) -> None:
        """Copy nothing more; what was applied stays, and its offset is stored."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _run(self, partitions: Mapping[TP, Any]) -> None:
        try:
            while self._is_wanted():
                try:
                    await self._copy(partitions)
                except KafkaError as error:
                    log.warning("copies_delayed", error=error)
                    if self._is_wanted():
                        await asyncio.sleep(PAUSE_S)
        except Exception as error:
            await self._crash(error)

    def _is_wanted(self) -> bool:
        """Whether the task that asks is to go on.

        A cancellation can be lost in aiokafka: it takes one for its own, or raises another error.
        """
        return self._task is asyncio.current_task()

    async def _copy(self, partitions: Mapping[TP, Any]) -> None:
        started = time.monotonic()
        consumer = self._new_consumer()
        try:
            await consumer.start()
            consumer.assign(list(partitions))
            ends = await consumer.end_offsets(list(partitions))
            for tp, table in partitions.items():
                consumer.seek(tp, first_missing(await _persisted(table, tp), ends[tp], tp))
            behind, copied = set(partitions), 0
            while self._is_wanted():
                batches = await consumer.getmany(timeout_ms=POLL_MS, max_records=BATCH_RECORDS)
                for tp, records in batches.items():
                    apply(partitions[tp], records)
                    copied += len(records)
                if behind:
                    behind -= {tp for tp in behind if await consumer.position(tp) >= ends[tp]}
                    if not behind:
                        log.info(
                            "tables_copied",
                            partitions=sorted(f"{tp.topic}/{tp.partition}" for tp in partitions),
                            records=copied,
                            seconds=round(time.monotonic() - started, 1),
                        )
        finally:
            await _stopped(consumer)

    def _aiokafka_consumer(self) -> Any:
        return AIOKafkaConsumer(
            **aiokafka_arguments(self._kafka),
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            max_partition_fetch_bytes=BATCH_BYTES,
        )


async def _stopped(consumer: Any) -> None:
    try:
        await consumer.stop()
    except KafkaError as error:
        # It must not take the place of the reason for which the consumer is stopped.
        log.warning("copies_unclosed", error=error)


def apply(table: Any, records: Sequence[Any]) -> None:
    """Put records of one changelog partition into its table, then store the last one's offset."""
    table.apply_changelog_batch([copied_record(record) for record in records])


async def _persisted(table: Any, tp: TP) -> int | None:
    # Faust closes a partition that was taken away by dropping it: its lock can stay for a moment.
    generation = table.app.consumer_generation_id
    await table.data._try_open_db_for_partition(tp.partition, generation_id=generation)
    offset: int | None = table.persisted_offset(tp)
    return offset
