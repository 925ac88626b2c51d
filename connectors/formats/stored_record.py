"""A record of any topic as it stands in Kafka, and a partition's extent. Pure.

Whatever reads whole topics (``topic_reader``), stores them (a bundle) or compares them (replay)
uses these values.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """One record, byte for byte.

    Attributes:
        headers: In their order; Kafka allows a name twice, and a null as a value.
        timestamp_ms: Milliseconds since 1970; -1 when the record has none.
        timestamp_type: 0 for none, 1 for the producer's time, 2 for the broker's: Kafka's numbers
            as librdkafka gives them.
    """

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int = -1
    timestamp_type: int = 0

    @property
    def place(self) -> str:
        """Topic, partition and offset, as messages name a record."""
        return f"{self.topic}/{self.partition}@{self.offset}"


@dataclass(frozen=True, slots=True)
class Extent:
    """The offsets of a partition at the moment when they were asked for.

    Attributes:
        begin: The first that is still there.
        end: The end of what can be read (the last stable offset, exclusive).
        high_watermark: The end of what is written (read uncommitted, exclusive).
    """

    topic: str
    partition: int
    begin: int
    end: int
    high_watermark: int


def iso_time(ms: int) -> str:
    """Milliseconds since 1970 as ISO 8601 in UTC."""
    moment = datetime.fromtimestamp(ms // 1000, UTC).replace(microsecond=ms % 1000 * 1000)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
