"""Which partitions hold the rows of the known shards, given a list of Kafka's topics. Pure."""

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
        seen: ``Decisions.seen`` then; -1 before the first list.
        counts: Topic → number of its partitions; 0 for a topic that does not exist yet.
        unread: See ``Decisions.unread``.
        partitions: Every row partition that is read → the source of its rows.
        whole: The whole Kafka partitions of these.
        own: For shards that share a topic: partition of the shard's default topic, which should
            have no rows → the shard.
        missed: Shards whose rows Debezium writes to another topic than their route says.
    """

    seen: int = -1
    counts: Mapping[str, int] = field(default_factory=dict)
    unread: frozenset[Stream] = frozenset()
    partitions: Mapping[Partition, str] = field(default_factory=dict)
    whole: frozenset[Partition] = frozenset()
    own: Mapping[Partition, ShardId] = field(default_factory=dict)
    missed: frozenset[ShardId] = frozenset()

    @property
    def lacks_topics(self) -> bool:
        """Whether a topic that is to be read does not exist yet."""
        return 0 in self.counts.values()


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be listed: streams that are read, and topics that should have no rows.

    Attributes:
        own: Default topic of a shard that shares another topic → the shard.
    """

    streams: tuple[Stream, ...]
    unread: frozenset[Stream]
    own: Mapping[str, ShardId]

    @classmethod
    def of(cls, decisions: Decisions, sources: Collection[str]) -> Wanted:
        """What to list for all known shards; ``sources``: the sources in the pipeline file."""
        unread = decisions.unread(sources)
        streams = tuple(stream for stream in decisions.streams if stream not in unread)
        own = {row_topic(s.shard): s.shard for s in streams if s.shard is not None}
        return cls(streams, unread, own)

    @property
    def topics(self) -> set[str]:
        """The topics to ask Kafka about."""
        return {*self.own, *(stream.topic for stream in self.streams)}

    def listing(self, decisions: Decisions, listed: Mapping[str, int]) -> Listing:
        """The listing; ``listed``: topic that exists → number of its partitions."""
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
