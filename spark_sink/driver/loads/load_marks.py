"""Waits until a mark that was written into a source's signal table has come through Kafka.

The connector writes records in the binlog's order, and the records of one transaction become
visible together. So when the mark is visible, every earlier schema change is below the high
watermark of the source's schema-change topic (``barrier.barrier``).
"""

from __future__ import annotations

import time

from shardmerge.connectors.debezium.signals import signal_database
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.model.names import SIGNAL_TABLE, ShardId
from shardmerge.schemas.pipeline.settings import Pipeline, Source
from shardmerge.schemas.pipeline.topics import row_topic
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka.offsets import OffsetReader
from shardmerge.spark_sink.kafka.range_reader import OffsetRange, RowReader

_LOOK_S = 0.05


class MarkSearch:
    """Looks for marks of one source from here on.

    Args:
        pipeline: Has the source.
        source: Whose signal table's rows are read.

    Raises:
        StackError: Kafka does not answer.
    """

    def __init__(self, pipeline: Pipeline, source: Source) -> None:
        database = signal_database(pipeline, source)
        self._topic = row_topic(ShardId(source.name, database, SIGNAL_TABLE))
        self._source = source.name
        self._kafka = pipeline.kafka
        self._offsets = OffsetReader(pipeline.kafka)
        self._read_to = self._offsets.high_watermarks(self._partitions())

    def wait(self, name: str, timeout_s: float) -> None:
        """Wait until the mark with a name is visible.

        Raises:
            StackError: It has not come in time, or Kafka does not answer.
        """
        wanted, until = name.encode(), time.monotonic() + timeout_s
        reader = RowReader(self._kafka)
        try:
            while not self._is_among_new(wanted, reader):
                if time.monotonic() > until:
                    raise StackError(
                        f"source {self._source}: a mark in its signal table has not come through "
                        f"Kafka within {timeout_s:.0f} s",
                        hint="see whether the source's connector runs, and how far it is behind",
                        code="SM-4410",
                    )
                time.sleep(_LOOK_S)
        finally:
            reader.close()

    def _partitions(self) -> list[Partition]:
        counts = self._offsets.partitions([self._topic])
        return [Partition(self._topic, number) for number in range(counts.get(self._topic, 0))]

    def _is_among_new(self, wanted: bytes, reader: RowReader) -> bool:
        found = False
        ends = self._offsets.stable_ends(self._partitions())
        ranges = [
            OffsetRange(p.topic, p.number, start, end)
            for p, end in ends.items()
            if (start := self._read_to.get(p, 0)) < end
        ]
        if not ranges:
            return False
        cursor = reader.open(ranges)
        while cursor.is_open:
            for records in cursor.read():
                found |= any(value and wanted in value for value in records.values)
        self._read_to |= ends
        return found
