"""Reads the agents' tables from Kafka when a page needs them."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from shardmerge.agents.coordination.state import state_rows
from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.agents.handling.memory_rows import MemoryRows
from shardmerge.agents.handling.store import servers_of
from shardmerge.agents.handling.stored_table import (
    COORDINATOR_TABLE,
    TRACKER_TABLE,
    changelog,
    table_of,
)
from shardmerge.agents.preview.present import line_state
from shardmerge.agents.preview.simulated_agents import AgentsState
from shardmerge.connectors.formats.stored_record import Extent
from shardmerge.connectors.kafka.topic_reader import TopicReader
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.server_differences import utf8mb4_defaults
from shardmerge.schemas.pipeline.settings import Pipeline

TIMEOUT_S = 10.0


class Present(Protocol):
    """The present contents of the agents' tables. The calls block."""

    def state(self, target: TargetTable) -> TargetState | None:
        """The coordinator's state of a target; None if it has none."""
        ...

    def agents_state(self) -> AgentsState:
        """The state of both agents."""
        ...


class KafkaPresent:
    """Reads the agents' tables from their changelog topics, so any worker can do it.

    A table is read again only if its topic has grown. The rows are kept in their stored form.

    Args:
        pipeline: The pipeline of the agents.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._known: dict[str, tuple[tuple[Extent, ...], MemoryRows]] = {}

    def state(self, target: TargetTable) -> TargetState | None:
        """The coordinator's state of a target.

        Raises:
            StackError: Kafka does not answer.
        """
        with self._reader() as reader:
            rows = self._rows(reader, COORDINATOR_TABLE)
        if rows.get(state_rows.header_key(target)) is None:
            return None
        state = rows.state(target, servers_of(self._pipeline))
        return replace(state, defaults=utf8mb4_defaults(self._pipeline.sources))

    def agents_state(self) -> AgentsState:
        """The state of both agents.

        Raises:
            StackError: Kafka does not answer.
        """
        sources = [
            topics.schema_changes(self._pipeline, s.name).name for s in self._pipeline.sources
        ]
        with self._reader() as reader:
            # The coordinator's table is read after the tracker's, so it is not the older one.
            tracker = self._rows(reader, TRACKER_TABLE)
            coordinator = self._rows(reader, COORDINATOR_TABLE)
            ends = {extent.topic: extent.end for extent in reader.extents(sources)}
        return line_state(self._pipeline, tracker, coordinator, ends)

    def _reader(self) -> TopicReader:
        # The agents' user has rights only to groups with this prefix.
        group = f"{self._pipeline.name}-agents-pages"
        return TopicReader(self._pipeline.kafka, TIMEOUT_S, group)

    def _rows(self, reader: TopicReader, table: str) -> MemoryRows:
        extents = reader.extents([changelog(self._pipeline, table)])
        known = self._known.get(table)
        if known is not None and known[0] == extents:
            return known[1]
        rows = MemoryRows()
        rows.take(table_of(record for extent in extents for record in reader.records(extent)))
        self._known[table] = (extents, rows)
        return rows
