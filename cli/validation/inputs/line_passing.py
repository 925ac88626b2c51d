"""Waits until the target has applied everything that a source had written at some moment.

1. The end of the source's binlog is noted.
2. The offset of its connector must come to lie behind that position. A connector commits its offset
   with its records; when it reads nothing new, it commits the offset with its heartbeats.
3. The ends of the shards' row topics are read. Every row from before the noted position is below
   these ends.
4. The sink's stored offsets must reach these ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from shardmerge.cli.clients import connect_rest, topic_reader
from shardmerge.connectors.binlog.source_offset import SourceOffset
from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.connectors.sources.source_binlog import SourceBinlog
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.pipeline.topics import RowTopics

from .applied_offsets import Applied, control_offsets, reached

_PAUSE_S = 0.3


class LinePassing:
    """Connectors, topics and target of some shards, as ``table_validation.Passing``.

    Args:
        pipeline: The pipeline of the shards.
        shards: The shards that are compared.
        patience_s: How many seconds to wait for the target.
        applied: Reads how far the target is; by default from its control database.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        shards: Sequence[ShardId],
        patience_s: float,
        applied: Applied | None = None,
    ) -> None:
        self._pipeline = pipeline
        self._applied = applied or control_offsets(pipeline)
        self._shards = shards
        self._patience_s = patience_s
        names = {shard.source for shard in shards}
        self._sources = [source for source in pipeline.sources if source.name in names]
        self._routed = RowTopics(pipeline.routes)
        self._topics = sorted({self._routed.topic_of(shard) for shard in shards})

    def note(self) -> object:
        """The end of each source's binlog."""
        return {source.name: SourceBinlog(source).end() for source in self._sources}

    def passed(self, noted: object) -> bool:
        """See the protocol.

        Raises:
            StackError: A server, Kafka or Kafka Connect does not answer.
        """
        assert isinstance(noted, dict)
        until = time.monotonic() + self._patience_s
        rest = connect_rest(self._pipeline)
        try:
            if not _wait(until, lambda: self._is_delivered(rest, noted)):
                return False
        finally:
            rest.close()
        with topic_reader(self._pipeline) as reader:
            ends = {
                (extent.topic, extent.partition): extent.end
                for extent in reader.extents(self._topics)
                if extent.end > 0
            }
        return _wait(until, lambda: self._is_applied(ends))

    def _is_delivered(self, rest: ConnectRest, noted: dict[str, SourcePosition]) -> bool:
        for source in self._sources:
            values = rest.offset(connector_name(self._pipeline, source))
            if values is None:
                return False
            offset = SourceOffset(values)
            if offset.is_snapshot or offset.position < noted[source.name]:
                return False
        return True

    def _is_applied(self, ends: dict[tuple[str, int], int]) -> bool:
        """Whether the stored offsets of all shards that are compared have reached the ends."""
        stored = reached(self._applied(), self._shards, self._routed)
        return all(stored.get(place, 0) >= end for place, end in ends.items())


def _wait(until: float, condition: Callable[[], bool]) -> bool:
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(_PAUSE_S)
    return True
