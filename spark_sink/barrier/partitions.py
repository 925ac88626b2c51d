"""Partitions of row topics, and one shard's part of a partition that shards share. Pure.

A topic can hold the rows of one shard, or of many. In a shared topic each shard is treated as if
it had the topic for itself: it has an offset of its own in each partition, and other shards' rows
are skipped.
"""

from __future__ import annotations

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


def stream_of(shard: ShardId, topics: RowTopics) -> Stream:
    """Where the rows of a shard are."""
    return Stream(topics.topic_of(shard), shard if topics.is_shared(shard) else None)


def partitions_of(stream: Stream, count: int) -> list[Partition]:
    """The partitions of a stream whose topic has ``count`` of them."""
    return [Partition(stream.topic, number, stream.shard) for number in range(count)]
