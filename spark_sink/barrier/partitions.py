"""Partitions of row topics, and one shard's part of a partition that shards share. Pure.

A topic can hold the rows of one shard, or of many. In a shared topic each shard is treated as if
it had the topic for itself: it has an offset of its own in each partition, and other shards' rows
are skipped.

There may be thousands of such parts, and mostly few of them get rows. So the offset of a part
without rows is not moved with each batch: ``IdleParts`` knows how far all of them are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.pipeline.topics import RowTopics


class Stream(NamedTuple):
    """The rows of a shard in a topic. ``shard``: None when the topic belongs to one shard."""

    topic: str
    shard: ShardId | None = None


class Partition(NamedTuple):
    """One partition of a stream.

    Attributes:
        shard: The shard whose part of a shared topic this is; None for a whole Kafka partition.
    """

    topic: str
    number: int
    shard: ShardId | None = None

    @property
    def stream(self) -> Stream:
        """What it is a partition of."""
        return Stream(self.topic, self.shard)

    @property
    def whole(self) -> Partition:
        """The Kafka partition that it is, or is a part of."""
        return self if self.shard is None else Partition(self.topic, self.number)

    def __str__(self) -> str:
        return f"{self.topic}/{self.number}"


class IdleParts:
    """Parts of shared partitions that have no row which is not applied, up to one offset for all.

    A part is *idle* while every row of it below its partition's base is applied. Only whoever knows
    the shard of each record moves a base (``kafka.windows``). A part whose rows come is *woken*:
    its rows before the base are applied, those from there on are not. What the target has stored
    for such a part may be an older offset: no row of the part lies in between.

    Attributes:
        bases: Whole partition → the offset below which the shard of every record is known.
    """

    def __init__(self) -> None:
        self.bases: dict[Partition, int] = {}
        self._idle: dict[Partition, dict[Partition, None]] = {}
        self._woken: dict[Partition, int] = {}

    def __contains__(self, part: Partition) -> bool:
        return part in self._idle.get(part.whole, ())

    def __iter__(self) -> Iterator[Partition]:
        for parts in self._idle.values():
            yield from parts

    def offset(self, part: Partition) -> int:
        """The offset below which no row of a part is left; 0 if the stored one alone says that."""
        whole = part.whole
        if part in self._idle.get(whole, ()):
            return self.bases[whole]
        return self._woken.get(part, 0)

    def rest(self, part: Partition) -> None:
        """Take a part whose rows are all applied, and of which no other row is known."""
        if part.whole in self.bases:
            self._idle.setdefault(part.whole, {})[part] = None
            self._woken.pop(part, None)

    def wake(self, part: Partition, base: int) -> bool:
        """Note that rows of a part may come from its partition's base on.

        Returns:
            Whether the part was idle. If it was not, it stands where it stood.
        """
        idle = self._idle.get(part.whole, {})
        if part not in idle:
            return False
        del idle[part]
        self._woken[part] = base
        return True

    def moved(self, part: Partition) -> None:
        """Take that the target has stored another offset of a part: only that one counts."""
        self._idle.get(part.whole, {}).pop(part, None)
        self._woken.pop(part, None)

    def end(self, whole: Partition) -> list[tuple[Partition, int]]:
        """Forget a base. Returns the parts that were idle, and where they stand now."""
        base = self.bases.pop(whole)
        woken = [(part, base) for part in self._idle.pop(whole, ())]
        self._woken.update(woken)
        return woken


def stream_of(shard: ShardId, topics: RowTopics) -> Stream:
    """Where the rows of a shard are."""
    return Stream(topics.topic_of(shard), shard if topics.is_shared(shard) else None)


def partitions_of(stream: Stream, count: int) -> list[Partition]:
    """The partitions of a stream whose topic has ``count`` of them."""
    return [Partition(stream.topic, number, stream.shard) for number in range(count)]
