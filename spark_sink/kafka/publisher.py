"""Publishes ``SinkProgress`` records: changes, not too often, and now and then the same again."""

from __future__ import annotations

import time
from dataclasses import replace

from confluent_kafka import KafkaException

from shardmerge.connectors.access.kafka import producer
from shardmerge.connectors.clock import now_ms
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.pipeline.settings import Kafka
from shardmerge.schemas.pipeline.topics import MAX_RECORD_BYTES
from shardmerge.schemas.records.progress import RENEWED_S, SinkProgress
from shardmerge.schemas.records.record_format import AVRO, RecordFormat
from shardmerge.spark_sink.planning.progress import with_times

_PAUSE_S = 0.2
"""Least seconds between two records of one target: people read them."""
_SHARE = 10
"""A record is made after this many times the time that the last one took, to leave time for rows:
a target may have thousands of shards."""
_FLUSH_S = 10.0


class ProgressPublisher:
    """Sends the progress of each target to a compacted topic, keyed by the target.

    When a record gets lost, the next change replaces it; no decision depends on these records.

    Args:
        kafka: The brokers.
        topic: Of the records; "" for a sink whose progress is sent to nobody.
        format_: Of the records.
    """

    def __init__(self, kafka: Kafka, topic: str, format_: RecordFormat = AVRO) -> None:
        self._topic = topic
        self._format = format_
        self._sent: dict[TargetTable, SinkProgress] = {}
        self._sent_at: dict[TargetTable, float] = {}
        self._next_at: dict[TargetTable, float] = {}
        self._producer = producer(
            kafka,
            {
                "client.id": "shardmerge-sink-progress",
                "acks": "all",
                "linger.ms": 0,
                "message.max.bytes": MAX_RECORD_BYTES,
            },
        )

    def is_due(self, target: TargetTable) -> bool:
        """Whether a record of this target may be sent now."""
        sent_at, made_at = self._sent_at.get(target), self._next_at.get(target, 0.0)
        now = time.monotonic()
        return (sent_at is None or now - sent_at >= _PAUSE_S) and now >= made_at

    def took(self, target: TargetTable, seconds: float) -> None:
        """Note how long a record of this target has taken to make."""
        self._next_at[target] = time.monotonic() + _SHARE * seconds

    def is_due_soon(self, target: TargetTable) -> bool:
        """Whether it is worth waiting less than usual for the moment at which one may be sent."""
        return time.monotonic() >= self._next_at.get(target, 0.0) - _PAUSE_S

    def offer(self, record: SinkProgress) -> SinkProgress:
        """Send the record, and return it with its times.

        A record that equals the last one is sent after ``RENEWED_S`` seconds: it shows that the
        sink runs.
        """
        self._producer.poll(0)
        sent_ms = now_ms()
        last = self._sent.get(record.target)
        record = with_times(record, last, sent_ms)
        sent_at = self._sent_at.get(record.target, 0.0)
        if last == record and time.monotonic() - sent_at < RENEWED_S:
            return record
        if self._topic:
            self._send(record, sent_ms)
        self._sent[record.target] = record
        self._sent_at[record.target] = time.monotonic()
        return record

    def _send(self, record: SinkProgress, sent_ms: int) -> None:
        value = self._format.write(replace(record, ts_ms=sent_ms))
        headers = [("target", str(record.target).encode())]
        try:
            self._producer.produce(self._topic, value, str(record.target), headers=headers)
        except (KafkaException, BufferError) as error:
            raise StackError(
                f"the sink's progress cannot be written to Kafka: {error}", code="SM-4107"
            ) from error

    def close(self) -> None:
        """Wait until the records are delivered, at most ``_FLUSH_S`` seconds."""
        self._producer.flush(_FLUSH_S)
