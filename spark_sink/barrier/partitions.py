"""What rows are counted by: partitions of row topics, and one shard's part of a shared one. Pure.

A topic can hold the rows of one shard, or of many. Of the second kind each shard is treated as if
it had the topic for itself, with an offset of its own in each partition; what is read there of
other shards is passed over.
"""

from __future__ import annotations

from typing import NamedTuple

from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.pipeline.topics import RowTopics


class Stream(NamedTuple):
    """The rows of a shard, by where they are. ``shard``: None where the topic has no other."""

    topic: str
    shard: ShardId | None = None


class Partition(NamedTuple):
    """One partition of a stream.

    Attributes:
        shard: Whose part of a shared topic; None of a whole partition, as Kafka has it.
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
        """Kafka's partition."""
        return self if self.shard is None else Partition(self.topic, self.number)

    def __str__(self) -> str:
        return f"{self.topic}/{self.number}"


def stream_of(shard: ShardId, topics: RowTopics) -> Stream:
    """Where the rows of a shard are."""
    return Stream(topics.topic_of(shard), shard if topics.is_shared(shard) else None)


def partitions_of(stream: Stream, count: int) -> list[Partition]:
    """The partitions of a stream whose topic has so many."""
    return [Partition(stream.topic, number, stream.shard) for number in range(count)]
