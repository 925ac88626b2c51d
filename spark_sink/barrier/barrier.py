"""The offset barrier: which row offsets have every earlier schema change decided. Pure.

Theory of operation, per source:

1. The end offsets of its row partitions are read (read committed). Where several sources' rows
   share a topic, each shard's part of a partition has an end of its own, read for its source.
2. After that the high watermark of its schema-change topic is read (read uncommitted): the
   barrier. With an exactly-once source it covers every DDL that precedes a row below the ends.
3. The schema-change topic is read up to the barrier. Only reading shows which offsets hold
   records, because commit markers leave gaps.
4. The ends are *safe* when each of these records has all its decisions, and the ddl topic is read
   up to the high watermark that it had after step 1. Rows below safe ends may be planned, now and
   for ever. The ddl topic counts because a decision about another source's change can request that
   this source's rows are read again. The request is made when the decision is acknowledged. So when
   such rows are below the ends, the watermark of the ddl topic covers the decision.

A source keeps its ends and barrier until they are settled, and only then takes new ones. A
barrier that moved with the topic would never be reached while schema changes keep coming.

Source: KIP-618 (exactly-once source connectors). Measured with three brokers that were killed: the
guarantee always held for the high watermark, and not always for the last stable offset.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from shardmerge.schemas.model.errors import BarrierRegressed, ContractError

from .decisions import Decisions
from .partitions import Partition


@dataclass(frozen=True, slots=True)
class Barrier:
    """End offsets of a source's row partitions, and the watermark that was read after them.

    Attributes:
        watermark: High watermark (read uncommitted, exclusive) of the schema-change topic.
        ends: Row partition → end offset (read committed, exclusive).
        ddl_watermark: High watermark (exclusive) of the ddl topic.
    """

    source: str
    watermark: int
    ends: Mapping[Partition, int]
    ddl_watermark: int = 0


@dataclass(frozen=True, slots=True)
class Missing:
    """Why a barrier is not settled yet.

    Attributes:
        topic: The source's schema-change topic, which is named like the source, or the ddl topic.
        watermark: The barrier's high watermark of that topic.
        unread_from: Offset up to which the topic is read, if that is below the watermark; else
            None.
        undecided: Offsets below the watermark of schema changes that lack decisions.
    """

    topic: str
    watermark: int
    unread_from: int | None
    undecided: tuple[int, ...]

    def __str__(self) -> str:
        if self.undecided:
            first, count = self.undecided[0], len(self.undecided)
            more = f" and {count - 1} more" if count > 1 else ""
            return f"the decisions of schema change {self.topic}@{first}{more}"
        return (
            f"{self.topic} to be readable from {self.unread_from} to {self.watermark}"
            " (if that lasts, a transaction is open there)"
        )


@dataclass(slots=True)
class SchemaChangeTail:
    """What was read of one schema-change topic.

    Attributes:
        read_to: Everything below this offset was read (the end-of-partition event says so).
        undecided: Offsets that hold a record, from the first one that still lacks decisions.
    """

    source: str
    read_to: int = 0
    undecided: deque[int] = field(default_factory=deque)

    def record(self, offset: int) -> None:
        """A record was read; offsets come in ascending order, each once."""
        self.undecided.append(offset)
        self.read_to = offset + 1

    def reached(self, offset: int) -> None:
        """The end of the partition was seen at ``offset``: what lies below was read."""
        self.read_to = max(self.read_to, offset)

    def settle(self, decisions: Decisions) -> None:
        """Forget the schema changes that are decided by now, up to the first that is not.

        There may be thousands behind it, so they are not looked at.
        """
        while self.undecided and decisions.is_decided(self.source, self.undecided[0]):
            self.undecided.popleft()


def open_transaction(partition: Partition, offset: int) -> str:
    """What rows of a partition wait for when an open transaction blocks reading at ``offset``."""
    return f"the end of the transaction that is open at {partition}@{offset}"


def is_settled(
    barrier: Barrier, tail: SchemaChangeTail, decisions: Decisions, ddl_read_to: int
) -> bool:
    """Whether the barrier's ends are safe; see ``missing`` for the arguments."""
    tail.settle(decisions)
    return (
        tail.read_to >= barrier.watermark
        and not (tail.undecided and tail.undecided[0] < barrier.watermark)
        and ddl_read_to >= barrier.ddl_watermark
    )


