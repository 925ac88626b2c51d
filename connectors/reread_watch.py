"""Sees to requests for snapshots of single tables that a connector leaves unanswered.

The watch reads the requests, and the connectors' notices about them. When a connector is silent for
long, the watch restarts it or sends its requests again: see ``open_requests``. A busy connector is
left alone: it answers when it comes to the request.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace

from shardmerge.connectors.binlog.binlog_reading import BinlogReading
from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.connectors.debezium.open_requests import OpenRequests, Remedy, Request, request_of
from shardmerge.connectors.debezium.signals import notice
from shardmerge.connectors.event_log import logger
from shardmerge.connectors.formats.avro_wire import UndecodableAvro, UnknownSchema
from shardmerge.connectors.formats.stored_record import StoredRecord
from shardmerge.connectors.kafka.record_formats import json_of_connectors
from shardmerge.connectors.kafka.record_sender import RecordSender
from shardmerge.connectors.kafka.topic_reader import TopicReader
from shardmerge.connectors.repair.source_repair import SourceRepair
from shardmerge.connectors.watch_loop import look_at_each, look_until
from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.settings import Pipeline

log = logger(__name__)
_SEND_TIMEOUT_S = 10.0
_WATCHED = "rereads"
"""What the log calls them."""


class RereadWatch:
    """Watches a pipeline's requests for snapshots. One thread uses it; ``close`` it.

    Args:
        pipeline: Whose topics and connectors.
        rest: The Connect cluster.
        repairs: Connector's name → its repair, which restarts it where that is safe.
        shortest_s: The silence after which something is done about an unanswered request.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        rest: ConnectRest,
        repairs: Mapping[str, SourceRepair],
        shortest_s: float = 30.0,
    ) -> None:
        self._repairs = repairs
        self._reading: dict[str, BinlogReading] = {}
        self._rest = rest
        self._connectors = {s.name: connector_name(pipeline, s) for s in pipeline.sources}
        self._signals = topics.signals(pipeline).name
        self._notifications = topics.notifications(pipeline).name
        self._reader = TopicReader(pipeline.kafka)
        self._sender = RecordSender(pipeline.kafka, _SEND_TIMEOUT_S)
        self._to_json = json_of_connectors(pipeline.kafka)
        self._requests = OpenRequests(shortest_s)
        self._next: dict[str, int] = {}
        self._taken_back = dict.fromkeys(repairs, 0)

    def close(self) -> None:
        """Leave Kafka."""
        self._reader.close()

    def look(self, now_s: float) -> tuple[tuple[str, Remedy], ...]:
        """Read what is new and apply the remedies that are due.

        If a source does not answer, the others get their remedies nevertheless.

        Args:
            now_s: A monotonic clock's time.

        Returns:
            Each source that got a remedy, with it.

        Raises:
            StackError: Kafka, Connect or a source does not answer; nothing is lost, the next look
                goes on.
        """
        for record in self._new_records():
            self._take(record, now_s)
        self._open_again()
        due = tuple(self._requests.due(now_s))
        applied = look_at_each(due, lambda each: self._apply(*each, now_s), _WATCHED)
        return tuple((source, remedy) for source, remedy, _ in applied)

    def _apply(
        self, source: str, remedy: Remedy, requests: tuple[Request, ...], now_s: float
    ) -> bool:
        """Apply a remedy if its source's connector is idle; whether that was done."""
        connector = self._connectors.get(source)
        status = connector and self._rest.status(connector)
        # The watchdog looks after a failed connector; a paused or deleted one answers later.
        if not connector or not status or not status.is_running:
            return False
        repair = self._repairs[connector]
        if repair.is_at_work or self._is_busy(source, repair):
            return False
        if remedy is Remedy.RESTART:
            repair.restart()
        else:
            self._send(requests)
        self._reading.pop(source, None)
        self._requests.tried(source, remedy, now_s)
        tables = [request.table for request in requests]
        log.warning("reread_unanswered", source=source, tables=tables, remedy=remedy)
        return True

    def _open_again(self) -> None:
        """Send a connector's requests again after it was stopped for a reading of whole tables.

        A request that it had read right before the stop is lost. Other requests, which it answers,
        would hide this for long.
        """
        for source, connector in self._connectors.items():
            repair = self._repairs.get(connector)
            if repair is None or repair.times_taken_back == self._taken_back[connector]:
                continue
            if requests := self._requests.of(source):
                self._send(requests)
                tables = [request.table for request in requests]
                log.info("reread_repeated", source=source, tables=tables)
            self._taken_back[connector] = repair.times_taken_back

    def _is_busy(self, source: str, repair: SourceRepair) -> bool:
        """Whether the connector is still reading what its binlog had when a remedy became due."""
        offset = repair.offset()
        reading = self._reading.get(source)
        if reading is None:
            reading = self._reading[source] = BinlogReading(repair.source_end())
        return offset is not None and reading.goes_on(offset)

    def run(self, stop: threading.Event, interval_s: float = 3.0) -> None:
        """Look again and again until ``stop`` is set; what does not answer is awaited."""
        look_until(stop, self.look, interval_s, _WATCHED)
        self.close()

    def _new_records(self) -> Iterator[StoredRecord]:
        """The new records of both topics, in the order of their timestamps."""
        new: list[list[StoredRecord]] = []
        for extent in self._reader.extents((self._signals, self._notifications)):
            begin = max(self._next.get(extent.topic, 0), extent.begin)
            new.append(list(self._reader.records(replace(extent, begin=begin))))
        for record in heapq.merge(*new, key=lambda record: record.timestamp_ms):
            yield record
            self._next[record.topic] = record.offset + 1

    def _take(self, record: StoredRecord, now_s: float) -> None:
        if record.topic == self._signals:
            if (request := request_of(record.key, record.value)) is not None:
                self._requests.add_request(request, now_s)
            return
        try:
            said = notice(self._to_json(record.value))
        except (ContractError, UndecodableAvro, UnknownSchema) as error:
            log.warning(
                "notification_skipped",
                topic=record.topic,
                partition=record.partition,
                offset=record.offset,
                error=error,
            )
            return
        if said is not None:
            self._requests.add_notice(said, now_s)

    def _send(self, requests: tuple[Request, ...]) -> None:
        records = [(request.source.encode(), request.value) for request in requests]
        self._sender.send(self._signals, records)
