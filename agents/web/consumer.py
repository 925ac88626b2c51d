"""Reads the pipeline's topics into the status view, as a background service of each worker."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from aiokafka.errors import KafkaError
from mode import Service

from shardmerge.agents.status.view import StatusView
from shardmerge.connectors.event_log import logger
from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.pipeline.settings import Kafka
from shardmerge.schemas.records.operator_commands import OperatorCommand
from shardmerge.schemas.records.record_format import AVRO, RecordFormat
from shardmerge.schemas.records.schema_changes import ChangeId

from .topic_follower import RETRY_S, TopicFollower

log = logger(__name__)


class ViewReader(TopicFollower):
    """Applies the topics' records to the view.

    If a broker does not answer, the worker goes on and the pages become stale. A record that cannot
    be read is logged, and the pages lack it.

    Args:
        kafka: How Kafka is reached.
        topics: The topics, each with one partition.
        view: Takes the records.
        format_: Of the records.
        commands: Name of the commands topic: there every record counts, not the last of a key.
        validations: Name of the topic of comparisons: there a tombstone counts.
    """

    def __init__(
        self,
        kafka: Kafka,
        topics: Sequence[str],
        view: StatusView,
        format_: RecordFormat = AVRO,
        *,
        commands: str = "",
        validations: str = "",
        **kwargs: Any,
    ) -> None:
        self._view = view
        self._format = format_
        self._commands, self._validations = commands, validations
        super().__init__(kafka, topics, **kwargs)

    @Service.task  # type: ignore[untyped-decorator]
    async def _follow(self) -> None:
        while not self.should_stop:
            try:
                await self.follow()
            except KafkaError as error:
                log.warning("view_reader_failed", error=error)
                await self.sleep(RETRY_S)

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

    def _apply(self, record: Any) -> None:
        if record.value is None:
            # Elsewhere it is the tombstone of a decision that every sink has passed.
            if record.topic == self._validations:
                self._view.forget_validation(record.key.decode())
            return
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
