"""Ordered partitions: every commit has their rows up to one position of the binlog. Pure.

Rows of one key are in one partition, in order. Rows of different partitions have no order. They
need none as long as no row depends on another one. Rows do depend on each other

* when the target treats two keys as equal whose bytes differ, and which are therefore in different
  partitions: 'a' and 'A' under most collations (``collation_keys``);
* when the table has no primary key: equal rows can be in any partitions;
* while a unique value moves from a row of one partition to a row of another.

Then every commit must have all of the shard's rows up to one position, and none beyond. For this
the sink must know which rows stand before a position in *all* partitions: a ``Closure`` says it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from shardmerge.spark_sink.barrier.applied import Watermarks
from shardmerge.spark_sink.barrier.partitions import Partition, Stream, partitions_of


@dataclass(frozen=True, slots=True)
class Closure:
    """Ends of a stream's partitions, and bounds below which every earlier row stands.

    Attributes:
        ends: Partition → offset (exclusive). If a row in any partition precedes a row below these
            ends, it is below the bounds.
        bounds: Partition → offset (exclusive), at or beyond the end. Every row below the bounds
            can be read, and the schema changes before it are decided.
    """

    ends: Mapping[Partition, int]
    bounds: Mapping[Partition, int]

    def of(self, partition: Partition) -> PartitionClosure:
        """The part of the closure that the task of one partition needs."""
        return PartitionClosure(self.ends.get(partition, 0), self.bounds[partition])


class Closures:
    """Finds closures.

    First the ends (read committed) are read, *then* the high watermarks (read uncommitted). A
    transaction is committed only after all its records, and those of earlier transactions, are in
    the topic. So everything that precedes a row below the ends is below the high watermarks. When
    the safe ends have reached these watermarks, the pair is a closure.

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
        *,
        read_anew: bool = True,
    ) -> bool:
        """Take a reading of watermarks, and the present safe ends.

        Args:
            streams: The streams that are to be ordered.
            watermarks: The latest reading.
            safe_ends: Row partition → end offset (exclusive) whose barrier is settled.
            read_anew: Whether it was made after the previous call. Otherwise it bounds no ends.

        Returns:
            Whether another call soon can find a new closure.
        """
        hopeful = False
        for stream in streams:
            partitions = partitions_of(stream, watermarks.partitions.get(stream.topic, 0))
            before = self._ends.get(stream, {})
            ends = {p: safe_ends.get(p, 0) for p in partitions}
            pending, known = self._pending.get(stream), self.found.get(stream)
            is_other = read_anew and before and (known is None or before != known.ends)
            if pending is None and is_other:
                bounds = {p: watermarks.end(p) for p in partitions}
                pending = self._pending[stream] = Closure(before, bounds)
            if pending is not None and _reach(ends, pending.bounds):
                self.found[stream] = pending
                del self._pending[stream]
            hopeful |= ends != before
            self._ends[stream] = ends
        return hopeful


class OrderedStreams:
    """Which streams have to be ordered, and their closures.

    Args:
        is_possible: Whether the target can apply partitions in their common order.

    Attributes:
        closures: Each of the streams → its latest closure; None without one.
    """

    def __init__(self, *, is_possible: bool) -> None:
        self.closures: Mapping[Stream, Closure | None] = {}
        self._is_possible = is_possible
        self._found = Closures()
        self._added: set[Stream] = set()

    def add(self, stream: Stream, watermarks: Watermarks) -> bool:
        """Order a stream from now on. Returns whether it was not ordered before, and can be."""
        several = watermarks.partitions.get(stream.topic, 0) > 1
        if not self._is_possible or stream in self.closures or not several:
            return False
        self._added.add(stream)
        return True

    def look(
        self,
        streams: Iterable[Stream],
        watermarks: Watermarks,
        safe_ends: Mapping[Partition, int],
        *,
        read_anew: bool,
    ) -> bool:
        """Look for closures: as ``Closures.look``.

        Args:
            streams: Those whose keys do not order their rows; a stream of one partition is ordered.
            watermarks: See there.
            safe_ends: See there.
            read_anew: See there.

        Returns:
            See there.
        """
        if not self._is_possible:
            return False
        counts = watermarks.partitions
        wanted = [s for s in {*streams, *self._added} if counts.get(s.topic, 0) > 1]
        hopeful = self._found.look(wanted, watermarks, safe_ends, read_anew=read_anew)
        self.closures = {stream: self._found.found.get(stream) for stream in wanted}
        return hopeful


def _reach(ends: Mapping[Partition, int], bounds: Mapping[Partition, int]) -> bool:
    return all(ends[partition] >= bound for partition, bound in bounds.items())


@dataclass(frozen=True, slots=True)
class PartitionClosure:
    """A closure's end and bound for one partition.

    Attributes:
        end, bound: See ``Closure``.
    """

    end: int
    bound: int


def closed_ranges(
    closure: Closure | None, available: Mapping[Partition, tuple[int, int]]
) -> dict[Partition, tuple[int, int]]:
    """The ranges that have to be read together to apply the rows below a closure's ends.

    Args:
        closure: Of the stream; None when it is not known yet.
        available: Partition → start and end of what is safe and not applied; without the
            partitions that have reached the position where the stream has to stop.

    Returns:
        Partition → start and end; empty when no row is left below the ends.
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
