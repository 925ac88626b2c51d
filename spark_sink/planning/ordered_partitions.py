"""Ordered partitions: every commit has their rows up to one place of the binlog. Pure.

Rows of one key are in one partition, in order. Rows of different partitions have no order, and
need none, where no row minds what becomes of another. That is not so

* where the target calls keys equal that are different bytes, and so in different partitions: 'a'
  and 'A' under most collations (``collation_keys``);
* without a primary key: equal rows are in whichever partitions;
* while a unique value goes from a row of one partition to a row of another.

There every commit must have all of the shard's rows up to one place, and none beyond. What has to
be known for that is which rows there are before a place, in *all* partitions: a ``Closure``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from shardmerge.spark_sink.barrier.applied import Watermarks
from shardmerge.spark_sink.barrier.partitions import Partition, Stream, partitions_of


@dataclass(frozen=True, slots=True)
class Closure:
    """Offsets of a stream's partitions between which every row stands that precedes some others.

    Attributes:
        ends: Partition → offset (exclusive). Whatever precedes a row below these ends, in any
            partition, is below the bounds.
        bounds: Partition → offset (exclusive), at or beyond the end. All below them can be read,
            and its schema changes are decided.
    """

    ends: Mapping[Partition, int]
    bounds: Mapping[Partition, int]

    def of(self, partition: Partition) -> PartitionClosure:
        """What a task has to know of it for one partition."""
        return PartitionClosure(self.ends.get(partition, 0), self.bounds[partition])


class Closures:
    """Finds closures.

    The high watermarks (read uncommitted) that were read *after* the ends (read committed) bound
    everything that precedes the rows below the ends: all records of a transaction, and of those
    before it, are there before it is committed. When the safe ends have come so far too, the pair
    is a closure.

    Source: KIP-618 (exactly-once source connectors), as for the barrier.

    Attributes:
        found: Stream → its latest closure.
    """

    def __init__(self) -> None:
        self.found: dict[Stream, Closure] = {}
        self._ends: dict[Stream, dict[Partition, int]] = {}
        self._pending: dict[Stream, Closure] = {}

    def look(
        self,
        streams: Iterable[Stream],
        watermarks: Watermarks,
        safe_ends: Mapping[Partition, int],
    ) -> bool:
        """Take a reading of watermarks, and the safe ends of now.

        Args:
            streams: Those that are to be ordered.
            watermarks: Read after the last look.
            safe_ends: Row partition → end offset (exclusive) whose barrier is settled.

        Returns:
            Whether another look soon is worth it.
        """
        hopeful = False
        for stream in streams:
            partitions = partitions_of(stream, watermarks.partitions.get(stream.topic, 0))
            before = self._ends.get(stream, {})
            ends = {p: safe_ends.get(p, 0) for p in partitions}
            pending, known = self._pending.get(stream), self.found.get(stream)
            if pending is None and before and (known is None or before != known.ends):
                bounds = {p: watermarks.end(p) for p in partitions}
                pending = self._pending[stream] = Closure(before, bounds)
            if pending is not None and _reach(ends, pending.bounds):
                self.found[stream] = pending
                del self._pending[stream]
            hopeful |= ends != before
            self._ends[stream] = ends
        return hopeful


def _reach(ends: Mapping[Partition, int], bounds: Mapping[Partition, int]) -> bool:
    return all(ends[partition] >= bound for partition, bound in bounds.items())


@dataclass(frozen=True, slots=True)
class PartitionClosure:
    """What a task has to know of its partition's closure.

    Attributes:
        end, bound: Of the partition, see ``Closure``.
    """

    end: int
    bound: int


def closed_ranges(
    closure: Closure | None, available: Mapping[Partition, tuple[int, int]]
) -> dict[Partition, tuple[int, int]]:
    """The ranges that have to be read together for the rows below a closure's ends.

    Args:
        closure: Of the stream; None: not known yet.
        available: Partition → what is not applied of it and safe; one that stands where the stream
            has to stop is left out.

    Returns:
        Partition → start and end; empty when there is nothing below the ends.
    """
    if closure is None:
        return {}
    ranges = {
        p: (start, bound)
        for p, (start, _) in available.items()
        if start < (bound := closure.bounds.get(p, 0))
    }
    if all(closure.ends.get(p, 0) <= start for p, (start, _) in ranges.items()):
        return {}
    return ranges
