"""How far rows are applied, and the proof that none is left before a position. Pure values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.position import BEGINNING, SourcePosition
from shardmerge.schemas.pipeline.topics import RowTopics, row_topic

from .decisions import Decisions
from .partitions import IdleParts, Partition, Stream, partitions_of, stream_of
from .shard_gates import Gate, ShardGates


@dataclass(frozen=True, slots=True)
class Applied:
    """Where a row partition stands.

    Attributes:
        offset: Every row before it is applied, none from it on.
        next_position: Position of the row at ``offset``, when a task read the row and stopped
            there; None when it is not known. Rows of a partition come in position order.
    """

    offset: int
    next_position: SourcePosition | None = None


@dataclass(frozen=True, slots=True)
class Watermarks:
    """High watermarks of all row partitions, and when they were read.

    Attributes:
        seen: ``Decisions.seen`` *before* the topics were listed and their watermarks requested.
        number: Number of the reading: later readings have higher numbers.
        partitions: Row topic → number of its partitions; a topic that is not listed had no row.
        ends: Every whole partition → its high watermark (read uncommitted, exclusive). Some of
            them may have been read later than the others, and are replaced then.
        topics: Where the shards' rows are.
        unread: Streams that are no longer read: their source left the pipeline (see
            ``Decisions.unread``).
        strays: Shards that have rows outside their topic: no rows of these shards are read.
    """

    seen: int = -1
    partitions: Mapping[str, int] = field(default_factory=dict)
    ends: dict[Partition, int] = field(default_factory=dict)
    topics: RowTopics = field(default_factory=RowTopics)
    unread: Collection[Stream] = ()
    strays: Collection[ShardId] = ()
    number: int = 0

    def partitions_of(self, shard: ShardId) -> list[Partition]:
        """The partitions of a shard's rows, as far as known."""
        stream = stream_of(shard, self.topics)
        if stream in self.unread:
            return []
        return partitions_of(stream, self.partitions.get(stream.topic, 0))

    def tells_same_as(self, before: Watermarks) -> bool:
        """Whether only the number of the reading is another one."""
        return replace(before, number=self.number) == self

    def end(self, partition: Partition) -> int:
        """The high watermark of the partition's whole Kafka partition."""
        return self.ends[partition.whole]


@dataclass(frozen=True, slots=True)
class LoadPlace:
    """How a shard's first load stands, as far as statements and removals depend on it.

    Attributes:
        version: Version of the gate at which the load stands (its base).
        position: Position of that gate. The load can still bring rows with the schema that begins
            there. None when the load is complete, and brings no more rows.
        reading: Number of a reading of watermarks. Rows that the load read at different moments
            agree as soon as everything is applied that the row topic held at that reading. 0 when
            they agree from the beginning.
        has_rows: Whether the load may have written rows.
    """

    version: int
    position: SourcePosition | None
    reading: int = 0
    has_rows: bool = True


@dataclass(frozen=True, slots=True)
class RowProgress:
    """Everything known of how far rows are applied.

    Attributes:
        applied: Row partition → where the target has it stored; one that is not listed stands at
            offset 0. ``at`` says where it stands, which can be further for an idle part.
        watermarks: The latest reading.
        caught_up: See ``CatchUp``.
        scans: Source and ``database.table`` → one number for each notice that the connector has
            read the table again, in order. The number is that of the first reading of watermarks
            after the notice.
        loads: Shard whose first rows the sink reads itself → where its latest load stands.
        idle: The parts of shared partitions that stand further than is stored.
    """

    applied: Mapping[Partition, Applied] = field(default_factory=dict)
    watermarks: Watermarks = field(default_factory=Watermarks)
    caught_up: Mapping[Partition, Reached] = field(default_factory=dict)
    scans: Mapping[tuple[str, str], Sequence[int]] = field(default_factory=dict)
    loads: Mapping[ShardId, LoadPlace] = field(default_factory=dict)
    idle: IdleParts = field(default_factory=IdleParts)

    def at(self, partition: Partition) -> Applied:
        """Where a partition stands."""
        stored = self.applied.get(partition, _UNTOUCHED)
        if partition.shard is None:
            return stored
        passed = self.idle.offset(partition)
        return stored if passed <= stored.offset else Applied(passed)

    def stored(self, partition: Partition) -> int:
        """The offset that the target has stored for a partition; 0 if it has none."""
        return self.applied.get(partition, _UNTOUCHED).offset

    def partitions_of(self, shard: ShardId) -> list[Partition]:
        """The partitions of a shard's row topic, as far as known."""
        return self.watermarks.partitions_of(shard)

    def is_parked(self, shard: ShardId) -> bool:
        """Whether the shard has rows that are not applied, according to the latest reading."""
        return self.parked(shard) > 0

    def parked(self, shard: ShardId) -> int:
        """How many offsets of the shard are not applied, according to the latest reading."""
        end = self.watermarks.end
        return sum(max(end(p) - self.at(p).offset, 0) for p in self.partitions_of(shard))


_UNTOUCHED = Applied(0)


class Reached(NamedTuple):
    """Identifies a reading of watermarks: see ``Watermarks``."""

    seen: int
    number: int


