"""A cursor over records that a reader has: of windows (``window_reader``), or just arrived."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka.range_reader import CHUNK, OffsetRange, Records, RowReader
from shardmerge.spark_sink.kafka.windows.window import Kept


def kept_cursor(reader: RowReader, ranges: Sequence[OffsetRange]) -> KeptCursor | None:
    """A cursor over ranges of whole partitions; None if the reader has not all their records."""
    kept = {**reader.seen, **reader.kept} if reader.seen else reader.kept
    return KeptCursor(kept, ranges) if has_kept(kept, ranges) else None


def has_kept(kept: Mapping[Partition, Kept], ranges: Sequence[OffsetRange]) -> bool:
    """Whether the kept records have all of the ranges, which are of whole partitions."""
    return all(
        (have := kept.get(r.place)) is not None and have.start <= r.start and r.end <= have.end
        for r in ranges
    )


class KeptCursor:
    """Like ``RangeCursor``, without Kafka."""

    def __init__(self, kept: Mapping[Partition, Kept], ranges: Sequence[OffsetRange]) -> None:
        self._kept = kept
        self._open = {r.place: r for r in ranges if r.start < r.end}
        self._reached = {r.place: r.start for r in ranges}

    @property
    def is_open(self) -> bool:
        """See ``RangeCursor``."""
        return bool(self._open)

    def is_reading(self, partition: Partition) -> bool:
        """See ``RangeCursor``."""
        return partition in self._open

    def reached(self, partition: Partition) -> int:
        """See ``RangeCursor``."""
        return self._reached[partition]

    def leave(self, partition: Partition) -> None:
        """See ``RangeCursor``."""
        self._open.pop(partition, None)

    def read(self, most: int = CHUNK) -> list[Records]:
        """The next records of one range, at most ``most``."""
        for partition, wanted in list(self._open.items()):
            kept = self._kept[partition]
            first = bisect_left(kept.offsets, self._reached[partition])
            last = min(bisect_left(kept.offsets, wanted.end), first + most)
            offsets = kept.offsets[first:last]
            if last < len(kept.offsets) and kept.offsets[last] < wanted.end:
                self._reached[partition] = kept.offsets[last]
            else:
                self._reached[partition] = wanted.end
                self.leave(partition)
            if offsets:
                return [Records(partition, offsets, kept.values[first:last])]
        return []
