"""What the sink's driver reads from Kafka: decisions, ends of row partitions, and the barriers.

Steps 1 to 3 of the offset barrier (``driver.loop``): which ends are safe to apply up to.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from shardmerge.connectors.event_log import logger
from shardmerge.connectors.kafka.record_formats import json_of_connectors
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.records.decisions import Decision
from shardmerge.schemas.records.record_format import AVRO, RecordFormat
from shardmerge.schemas.records.topic_records import decision_of
from shardmerge.spark_sink.barrier.applied import Watermarks
from shardmerge.spark_sink.barrier.barrier import Barrier, Barriers, is_settled, open_transaction
from shardmerge.spark_sink.barrier.decisions import Decisions
from shardmerge.spark_sink.barrier.partitions import IdleParts, Partition, Stream
from shardmerge.spark_sink.kafka.windows.window import Kept
from shardmerge.spark_sink.planning.ordered_partitions import Closure, OrderedStreams
from shardmerge.spark_sink.planning.partial_looks import (
    FEW,
    Behind,
    PartialLooks,
    SeenEnds,
    parts_of,
)

from .arrivals import Arrivals
from .barrier_questions import BarrierQuestions
from .listing import ListedTopics
from .offsets import OffsetReader
from .topic_tail import ScanNotices, TailEnd, TailRecord, TopicTail
from .waits import LongWaits, Waits
from .windows.window import ReadWindows
from .windows.window_looks import WindowLooks

log = logger(__name__)


def tailed_topics(pipeline: Pipeline) -> list[str]:
    """The topics of one partition that the sink reads from their beginning."""
    own = (topics.ddl(pipeline).name, topics.notifications(pipeline).name)
    return [*own, *(source.name for source in pipeline.sources)]


class Intake:
    """Follows a pipeline's topics.

    Args:
        tail: Of the topics that ``tailed_topics`` names.
        format_: Of our own records.
        orders_partitions: Whether the target can apply partitions in their common order
            (``ordered_partitions``).
        arrivals: Ends a wait as soon as rows or decisions arrive. None: waits are short instead.
        as_read: Gives each decision of the topic as it has to be followed here.
        read_windows: Reads what shared topics got, before it is planned. None: in each round that
            such a topic has rows, all its shards are looked at (``windows``).
        few: With fewer shards in a partition of a shared topic all of them are looked at.

    Attributes:
        decisions: Everything decided, as far as read.
        barriers: Per source, with the ends that are safe.
        watermarks: The latest reading of the row topics' high watermarks.
        unreadable: Whole partition → the offset at which an open transaction blocks reading,
            although there are records behind it. Everything before that offset is safe already.
        arrived: The whole row partitions in which records ended the last wait → the offset behind
            the last of them; 0 after an error or in a backlog.
        seen: Those of them whose records the wait has as a whole → the records.
        looked_at: The partitions whose ends ``observe`` asked for last → the source of their rows.
        described: The row topics as they are now.
        questions: Asks for the barriers of new ends.
        newly_safe: The partitions whose safe ends ``settle`` has moved last.
        idle: The shards of shared topics that stand further than the target has stored.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        offsets: OffsetReader,
        tail: TopicTail,
        format_: RecordFormat = AVRO,
        *,
        orders_partitions: bool = False,
        arrivals: Arrivals | None = None,
        as_read: Callable[[Decision], Decision] = lambda decision: decision,
        read_windows: ReadWindows | None = None,
        few: int = FEW,
    ) -> None:
        self.decisions = Decisions(topics.RowTopics(pipeline.routes))
        self.barriers = Barriers(source.name for source in pipeline.sources)
        self.watermarks = Watermarks()
        self._scans = ScanNotices(json_of_connectors(pipeline.kafka))
        self.unreadable: dict[Partition, int] = {}
        self.arrived: Mapping[Partition, int] = {}
        self.seen: Mapping[Partition, Kept] = {}
        self.looked_at: Mapping[Partition, str] = {}
        self.newly_safe: list[Partition] = []
        self.idle = IdleParts()
        self._windows = WindowLooks(read_windows, self.idle, self.barriers, few)
        self._offsets = offsets
        self._as_read = as_read
        self._tail = tail
        self._format = format_
        self._ddl = Partition(topics.ddl(pipeline).name, 0)
        self._notifications = topics.notifications(pipeline).name
        self._ddl_read_to = 0
        self._topics = ListedTopics(offsets, self.barriers.tails.keys())
        self.described = self._topics.described
        self.questions = BarrierQuestions(offsets, self._ddl, self.barriers, self.described)
        self._long_waits = LongWaits()
        self._ordering = OrderedStreams(is_possible=orders_partitions)
        self._waits = Waits(tail, arrivals) if arrivals is not None else None
        self._ends: dict[Partition, int] = {}
        self._looks = PartialLooks()
        self._seen = SeenEnds()
        self._behind = Behind()
        self._has_looked = self._is_interrupted = False

    def load(self) -> None:
        """Read the decisions that the ddl topic has now.

        Raises:
            StackError: Kafka cannot be read.
            ContractError: The ddl topic contradicts itself.
        """
        end = self._offsets.high_watermarks([self._ddl])[self._ddl]
        while self._ddl_read_to < end:
            self.read(timeout_s=1.0)

    def read(self, timeout_s: float, *, idle: bool = False) -> bool:
        """Take the new records of the ddl topic, schema-change topics and notifications topic.

        Args:
            timeout_s: Longest wait for a first record, in seconds.
            idle: Whether there is nothing else to do: rows that arrive end the wait, too.

        Returns:
            Whether a decision was shown.

        Raises:
            ContractError: A topic breaks its contract.
            StackError: Kafka cannot be read.
        """
        if self._waits is not None:
            lacks = bool(self._topics.listing.lacking)
            timeout_s = self._waits.wait(timeout_s, self._ends if idle else None, lacks=lacks)
            self.arrived, self.seen = self._waits.rows_of, self._waits.seen
        shown = False
        for event in self._tail.read(timeout_s):
            if event.topic == self._ddl.topic:
                shown |= self._read_ddl(event)
            elif event.topic == self._notifications:
                if isinstance(event, TailRecord):
                    self._scans.add(event)
            elif isinstance(event, TailRecord):
                self.barriers.tails[event.topic].record(event.offset)
            else:
                self.barriers.tails[event.topic].reached(event.offset)
        self._scans.read(self.watermarks.number + 1)
        return shown

    def _read_ddl(self, event: TailRecord | TailEnd) -> bool:
        if isinstance(event, TailEnd):
            self._ddl_read_to = max(self._ddl_read_to, event.offset)
            return False
        self._ddl_read_to = event.offset + 1
        if event.value is None:
            return False
        place = f"{event.topic}@{event.offset}"
        return self.decisions.add(self._as_read(decision_of(self._format.read(event.value), place)))

    def observe(self, *, is_calm: bool = False, ahead: bool = False) -> None:
        """Read the ends of the row partitions, and after that the barriers of these ends.

        Args:
            is_calm: Whether nothing waits for a new reading of all ends (``partial_looks``).
            ahead: Whether the caller may go on with rows that have just arrived, and take Kafka's
                answer about their barrier later (``questions.awaited``).

        Raises:
            StackError: Kafka does not answer: the next call tries again.
        """
        began, known = time.monotonic(), self.watermarks.ends
        warm = self._waits.arrived(known) if self._waits is not None else frozenset()
        self._looks.warm(warm, began)
        parts = max(len(self._topics.listing.partitions), len(self.decisions.streams))
        some = self._looks.wanted(known, parts, began, is_calm=is_calm)
        # Ordered partitions need all ends, and so does a look that an error has interrupted.
        needs_all = bool(self.ordered) or self._waits is None or self._topics.is_other
        needs_all |= self._is_interrupted
        # Rows that ended a wait do not wait for the list: the next round reads it.
        hurried = self._waits is not None and self._waits.is_over_early
        self._topics.renew(self.decisions, whole=needs_all or some is None, hurried=hurried)
        listing = self._topics.listing
        needs_all |= self._topics.is_other
        is_due = self._looks.is_due(began)
        rests = is_calm and self._waits is not None and self._waits.saw_nothing and not is_due
        rests &= not (needs_all or self._topics.fresh or self._behind or warm)
        if rests and self._looks.may_rest(began):
            self.looked_at = {}
            self.described.begin_round()
            return
        self._looks.looked(began)
        is_calm, self._is_interrupted = is_calm and not self._is_interrupted, True
        may_see = hurried and not (needs_all or self._topics.fresh or is_due)
        arrived = self.arrived if may_see else {}
        looked: AbstractSet[Partition] | None
        if was_seen := self._seen.take(arrived, known, began, is_calm=is_calm):
            stable, looked = self._take_seen(), arrived.keys()
        elif not needs_all and some is not None:
            stable, looked = self._look_at(some), some
        elif not needs_all and not is_due and self._seen.may_have_markers(began):
            stable, looked = self._look_at(frozenset(known)), known.keys()
        else:
            stable, looked = self._look_at_all(is_calm=is_calm), None
        if self._waits is not None and self._topics.fresh:
            fresh = {partition.whole for partition in self._topics.fresh}
            self._waits.follow_also({p: self.watermarks.ends[p] for p in fresh})
        self._topics.fresh.clear()
        behind = self._look_into_windows(looked, stable, began)
        self._behind.take(behind, self.watermarks.ends, self.barriers.safe_ends)
        self._is_interrupted = False
        if looked is None:
            self._looks.took(began, time.monotonic())
        wanting = self.barriers.partitions_to_read(self._behind.partitions(self.barriers.settling))
        if unasked := {partition.whole for partition in wanting} - stable.keys():
            stable |= self._offsets.stable_ends(unasked)
        ends = {partition: stable[partition.whole] for partition in wanting}
        self._ends.update(stable)
        by_source: dict[str, dict[Partition, int]] = {}
        grown = self.barriers.grown(ends)
        for partition in wanting:
            self.unreadable.pop(partition.whole, None)
        self.unreadable |= {p.whole: ends[p] for p in ends.keys() - grown}
        self._looks.warm({partition.whole for partition in grown}, began)
        for partition in grown:
            by_source.setdefault(listing.partitions[partition], {})[partition] = ends[partition]
        if self._waits is not None:
            markers = self._seen.behind_markers
            self._waits.check(any(ends[p] != markers.get(p.whole) for p in grown))
        self.described.begin_round()
        if not by_source:
            return
        goes_ahead = ahead and was_seen and self.questions.are_foreseen(by_source, self.decisions)
        self.questions.ask(by_source, awaits=not goes_ahead)

    def _look_into_windows(
        self, looked: AbstractSet[Partition] | None, stable: dict[Partition, int], began: float
    ) -> Mapping[Partition, str]:
        """Look at the shards that windows of shared topics name, too (see ``WindowLooks.look``).

        Returns:
            The partitions looked at that are not idle → their sources.
        """
        listing, ends = self._topics.listing, self.watermarks.ends
        if looked is None and not self.looked_at:  # all ends are as before
            looked = frozenset()
        found = self._windows.look(self._shared(), looked, ends, stable, self._offsets.stable_ends)
        if not self.idle.bases:
            return self.looked_at
        # A base is a stable end, which was read later and can be higher. Then a shard whose safe
        # end is the high watermark may have rows in between, although it has none before.
        later = {p: base for p, base in self.idle.bases.items() if base > ends.get(p, 0)}
        self.barriers.check(later)
        ends.update(later)
        self._looks.warm(found.moved, began)
        for whole in found.moved:
            self.unreadable.pop(whole, None)
        self.unreadable |= found.blocked
        named = {p: listing.partitions[p] for p in found.named if p in listing.partitions}
        if looked is not None:
            self.looked_at = {**self.looked_at, **named}
        return {p: source for p, source in self.looked_at.items() if p not in self.idle}

    def _shared(self) -> Mapping[Partition, Collection[Partition]]:
        """The whole partitions of shared topics that are not ordered → their parts."""
        parts, ordered = self._topics.listing.parts, {stream.topic for stream in self.ordered}
        return {p: of for p, of in parts.items() if p.topic not in ordered} if ordered else parts

    def rest(self, part: Partition) -> None:
        """Take that all safe rows of a part are applied: it is idle if no others are known."""
        if part not in self._behind:
            self.idle.rest(part)

    def _take_seen(self) -> dict[Partition, int]:
        """Take the offsets behind the records that ended the wait as ends. Returns them.

        The other partitions stay as ``_look_at`` leaves them.
        """
        listing, seen = self._topics.listing, dict(self.arrived)
        self.barriers.check(seen)
        self.watermarks.ends.update(seen)
        self._ends.update(seen)
        self.looked_at = parts_of(seen.keys(), listing.partitions, listing.parts, self.idle.bases)
        return seen

    def _look_at_all(self, *, is_calm: bool) -> dict[Partition, int]:
        """Read all ends anew. Returns the stable ends of the partitions with arrivals."""
        listing = self._topics.listing
        # A listing that differs in more than new topics may have lost and found shards.
        self._windows.keep({} if self._topics.is_other else self._shared())
        known = {*listing.whole, *listing.own}
        asked, stable = self._offsets.both_ends(known, self.arrived.keys() & known)
        self._seen.forget()
        self._has_looked = True
        reading = listing.reading(asked, self.decisions.topics, self.watermarks.number + 1)
        self.barriers.check(reading.ends)
        # In a calm sink nothing waits for a later reading that tells the same.
        if is_calm and not self._topics.is_other and reading.tells_same_as(self.watermarks):
            self.looked_at = {}
            return stable
        self.watermarks = reading
        self._ends = dict(reading.ends)
        self._topics.is_other = False
        self._behind.keep(listing.partitions)
        self.looked_at = listing.partitions
        return stable

    def _look_at(self, some: AbstractSet[Partition]) -> dict[Partition, int]:
        """Read some ends anew, and those of partitions that are new in the listing.

        The others stay as the last look at all has found them, and so does what that look proves.

        Returns:
            The stable ends of those partitions that had arrivals.
        """
        listing, fresh = self._topics.listing, self._topics.fresh
        asked, stable = self._offsets.both_ends(
            some | {partition.whole for partition in fresh}, self.arrived.keys() & some
        )
        asked = self._seen.but_markers(asked, time.monotonic())
        self.barriers.check(asked)
        self.watermarks.ends.update(asked)
        if fresh or len(listing.counts) != len(self.watermarks.partitions):
            self.watermarks = replace(self.watermarks, partitions=dict(listing.counts))
        self._ends.update(asked)
        self.looked_at = {
            **parts_of(some, listing.partitions, listing.parts, self.idle.bases),
            **{partition: listing.partitions[partition] for partition in fresh},
        }
        return stable

    @property
    def scans(self) -> Mapping[tuple[str, str], Sequence[int]]:
        """Tables that were read again, see ``RowProgress``."""
        return self._scans.found

    @property
    def ordered(self) -> Mapping[Stream, Closure | None]:
        """Stream whose partitions are ordered → its latest closure; None without one."""
        return self._ordering.closures

    @property
    def is_still(self) -> bool:
        """Whether nothing was seen last: no new end, no row before its barrier, none behind it."""
        return not (self.looked_at or self.newly_safe or self._behind)

    @property
    def knows_all(self) -> bool:
        """Whether ends of all shards were read, and no rows ended the wait."""
        return not (self.arrived or self.ordered) and self._topics.covers(self.decisions)

    def settle(self) -> bool:
        """Find which ends are safe by now. Returns whether another call soon finds a closure."""
        self.newly_safe = []
        for source, ends in self.barriers.settle(self.decisions, self._ddl_read_to).items():
            self.newly_safe += ends
            self._behind.settled(source, self.watermarks.ends, self.barriers.safe_ends)
        lacking = {str(p): open_transaction(p, offset) for p, offset in self.unreadable.items()}
        lacking |= dict.fromkeys(self.barriers.settling, "")
        self._long_waits.look(lacking, lambda: self.barriers.missing)
        streams, has_looked = self.decisions.ordered_streams, self._has_looked
        self._has_looked, safe_ends = False, self.barriers.safe_ends
        return self._ordering.look(streams, self.watermarks, safe_ends, read_anew=has_looked)

    def order_partitions(self, stream: Stream) -> bool:
        """Order the partitions of a stream from now on.

        Called after a collision in a unique key: the value may have moved from a row of one
        partition to a row of another.

        Returns:
            Whether the stream was not ordered before, and can be.
        """
        if not self._ordering.add(stream, self.watermarks):
            return False
        shards = [shard for _, shard in self.decisions.streams.get(stream, ())]
        log.info("partitions_ordered", topic=stream.topic, shards=shards)
        return True

    def is_settled(self, barrier: Barrier) -> bool:
        """Whether every schema change below a barrier is decided, and its decisions are read."""
        tail = self.barriers.tails[barrier.source]
        return is_settled(barrier, tail, self.decisions, self._ddl_read_to)
