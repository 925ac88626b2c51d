"""A source on one of the servers: its connector, a watchdog, and what the tracker makes of it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from shardmerge.agents.tracking.tracked import LastStatement, Tracked
from shardmerge.agents.tracking.tracker import track
from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.connectors.debezium.envelope import schema_change_event
from shardmerge.connectors.repair.source_repair import repairs_of
from shardmerge.connectors.watchdog import Watchdog
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.pipeline.server_differences import server_context
from shardmerge.schemas.pipeline.settings import Pipeline


@contextmanager
def watched(pipeline: Pipeline, rest: ConnectRest) -> Iterator[None]:
    """With a watchdog beside the test: it restarts and repairs the pipeline's connectors."""
    repairs = repairs_of(pipeline, rest)
    stop = threading.Event()
    names = [connector_name(pipeline, source) for source in pipeline.sources]
    watchdog = Watchdog(ConnectRest(rest.url), names, 0.5, repairs)
    beside = threading.Thread(target=watchdog.run, args=(stop,))
    beside.start()
    try:
        yield
    finally:
        stop.set()
        beside.join()
        for repair in repairs.values():
            repair.close()


class TrackedSource:
    """The tables of a source, as the tracker knows them by its schema-change records."""

    def __init__(self, pipeline: Pipeline) -> None:
        (self._source,) = pipeline.sources
        self._context = server_context(self._source)
        self._last: LastStatement | None = None
        self._tables: dict[ShardId, Tracked] = {}

    def take(self, record: dict[str, Any]) -> Sequence[str]:
        """Take the next record, as ``Reader.next`` gives it; gives the errors of its changes."""
        value = json.dumps(record).encode()
        event = schema_change_event(self._source.name, record["offset"], None, value)
        result = track(self._tables, event, (), self._context, self._last)
        self._last = result.last
        tables = {**self._tables, **result.puts}
        self._tables = {shard: known for shard, known in tables.items() if known is not None}
        return [change.error for change in result.changes if change.error]

    def tables(self) -> dict[tuple[str, str], Tracked]:
        """What is tracked, by database and table."""
        return {(shard.database, shard.table): t for shard, t in self._tables.items()}

    def table(self, database: str, table: str) -> TableSchema:
        """One table, which must be known."""
        known = self._tables[ShardId(self._source.name, database, table)]
        assert isinstance(known, TableSchema), known
        return known
