"""Which partitions hold the rows of the known shards, and how often Kafka is asked about that.

Theory of operation. A whole list costs as much as there are topics and shards. So only now and then
a list is whole. In between, the shards that decisions name for the first time are added to it: the
work is O(new shards), and Kafka is asked about their topics alone. What is added proves nothing
about other shards, so the number of decisions that the list covers (``seen``) stays as it was.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice

from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.pipeline.topics import RowTopics, row_topic
from shardmerge.spark_sink.barrier.applied import Watermarks
from shardmerge.spark_sink.barrier.decisions import Decisions
from shardmerge.spark_sink.barrier.partitions import Partition, Stream, partitions_of

from .offsets import DescribedTopics, OffsetReader, ask_again

_RELIST_S = 0.1
"""Seconds after which the list of topics is read again without a reason."""
_LATE_S = 5.0
"""Seconds by which a new list of topics may be put off, so that rows that arrive do not wait."""


@dataclass(slots=True)
class Listing:
    """The row topics as they were at one time, and what shards that came later have added.

    Attributes:
        seen: ``Decisions.seen`` at the time of the whole list; -1 before the first list.
        streams: How many of ``Decisions.streams`` are in the list.
        counts: Topic → number of its partitions; 0 for a topic that does not exist yet.
        lacking: The topics that do not exist yet.
        unread: See ``Decisions.unread``.
        partitions: Every row partition that is read → the source of its rows.
        parts: Whole partition of a shared topic → its part of each shard.
        whole: The whole Kafka partitions.
        own: For shards that share a topic: partition of the shard's default topic, which should
            have no rows → the shard.
        missed: Shards whose rows Debezium writes to another topic than their route says.
    """

    seen: int = -1
    streams: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    lacking: set[str] = field(default_factory=set)
    unread: frozenset[Stream] = frozenset()
    partitions: dict[Partition, str] = field(default_factory=dict)
    parts: dict[Partition, list[Partition]] = field(default_factory=dict)
    whole: set[Partition] = field(default_factory=set)
    own: dict[Partition, ShardId] = field(default_factory=dict)
    missed: set[ShardId] = field(default_factory=set)

    def extends(self, before: Listing) -> bool:
        """Whether a new list differs from an earlier one only by topics that are new."""
        return (
            self.own.keys() == before.own.keys()
            and self.unread == before.unread
            and self.missed == before.missed
            and before.whole <= self.whole
        )

    def reading(self, ends: Mapping[Partition, int], topics: RowTopics, number: int) -> Watermarks:
        """The high watermarks of all partitions in the list.

        Args:
            ends: The high watermark of each, and of each partition that should have no rows.
            topics: Where the shards' rows are.
            number: Of the reading.
        """
        return Watermarks(
            self.seen,
            dict(self.counts),
            {partition: ends[partition] for partition in self.whole},
            topics,
            self.unread,
            strays=self.missed | {shard for own, shard in self.own.items() if ends[own]},
            number=number,
        )

    def new_streams(self, decisions: Decisions) -> list[Stream]:
        """The streams that decisions have named since; streams are never taken away."""
        return list(islice(decisions.streams, self.streams, None))

    def add(
        self, streams: Iterable[Stream], decisions: Decisions, listed: Mapping[str, int]
    ) -> list[Partition]:
        """Add streams, or take topics that exist by now.

        Args:
            streams: New ones, and those whose topics lacked.
            decisions: That name the streams.
            listed: Topic that exists → number of its partitions.

        Returns:
            The partitions that were not in the list.
        """
        added = []
        for stream in streams:
            count = listed.get(stream.topic, self.counts.get(stream.topic, 0))
            self.counts[stream.topic] = count
            (self.lacking.discard if count else self.lacking.add)(stream.topic)
            source = decisions.streams[stream][0][1].source
            for partition in partitions_of(stream, count):
                if partition in self.partitions:
                    continue
                self.partitions[partition] = source
                self.whole.add(whole := partition.whole)
                if partition.shard is not None:
                    self.parts.setdefault(whole, []).append(partition)
                added.append(partition)
        return added


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a whole list is about: streams that are read, and topics that should have no rows.

    Attributes:
        seen: ``Decisions.seen`` of the decisions that name them.
        own: Default topic of a shard that shares another topic → the shard.
        topics: The topics to ask Kafka about.
    """

    seen: int
    streams: tuple[Stream, ...]
    unread: frozenset[Stream]
    own: Mapping[str, ShardId]
    topics: frozenset[str]

    @classmethod
    def of(cls, decisions: Decisions, sources: Collection[str]) -> Wanted:
        """What to list for all known shards; ``sources``: the sources in the pipeline file."""
        unread = decisions.unread(sources)
        streams = tuple(stream for stream in decisions.streams if stream not in unread)
        own = default_topics(streams)
        topics = frozenset([*own, *(stream.topic for stream in streams)])
        return cls(decisions.seen, streams, unread, own, topics)

    def listing(self, decisions: Decisions, listed: Mapping[str, int]) -> Listing:
        """The listing; ``listed``: topic that exists → number of its partitions."""
        found = Listing(decisions.seen, len(decisions.streams), unread=self.unread)
        found.add(self.streams, decisions, listed)
        found.own = {
            partition: self.own[topic]
            for topic in self.own.keys() & listed.keys() - found.counts.keys()
            for partition in partitions_of(Stream(topic), listed[topic])
        }
        found.missed = missed_shards(self.streams, decisions)
        return found


