"""Which schema changes of a source are not decided yet."""

from __future__ import annotations

from dataclasses import replace

from shardmerge.connectors.kafka.topic_reader import TopicReader
from shardmerge.connectors.whole.readings.open_readings import OpenReadings


class SourceChanges:
    """The records of one source's schema-change topic, as far as they are read.

    Args:
        source: Its name is the topic's.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._read_to = 0
        self._undecided: list[int] = []

    def are_decided(self, end: int, decisions: OpenReadings, reader: TopicReader) -> bool:
        """Whether every record below an offset has all its decisions.

        Args:
            end: An offset of the topic, from a high watermark: not every offset has a record.
            decisions: What the ddl topic holds.
            reader: Reads what is new.

        Raises:
            StackError: Kafka does not answer.
        """
        if self._read_to < end:
            for extent in reader.extents((self._source,)):
                begin = max(self._read_to, extent.begin)
                for record in reader.records(replace(extent, begin=begin)):
                    self._undecided.append(record.offset)
                self._read_to = max(self._read_to, extent.end)
        self._undecided = [o for o in self._undecided if not decisions.is_decided(self._source, o)]
        return self._read_to >= end and not any(offset < end for offset in self._undecided)
