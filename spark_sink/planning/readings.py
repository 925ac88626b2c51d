"""Which ranges of a topic are read together, and how many offsets of them. Pure.

Each shard of a shared topic has an offset of its own. Shards whose offsets are near each other are
one *reading*: a task reads the partition once and hands each shard its records. A shard that is far
behind, because it was held or is new, is a reading of its own until it has come near. So it neither
keeps the others waiting nor makes them read again what they have.

All partitions of an ordered shard (``ordered_partitions``) are read together. Several such shards
of a shared topic are one reading when their offsets are near each other in every partition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from shardmerge.spark_sink.barrier.partitions import Partition, Stream

K = TypeVar("K", bound=tuple[object, ...])
NEAR = 20_000
"""Most offsets between two shards that are read together: less than a second's work."""
_LEAST = 1_000
"""At least this many offsets are read of each partition of an ordered shard."""


@dataclass(frozen=True, slots=True)
class Reading:
    """``[start, end)`` of a whole partition, and the ranges that it serves; all begin inside it."""

    start: int
    end: int
    ranges: Mapping[Partition, tuple[int, int]]

    @property
    def size(self) -> int:
        """In offsets."""
        return self.end - self.start

    def first(self, size: int) -> dict[Partition, tuple[int, int]]:
        """The parts of the ranges that lie in the first ``size`` offsets of the reading."""
        bound = self.start + size
        return {
            partition: (start, min(end, bound))
            for partition, (start, end) in self.ranges.items()
            if start < bound
        }


def readings(
    ranges: Mapping[Partition, tuple[int, int]],
) -> dict[tuple[Partition, int], Reading]:
    """Group ranges that are not empty: whole partition and number → what is read together.

    Readings of one partition do not overlap.
    """
    found: dict[tuple[Partition, int], Reading] = {}
    shared: dict[Partition, list[tuple[int, int, Partition]]] = {}
    for partition, (start, end) in ranges.items():
        if partition.shard is None:
            found[partition, 0] = Reading(start, end, {partition: (start, end)})
        else:
            shared.setdefault(partition.whole, []).append((start, end, partition))
    for whole, parts in shared.items():
        parts.sort()
        groups: list[list[tuple[int, int, Partition]]] = []
        for part in parts:
            if not groups or part[0] - groups[-1][0][0] > NEAR:
                groups.append([])
            groups[-1].append(part)
        nexts = [group[0][0] for group in groups[1:]]
        for number, group in enumerate(groups):
            last = max(end for _, end, _ in group)
            bound = min(last, nexts[number]) if number < len(nexts) else last
            of_group = {partition: (start, min(end, bound)) for start, end, partition in group}
            found[whole, number] = Reading(group[0][0], bound, of_group)
    return found


@dataclass(frozen=True, slots=True)
class OrderedReading:
    """Ranges of several partitions of a topic, for ordered shards."""

    ranges: Mapping[Partition, tuple[int, int]]

    @property
    def size(self) -> int:
        """In offsets, each counted once."""
        return sum(end - start for start, end in self._whole().values())

    def first(self, size: int) -> dict[Partition, tuple[int, int]]:
        """The first about ``size`` offsets of the ranges, and at least ``_LEAST`` of each range.

        No range is left out: the task needs all of them to know which rows precede a row.
        """
        whole = self._whole()
        total = max(self.size, 1)
        bounds = {p: start + -(-(end - start) * size // total) for p, (start, end) in whole.items()}
        return {
            p: (start, min(end, max(bounds[p.whole], start + _LEAST)))
            for p, (start, end) in self.ranges.items()
        }

    def _whole(self) -> dict[Partition, tuple[int, int]]:
        found: dict[Partition, tuple[int, int]] = {}
        for partition, (start, end) in self.ranges.items():
            low, high = found.get(partition.whole, (start, end))
            found[partition.whole] = min(low, start), max(high, end)
        return found


def ordered_readings(
    ranges: Mapping[Stream, Mapping[Partition, tuple[int, int]]],
) -> dict[tuple[Partition, int], OrderedReading]:
    """Group the ranges of ordered streams: a topic and a negative number → what is read together.

    The topic is written as its partition -1, which stands for all its partitions.
    """
    found: dict[tuple[Partition, int], OrderedReading] = {}
    groups: dict[str, list[dict[Partition, tuple[int, int]]]] = {}
    for stream in sorted(ranges, key=str):
        of_topic = groups.setdefault(stream.topic, [])
        of_stream = ranges[stream]
        near = next((group for group in of_topic if _is_near(of_stream, group)), None)
        if near is None:
            near = {}
            of_topic.append(near)
        near.update(of_stream)
    for topic, of_topic in groups.items():
        for number, group in enumerate(of_topic, 1):
            found[Partition(topic, -1), -number] = OrderedReading(group)
    return found


def _is_near(
    ranges: Mapping[Partition, tuple[int, int]], group: Mapping[Partition, tuple[int, int]]
) -> bool:
    starts: dict[Partition, int] = {}
    for partition, (start, _) in group.items():
        starts.setdefault(partition.whole, start)
    return all(abs(start - starts.get(p.whole, start)) <= NEAR for p, (start, _) in ranges.items())


def share_fairly(available: Mapping[K, int], bound: int) -> dict[K, int]:
    """Split a bound over partitions or readings: small ones whole, large ones in equal parts.

    A bound below their number counts as their number. Otherwise the large ones would get nothing
    for as long as rows keep coming to the small ones.

    Returns:
        Key of the partition or reading → offsets to read; empty for a bound of 0.
    """
    shares: dict[K, int] = {}
    left = max(bound, len(available)) if bound else 0
    by_size = sorted(available.items(), key=lambda item: (item[1], item[0]))
    for index, (partition, size) in enumerate(by_size):
        share = min(size, left // (len(by_size) - index))
        if share > 0:
            shares[partition] = share
            left -= share
    return shares