def default_topics(streams: Iterable[Stream]) -> dict[str, ShardId]:
    """Default topic of each shard that shares another topic → the shard."""
    return {row_topic(s.shard): s.shard for s in streams if s.shard is not None}


def missed_shards(streams: Iterable[Stream], decisions: Decisions) -> set[ShardId]:
    """See ``Listing.missed``."""
    return {
        shard
        for stream in streams
        for _, shard in decisions.streams[stream]
        if decisions.topics.misses(shard)
    }


class ListedTopics:
    """The row topics, listed as often as it is worth it.

    Args:
        offsets: Asks Kafka.
        sources: The sources in the pipeline file.

    Attributes:
        listing: The latest one.
        described: What the topics are.
        fresh: Partitions that came into the listing. Whoever has read their ends clears it.
        is_other: Whether more has changed in the listing than that topics are new. Whoever has
            read all ends takes it back.
    """

    def __init__(self, offsets: OffsetReader, sources: Collection[str]) -> None:
        self.listing = Listing()
        self.described = DescribedTopics(offsets)
        self.fresh: set[Partition] = set()
        self.is_other = False
        self._offsets = offsets
        self._sources = sources
        self._wanted: Wanted | None = None
        self._list_at = 0.0
        self._listed: tuple[int, Mapping[str, int]] = (-1, {})

    def covers(self, decisions: Decisions) -> bool:
        """Whether every shard that is decided about is listed, and its ends were read."""
        listing = self.listing
        is_read = listing.seen >= 0 and not (self.is_other or self.fresh)
        return is_read and not listing.new_streams(decisions)

    def renew(self, decisions: Decisions, *, whole: bool, hurried: bool) -> None:
        """Bring the listing up to date.

        Args:
            decisions: Everything decided, as far as read.
            whole: Whether the list must cover all these decisions.
            hurried: Whether a list without a reason may come later, because rows wait.

        Raises:
            StackError: Kafka does not answer.
        """
        due = time.monotonic() >= self._list_at + (_LATE_S if hurried else 0.0)
        if due or (whole and self.listing.seen != decisions.seen):
            self._list(decisions)
        elif new := self.listing.new_streams(decisions):
            self._add(new, decisions)

    def _list(self, decisions: Decisions) -> None:
        now, before = time.monotonic(), self.listing
        wanted = self._wanted
        if wanted is None or wanted.seen != decisions.seen:
            wanted = self._wanted = Wanted.of(decisions, self._sources)
        counts = self._offsets.partitions(wanted.topics)
        if self._listed != (seen := (decisions.seen, counts)):
            self.listing, self._listed = wanted.listing(decisions, counts), seen
            self.is_other |= not self.listing.extends(before)
            self.fresh |= self.listing.partitions.keys() - before.partitions.keys()
            self.fresh &= self.listing.partitions.keys()
        self._list_at = ask_again(now, _RELIST_S)
        self.described.renew(self.listing.counts)

    def _add(self, new: Collection[Stream], decisions: Decisions) -> None:
        """Add shards that were not listed yet. What is unusual is left to a whole list."""
        own, listing = default_topics(new), self.listing
        names = {stream.topic for stream in new if not listing.counts.get(stream.topic)}
        found = self._offsets.described(names | own.keys())
        sources = {decisions.streams[stream][0][1].source for stream in new}
        if own.keys() & found.keys() or missed_shards(new, decisions) or sources - {*self._sources}:
            self._list(decisions)
            return
        counts = {name: topic.partitions for name, topic in found.items()}
        self.fresh.update(listing.add(new, decisions, counts))
        listing.streams += len(new)
        self.described.take(names, found)
