"""Reads the pipeline's topics into the status view, as a background service of each worker."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError
from mode import Service

from shardmerge.agents.status.view import StatusView
from shardmerge.connectors.access.aiokafka_arguments import aiokafka_arguments
from shardmerge.connectors.event_log import logger
from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.pipeline.settings import Kafka
from shardmerge.schemas.records.operator_commands import OperatorCommand
from shardmerge.schemas.records.record_format import AVRO, RecordFormat
from shardmerge.schemas.records.schema_changes import ChangeId

log = logger(__name__)

POLL_MS = 500
RETRY_S = 2.0


class ViewReader(Service):  # type: ignore[misc]
    """Follows the topics from their beginning, with a consumer of its own and without a group.

    If a broker does not answer, the worker goes on and the pages become stale. A record that cannot
    be read is logged, and the pages lack it.

    Args:
        kafka: How Kafka is reached.
        topics: The topics, each with one partition.
        view: Takes the records.
        format_: Of the records.
        commands: Name of the commands topic: there every record counts, not the last of a key.
    """

    def __init__(
        self,
        kafka: Kafka,
        topics: Sequence[str],
        view: StatusView,
        format_: RecordFormat = AVRO,
        *,
        commands: str = "",
        **kwargs: Any,
    ) -> None:
        self._kafka = kafka
        self._partitions = [TopicPartition(topic, 0) for topic in topics]
        self._view = view
        self._format = format_
        self._commands = commands
        self._next = dict.fromkeys(self._partitions, 0)
        self.caught_up = False
        """Whether the view has everything that was in the topics when the reader started."""
        super().__init__(**kwargs)

    @Service.task  # type: ignore[untyped-decorator]
    async def _follow(self) -> None:
        while not self.should_stop:
            try:
                await self._read()
            except KafkaError as error:
                log.warning("view_reader_failed", error=error)
                await self.sleep(RETRY_S)

    async def _read(self) -> None:
        consumer = AIOKafkaConsumer(
            **aiokafka_arguments(self._kafka),
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        )
        await consumer.start()
        try:
            consumer.assign(self._partitions)
            for tp, offset in self._next.items():
                consumer.seek(tp, offset)
            ends = await consumer.end_offsets(self._partitions)
            while not self.should_stop:
                batches = await consumer.getmany(timeout_ms=POLL_MS)
                for tp, records in batches.items():
                    await self.take(records)
                    self._next[tp] = records[-1].offset + 1
                if not self.caught_up:
                    self.caught_up = await self._reached(consumer, ends)
        finally:
            await consumer.stop()

    async def take(self, records: Iterable[Any]) -> None:
        """Apply consecutive records of one partition to the view; of each key only the last one.

        In the commands topic each one counts.

        A worker that starts reads the whole history here, and the agents share this event loop. So
        the agents get their turn after every record.
        """
        for record in {self._key(record): record for record in records}.values():
            self._apply(record)
            await asyncio.sleep(0)

    def _key(self, record: Any) -> Any:
        return record.offset if record.topic == self._commands else record.key

    async def _reached(self, consumer: Any, ends: dict[TopicPartition, int]) -> bool:
        """Whether the consumer has reached the ends. Compaction may remove the last records."""
        for tp, end in ends.items():
            if await consumer.position(tp) < end:
                return False
        return True

    def _apply(self, record: Any) -> None:
        if record.value is None:
            return  # a tombstone of a decision that every sink has passed
        try:
            found = self._format.read(record.value)
            if isinstance(found, OperatorCommand):
                found = replace(found, id=ChangeId(record.topic, record.offset))
            self._view.apply(found)
        except ContractError as error:
            log.warning(
                "view_record_skipped",
                topic=record.topic,
                partition=record.partition,
                offset=record.offset,
                error=error,
            )
