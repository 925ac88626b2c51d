"""Which partitions hold the rows that are decided about, by a list of Kafka's topics. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.pipeline.topics import row_topic
from shardmerge.spark_sink.barrier.decisions import Decisions
from shardmerge.spark_sink.barrier.partitions import Partition, Stream, partitions_of


@dataclass(frozen=True, slots=True)
class Listing:
    """The row topics as they were at one time.

    Attributes:
        seen: ``Decisions.seen`` then; -1 before the first one.
        counts: Topic → number of its partitions; 0 where it does not exist yet.
        unread: Streams of sources that are not there any more, and whose shards are all gone.
        partitions: Every partition of rows that is read → the source of its rows.
        whole: The same as Kafka has them.
        own: Partitions of topics of one shard's own, of shards that share one → the shard.
        missed: Shards whose rows Debezium brings elsewhere than their route says.
    """

    seen: int = -1
    counts: Mapping[str, int] = field(default_factory=dict)
    unread: frozenset[Stream] = frozenset()
    partitions: Mapping[Partition, str] = field(default_factory=dict)
    whole: frozenset[Partition] = frozenset()
    own: Mapping[Partition, ShardId] = field(default_factory=dict)
    missed: frozenset[ShardId] = frozenset()


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be listed: the streams that are read, and where shared ones should have nothing.

    Attributes:
        own: Topic of one shard's own → the shard, which shares another one.
    """

    streams: tuple[Stream, ...]
    unread: frozenset[Stream]
    own: Mapping[str, ShardId]

    @classmethod
    def of(cls, decisions: Decisions, sources: Collection[str]) -> Wanted:
        """Of all streams; ``sources``: those that the pipeline file has."""
        unread = decisions.unread(sources)
        streams = tuple(stream for stream in decisions.streams if stream not in unread)
        own = {row_topic(s.shard): s.shard for s in streams if s.shard is not None}
        return cls(streams, unread, own)

    @property
    def topics(self) -> set[str]:
        """What Kafka is to be asked about."""
        return {*self.own, *(stream.topic for stream in self.streams)}

    def listing(self, decisions: Decisions, listed: Mapping[str, int]) -> Listing:
        """What it comes to; ``listed``: topic → number of partitions, of those that exist."""
        counts = {stream.topic: listed.get(stream.topic, 0) for stream in self.streams}
        partitions = {
            partition: decisions.streams[stream][0][1].source
            for stream in self.streams
            for partition in partitions_of(stream, counts[stream.topic])
        }
        return Listing(
            seen=decisions.seen,
            counts=counts,
            unread=self.unread,
            partitions=partitions,
            whole=frozenset(partition.whole for partition in partitions),
            own={
                partition: self.own[topic]
                for topic in self.own.keys() & listed.keys() - counts.keys()
                for partition in partitions_of(Stream(topic), listed[topic])
            },
            missed=frozenset(
                shard
                for stream in self.streams
                for _, shard in decisions.streams[stream]
                if decisions.topics.misses(shard)
            ),
        )