def missing(
    barrier: Barrier, tail: SchemaChangeTail, decisions: Decisions, ddl_read_to: int
) -> Missing | None:
    """What is missing before the barrier's ends are safe; None when nothing is.

    Args:
        barrier: The barrier of one source.
        tail: What was read of that source's schema-change topic.
        decisions: What was read of the ddl topic.
        ddl_read_to: Offset (exclusive) up to which the ddl topic was read.
    """
    if is_settled(barrier, tail, decisions, ddl_read_to):
        return None
    unread_from = tail.read_to if tail.read_to < barrier.watermark else None
    undecided = tuple(
        offset
        for offset in tail.undecided
        if offset < barrier.watermark and not decisions.is_decided(barrier.source, offset)
    )
    if unread_from is not None or undecided:
        return Missing(barrier.source, barrier.watermark, unread_from, undecided)
    return Missing("the ddl topic", barrier.ddl_watermark, ddl_read_to, ())


class Barriers:
    """The barriers of all sources: takes ends and watermarks, says which ends are safe.

    Args:
        sources: Names of the pipeline's sources.

    Attributes:
        tails: Source → what was read of its schema-change topic.
        safe_ends: Row partition → end offset (exclusive) that is safe.
    """

    def __init__(self, sources: Iterable[str]) -> None:
        self.tails = {source: SchemaChangeTail(source) for source in sources}
        self.safe_ends: dict[Partition, int] = {}
        self._known: tuple[Decisions, int] | None = None
        self._pending: dict[str, Barrier] = {}
        self._watermarks: dict[Partition, int] = {}

    @property
    def settling(self) -> Collection[str]:
        """The sources that have a barrier to settle."""
        return self._pending.keys()

    @property
    def missing(self) -> dict[str, Missing]:
        """Source → what its barrier waited for when ``settle`` was called last.

        It is for people: to find out what is missing can take long. Only sources that wait.
        """
        if self._known is None:
            return {}
        found = {s: missing(b, self.tails[s], *self._known) for s, b in self._pending.items()}
        return {source: what for source, what in found.items() if what is not None}

    def check(self, watermarks: Mapping[Partition, int]) -> None:
        """Store new high watermarks of whole partitions, of any topics.

        Raises:
            BarrierRegressed: One is lower than before.
        """
        for partition, watermark in watermarks.items():
            before = self._watermarks.get(partition, 0)
            if watermark < before:
                raise BarrierRegressed(
                    f"the high watermark of {partition} went back from {before} to {watermark}",
                    hint="the topic was deleted and made anew, or the cluster lost data: what was "
                    "applied is not known any more; merge the source again from a snapshot",
                    code="SM-2116",
                )
            self._watermarks[partition] = watermark

    def partitions_to_read(self, partitions: Mapping[Partition, str]) -> tuple[Partition, ...]:
        """The partitions whose ends should be read for a new barrier.

        These partitions have grown beyond their safe ends, and their source has no barrier to
        settle.

        Args:
            partitions: Row partition → its source; their watermarks were taken by ``check``.
        """
        return tuple(
            partition
            for partition, source in partitions.items()
            if source not in self._pending
            and self._watermarks.get(partition.whole, 0) > self.safe_ends.get(partition, 0)
        )

    def grown(self, ends: Mapping[Partition, int]) -> tuple[Partition, ...]:
        """The partitions whose ends lie beyond their safe ends: a new barrier is worth it."""
        return tuple(p for p, end in ends.items() if end > self.safe_ends.get(p, 0))

    def pass_over(self, partition: Partition, end: int) -> None:
        """Take an end below which a partition has no rows beyond its safe end: it is safe, too."""
        self.safe_ends[partition] = max(end, self.safe_ends.get(partition, 0))

    def take(self, barrier: Barrier) -> None:
        """Begin to settle a barrier. Its watermark was read after its ends.

        Raises:
            BarrierRegressed: The watermark is lower than before.
        """
        self.check({Partition(barrier.source, 0): barrier.watermark})
        self._pending[barrier.source] = barrier

    def settle(self, decisions: Decisions, ddl_read_to: int) -> dict[str, Collection[Partition]]:
        """Declare the ends of a barrier safe when nothing is ``missing`` for it.

        Args:
            decisions: What was read of the ddl topic.
            ddl_read_to: Offset (exclusive) up to which the ddl topic was read.

        Returns:
            Source whose barrier is settled now → the partitions with new safe ends.

        Raises:
            ContractError: A decision names a source that the pipeline does not have.
        """
        self._known, settled = (decisions, ddl_read_to), dict[str, Collection[Partition]]()
        for source, barrier in list(self._pending.items()):
            tail = self.tails.get(source)
            if tail is None:
                raise ContractError(
                    f"decisions name source {source!r}, which the pipeline file does not have",
                    hint="add it to the pipeline file again, since its shards are part of the "
                    "target; `shardmerge command leave` takes them out",
                    code="SM-2115",
                )
            if is_settled(barrier, tail, decisions, ddl_read_to):
                self.safe_ends.update(barrier.ends)
                settled[source] = barrier.ends.keys()
                del self._pending[source]
        return settled