class CatchUp:
    """Remembers which high watermark the applied rows of each partition have reached.

    While records keep coming, of whichever shard, the latest watermark is never reached. An earlier
    one is reached, and still proves what it proved when it was read.

    Attributes:
        caught_up: Partition → the reading whose high watermark it has reached.
    """

    def __init__(self) -> None:
        self.caught_up: dict[Partition, Reached] = {}
        self._awaited: dict[Partition, tuple[Reached, int]] = {}

    def look(
        self,
        partitions: Iterable[Partition],
        watermarks: Watermarks,
        at: Callable[[Partition], Applied],
    ) -> None:
        """Take a reading of watermarks.

        A partition that has not yet reached the watermark of an earlier reading goes on waiting for
        that one.

        Args:
            partitions: Those whose ends were read.
            watermarks: The reading.
            at: Tells where a partition stands.
        """
        latest = Reached(watermarks.seen, watermarks.number)
        for partition in partitions:
            awaited = self._awaited.get(partition)
            if awaited is None:
                awaited = self._awaited[partition] = (latest, watermarks.end(partition))
            if at(partition).offset >= awaited[1]:
                self.caught_up[partition] = awaited[0]
                del self._awaited[partition]

    def forget(self, partition: Partition) -> None:
        """Drop what is known of a partition: its rows are going to be applied once more."""
        self.caught_up.pop(partition, None)
        self._awaited.pop(partition, None)


def moved_shard(
    applied: Iterable[Partition], decisions: Decisions
) -> tuple[ShardId, str, str] | None:
    """A shard whose rows were applied from another topic than its route says now.

    Returns:
        The shard, the topic of the applied rows and the topic of the route; None when no shard has
        moved.
    """
    topics, streams = decisions.topics, decisions.streams
    own = {row_topic(stream.shard): stream.shard for stream in streams if stream.shard is not None}
    for partition in applied:
        shard = partition.shard
        if shard is None and partition.stream not in streams:
            shard = own.get(partition.topic)
        if shard is not None and stream_of(shard, topics).topic != partition.topic:
            return shard, partition.topic, topics.topic_of(shard)
    return None


def is_applied_up_to(shard: ShardId, reading: int, rows: RowProgress) -> bool:
    """Whether everything is applied that a shard's row topic held at a reading of watermarks.

    Args:
        shard: Any.
        reading: Number of the reading; a later reading proves as much.
        rows: How far rows are applied.
    """
    watermarks = rows.watermarks
    current = watermarks.number >= reading
    partitions = watermarks.partitions_of(shard)
    if not partitions:
        return current
    for partition in partitions:
        reached = rows.caught_up.get(partition)
        if reached is not None and reached.number >= reading:
            continue
        if not current or rows.at(partition).offset < watermarks.end(partition):
            return False
    return True


def rows_agree(shard: ShardId, rows: RowProgress) -> bool:
    """Whether all rows of a shard are of one moment, as far as its first load is concerned.

    They are not while the target may have rows that the load read at different moments.
    """
    load = rows.loads.get(shard)
    if load is None:
        return True
    return load.position is None and (
        load.reading == 0 or is_applied_up_to(shard, load.reading, rows)
    )


def unapplied_before_gate(shard: ShardGates, gate: Gate, rows: RowProgress) -> str:
    """The rows before a gate that may still have to be applied: see ``unapplied_before``."""
    if shard.is_before_every_row(gate):
        return ""
    return unapplied_before(shard.shard, gate.position, gate.seen, rows)


def unapplied_before(
    shard: ShardId, place: SourcePosition, seen: int, rows: RowProgress, *, reading: int = 0
) -> str:
    """Which rows of a shard before a position may still have to be applied, as text.

    No such row is left when each partition of the row topic fulfils one of two conditions. Either
    the partition's next row that is not applied stands at or beyond the position. Or everything is
    applied up to a high watermark that was read after the record at the position was seen: that
    watermark covers every row that precedes the record. It can be the latest watermark, or one that
    was kept (``CatchUp``).

    Rows of a first load count too: while the load stands before the position, it can bring rows
    from before the position.

    Args:
        shard: Any.
        place: The position, for example a gate's.
        seen: ``Decisions.seen`` when the record at the position was seen. Readings made then or
            later count.
        rows: How far rows are applied.
        reading: Number of the first reading of watermarks that counts, for a position that is not a
            decision's: it was seen in rows, which may be later than the reading before.

    Returns:
        What is waited for, as text for people; "" when no such row is left.
    """
    if place == BEGINNING:
        return ""
    load = rows.loads.get(shard)
    if load is not None and load.position is not None and load.position < place:
        return f"the first load of {shard}, which stands before {place}"
    watermarks = rows.watermarks
    current = watermarks.seen >= seen and watermarks.number >= reading
    partitions = watermarks.partitions_of(shard)
    if not partitions and not current:
        return f"the high watermark of {watermarks.topics.topic_of(shard)}"
    for partition in partitions:
        state = rows.at(partition)
        if state.next_position is not None and state.next_position >= place:
            continue
        reached = rows.caught_up.get(partition)
        if reached is not None and reached.seen >= seen and reached.number >= reading:
            continue
        if not current:
            return f"the high watermark of {partition}"
        if state.offset < watermarks.end(partition):
            return f"rows of {shard} before {place} ({partition}@{state.offset})"
    return ""
