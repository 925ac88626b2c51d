"""What is read together of a shared topic, and how much of it. Pure.

The shards of a shared topic stand at offsets of their own. Those that stand near each other are
one *reading*: a task reads the partition once and deals the records out. A shard that stands far
behind, because it was held or is new, is a reading of its own until it has come near: it must
neither keep the others waiting nor make them read what they have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from .partitions import Partition

K = TypeVar("K", bound=tuple[object, ...])
NEAR = 20_000
"""Offsets between two shards that are read together: a part of a second's work."""


@dataclass(frozen=True, slots=True)
class Reading:
    """``[start, end)`` of a whole partition, and the ranges that it serves; all begin within."""

    start: int
    end: int
    ranges: Mapping[Partition, tuple[int, int]]

    @property
    def size(self) -> int:
        """In offsets."""
        return self.end - self.start

    def first(self, size: int) -> dict[Partition, tuple[int, int]]:
        """The ranges of the first so many offsets."""
        bound = self.start + size
        return {
            partition: (start, min(end, bound))
            for partition, (start, end) in self.ranges.items()
            if start < bound
        }


def readings(
    ranges: Mapping[Partition, tuple[int, int]],
) -> dict[tuple[Partition, int], Reading]:
    """Group ranges, none of them empty: whole partition and number → what is read together.

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


def share_fairly(available: Mapping[K, int], bound: int) -> dict[K, int]:
    """Split a bound over partitions, or readings: small ones whole, large ones in equal parts.

    Returns:
        Which of them → offsets to read; those whose share is 0 are left out.
    """
    shares: dict[K, int] = {}
    left = bound
    by_size = sorted(available.items(), key=lambda item: (item[1], item[0]))
    for index, (partition, size) in enumerate(by_size):
        share = min(size, left // (len(by_size) - index))
        if share == 0 and left > 0:
            share = 1
        if share > 0:
            shares[partition] = share
            left -= share
    return shares
