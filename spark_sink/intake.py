"""What the sink's driver reads of Kafka: decisions, the rows' ends, and the barriers of these.

Steps 1 to 3 of the offset barrier (``driver``): which ends are safe to apply up to.
"""

from __future__ import annotations

import logging
import time

from shardmerge.schemas import topics
from shardmerge.schemas.errors import ContractError
from shardmerge.schemas.events import Decision
from shardmerge.schemas.names import ShardId
from shardmerge.schemas.pipeline import Pipeline
from shardmerge.schemas.record_format import AVRO, RecordFormat

from .applied import Watermarks
from .barrier import Barrier, Barriers
from .decisions import Decisions
from .offsets import OffsetReader, TailEnd, TailRecord, TopicTail
from .partitions import Partition, Stream, partitions_of

log = logging.getLogger(__name__)

_RELIST_S = 0.1
"""How old a list of topics may be before it is read again without a reason."""
_LOUD_S = 5.0
"""How long a missing decision is waited for before the log says so."""


class Intake:
    """Follows a pipeline's topics.

    Args:
        tail: Of the ddl topic and the schema-change topics.
        format_: Of our own records.

    Attributes:
        decisions: Everything decided, as far as read.
        barriers: Per source, with the ends that are safe.
        watermarks: The latest reading of the row topics' ends.
        partitions: Every partition of rows that is read → the source of its rows.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        offsets: OffsetReader,
        tail: TopicTail,
        format_: RecordFormat = AVRO,
    ) -> None:
        self.decisions = Decisions(topics.RowTopics(pipeline.routes))
        self.barriers = Barriers(source.name for source in pipeline.sources)
        self.watermarks = Watermarks()
        self.partitions: dict[Partition, str] = {}
        self._offsets = offsets
        self._tail = tail
        self._format = format_
        self._ddl_topic = topics.ddl(pipeline).name
        self._ddl_read_to = 0
        self._listed_at, self._listed_seen = 0.0, -1
        self._whole: set[Partition] = set()
        self._missed: set[ShardId] = set()
        self._own: dict[Partition, ShardId] = {}  # where a shard that shares a topic has none
        self._missing_since: dict[str, float] = {}

    def load(self) -> None:
        """Read the decisions that there are.

        Raises:
            StackError: Kafka cannot be read.
            ContractError: The ddl topic contradicts itself.
        """
        partition = Partition(self._ddl_topic, 0)
        end = self._offsets.high_watermarks([partition])[partition]
        while self._ddl_read_to < end:
            self.read(timeout_s=1.0)

    def read(self, timeout_s: float) -> bool:
        """Fold what came in the ddl topic and the schema-change topics.

        Args:
            timeout_s: Longest wait for a first record.

        Returns:
            Whether a decision was shown.

        Raises:
            ContractError: A topic breaks its contract.
            StackError: Kafka cannot be read.
        """
        shown = False
        for event in self._tail.read(timeout_s):
            if event.topic == self._ddl_topic:
                shown |= self._read_ddl(event)
            elif isinstance(event, TailRecord):
                self.barriers.tails[event.topic].record(event.offset)
            else:
                self.barriers.tails[event.topic].reached(event.offset)
        return shown

    def _read_ddl(self, event: TailRecord | TailEnd) -> bool:
        if isinstance(event, TailEnd):
            self._ddl_read_to = max(self._ddl_read_to, event.offset)
            return False
        self._ddl_read_to = event.offset + 1
        if event.value is None:
            return False
        record = self._format.read(event.value)
        if not isinstance(record, Decision):
            raise ContractError(
                f"{event.topic}@{event.offset} is a {type(record).__name__}, not a Decision"
            )
        return self.decisions.add(record)

    def observe(self) -> None:
        """Read where the row partitions end; after that the barrier of these ends.

        Raises:
            StackError: Kafka does not answer: the next call tries again.
        """
        now, seen = time.monotonic(), self.decisions.seen
        known = self.watermarks
        counts, unread = known.partitions, known.unread
        if seen != self._listed_seen or now - self._listed_at >= _RELIST_S:
            # A source is removed when the pipeline file has it no more.
            unread = self.decisions.unread(self.barriers.tails.keys())
            wanted = [stream for stream in self.decisions.streams if stream not in unread]
            own = {
                topics.row_topic(stream.shard): stream.shard
                for stream in wanted
                if stream.shard is not None
            }
            listed = self._offsets.partitions({*own, *(stream.topic for stream in wanted)})
            counts = {stream.topic: listed.get(stream.topic, 0) for stream in wanted}
            self._own = {
                partition: own[topic]
                for topic in own.keys() & listed.keys() - counts.keys()
                for partition in partitions_of(Stream(topic), listed[topic])
            }
            self.partitions = {
                partition: self.decisions.streams[stream][0][1].source
                for stream in wanted
                for partition in partitions_of(stream, counts[stream.topic])
            }
            self._missed = {
                shard
                for stream in wanted
                for _, shard in self.decisions.streams[stream]
                if self.decisions.topics.misses(shard)
            }
            self._whole = {partition.whole for partition in self.partitions}
            self._listed_at, self._listed_seen = now, seen
        asked = self._offsets.high_watermarks({*self._whole, *self._own})
        watermarks = {partition: asked[partition] for partition in self._whole}
        self.barriers.check(watermarks)
        strays = frozenset(shard for own, shard in self._own.items() if asked[own]) | self._missed
        topics_ = self.decisions.topics
        number = known.number + 1
        self.watermarks = Watermarks(seen, counts, watermarks, topics_, unread, strays, number)
        wanting = self.barriers.wanting(self.partitions)
        stable = self._offsets.stable_ends({partition.whole for partition in wanting})
        ends = {partition: stable[partition.whole] for partition in wanting}
        by_source: dict[str, dict[Partition, int]] = {}
        for partition in self.barriers.grown(ends):
            by_source.setdefault(self.partitions[partition], {})[partition] = ends[partition]
        barriers = self._offsets.high_watermarks(Partition(source, 0) for source in by_source)
        for source, source_ends in by_source.items():
            watermark = barriers[Partition(source, 0)]
            self.barriers.take(Barrier(source, watermark, source_ends))

    def settle(self) -> None:
        """See which ends are safe by now: their schema changes have all their decisions."""
        self.barriers.settle(self.decisions)
        self._report_missing()

    def _report_missing(self) -> None:
        """Say in the log who is waited for, when it takes long."""
        now = time.monotonic()
        lacking = self.barriers.missing
        self._missing_since = {s: t for s, t in self._missing_since.items() if s in lacking}
        for source, what in lacking.items():
            if now - self._missing_since.setdefault(source, now) >= _LOUD_S:
                log.warning("barrier waits", extra={"source": source, "for": str(what)})
                self._missing_since[source] = now
