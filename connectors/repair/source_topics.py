"""Reads and writes the two topics of a source that a repair concerns.

They are its schema-change topic, which the tracker reads, and the schema history, which the
restarted connector reads.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from shardmerge.connectors.binlog.binlog_events import Statement
from shardmerge.connectors.binlog.source_offset import SourceOffset
from shardmerge.connectors.clock import now_ms
from shardmerge.connectors.debezium.envelope import (
    EPOCH_FIELD,
    OWN_VERSION,
    UNREAD_FIELD,
    schema_change_event,
)
from shardmerge.connectors.debezium.signals import snapshot_signal
from shardmerge.connectors.debezium.source_config import schema_history_topic
from shardmerge.connectors.kafka.record_formats import json_of_connectors
from shardmerge.connectors.kafka.record_sender import RecordSender
from shardmerge.connectors.kafka.topic_reader import TopicReader
from shardmerge.connectors.repair.diagnosis.undelivered import Delivered
from shardmerge.connectors.repair.schema_history.history import HistoryRecord, history_record
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.settings import Pipeline, Source

_SEND_TIMEOUT_S = 20.0
_TAIL = 20_000
"""Records at the end of a schema-change topic among which a statement behind the connector's
offset must be."""


class SourceTopics:
    """Both topics of one source. One thread uses it; ``close`` it.

    Args:
        pipeline: Whose topics.
        source: One of its sources.
    """

    def __init__(self, pipeline: Pipeline, source: Source) -> None:
        self._source = source
        self._changes = topics.schema_changes(pipeline, source.name).name
        self._history = schema_history_topic(pipeline, source)
        self._signals = topics.signals(pipeline).name
        self._to_json = json_of_connectors(pipeline.kafka)
        self._reader = TopicReader(pipeline.kafka)
        settings = {"enable.idempotence": True}
        self._sender = RecordSender(pipeline.kafka, _SEND_TIMEOUT_S, settings)
        self._records: list[HistoryRecord] = []
        self._next = 0

    def close(self) -> None:
        """Leave Kafka."""
        self._reader.close()

    def history(self) -> tuple[HistoryRecord, ...]:
        """The whole schema history; only new records are read from Kafka.

        Raises:
            StackError: Kafka does not answer.
            ContractError: The topic holds something else.
        """
        for extent in self._reader.extents((self._history,)):
            begin = max(self._next, extent.begin)
            for stored in self._reader.records(replace(extent, begin=begin)):
                record = history_record(stored.value, stored.place)
                if record is not None:
                    self._records.append(record)
                self._next = stored.offset + 1
        return tuple(self._records)

    def delivered(self) -> Delivered:
        """The statements at the end of the schema-change topic, and those of the history.

        Raises:
            StackError: Kafka does not answer.
            ContractError: The topic holds something else.
        """
        gtids: dict[str, tuple[str, int]] = {}
        positions = set()
        only_own: dict[str | tuple[str, int], bool] = {}
        for extent in self._reader.extents((self._changes,)):
            begin = max(extent.begin, extent.end - _TAIL)
            for stored in self._reader.records(replace(extent, begin=begin)):
                value = self._to_json(stored.value)
                event = schema_change_event(self._changes, stored.offset, stored.key, value)
                if event.snapshot:
                    continue
                place = (event.position.file, event.position.pos)
                positions.add(place)
                if event.gtid:
                    gtids[event.gtid] = place
                id_ = event.gtid or place
                only_own[id_] = event.is_own and only_own.get(id_, True)
        recorded = {
            (r.offset.file, r.offset.pos) for r in self.history() if not (r.snapshot or r.is_own)
        }
        own = frozenset(id_ for id_, is_so in only_own.items() if is_so)
        return Delivered(gtids, frozenset(positions), frozenset(recorded), own)

    def add_history(self, values: Iterable[bytes]) -> None:
        """Write records behind the schema history.

        Raises:
            StackError: Kafka does not take them.
        """
        self._sender.send(self._history, [(None, value) for value in values])

    def add_statement(self, statement: Statement, unread: str = "") -> None:
        """Write a statement's record, as Debezium would, behind the schema-change topic.

        It is JSON whatever the connectors write, and ``JsonOfAvro`` lets it pass.

        Args:
            statement: Of the binlog.
            unread: Why its tables are not known after it; "" when they are known.

        Raises:
            StackError: Kafka does not take it.
        """
        value = _schema_change(self._source, statement, now_ms())
        if unread:
            value = {**value, UNREAD_FIELD: unread}
        key = {"databaseName": statement.database}
        self._sender.send(self._changes, [(_json(key), _json(value))])

    def add_description(self, text: str, offset: SourceOffset) -> None:
        """Write a table behind the schema-change topic as a snapshot describes one.

        Args:
            text: Its CREATE TABLE.
            offset: Where the connector will start, before any row of the table.

        Raises:
            StackError: Kafka does not take it.
        """
        statement = Statement(offset.file, offset.pos, offset.pos, "", "", text)
        value = _schema_change(self._source, statement, now_ms(), snapshot="true")
        self._sender.send(self._changes, [(_json({"databaseName": ""}), _json(value))])

    def ask_for_rows(self, change_id: str, shard: ShardId) -> None:
        """Ask the connector to read a whole table.

        Args:
            change_id: Names the request.
            shard: The table.

        Raises:
            StackError: Kafka does not take it.
        """
        self._sender.send(self._signals, [snapshot_signal(change_id, shard)])


def _schema_change(
    source: Source, statement: Statement, ts_ms: int, snapshot: str = "false"
) -> Mapping[str, Any]:
    block = {
        "version": OWN_VERSION,
        "connector": source.flavour,
        "name": source.name,
        "ts_ms": ts_ms,
        "snapshot": snapshot,
        "db": statement.database,
        "sequence": None,
        "table": None,
        "server_id": statement.server_id,
        "gtid": statement.gtid or None,
        "file": statement.file,
        "pos": statement.pos,
        "row": 0,
        "thread": None,
        "query": None,
    }
    value: dict[str, Any] = {
        "source": block,
        "ts_ms": ts_ms,
        "databaseName": statement.database,
        "schemaName": None,
        "ddl": statement.sql,
        "tableChanges": [],
    }
    return {**value, EPOCH_FIELD: str(source.epoch)} if source.epoch else value


def _json(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, ensure_ascii=False).encode()
