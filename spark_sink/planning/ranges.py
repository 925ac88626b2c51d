"""What the driver hands to a task, and what the task answers: plain, picklable values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from shardmerge.schemas.model.errors import UNCODED
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.policies import RowOperation
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.records.decisions import Binding
from shardmerge.spark_sink.barrier.partitions import Partition

from .ordered_partitions import PartitionClosure


@dataclass(frozen=True, slots=True)
class Segment:
    """Rows of a shard from one gate to the next: they share one schema.

    Attributes:
        start: The gate's position (inclusive); a row belongs to the last segment that starts
            at or before it.
        columns: The shard's columns there, with identities. Every row image must have exactly
            these names.
        key: The shard's primary-key column names there.
        live: False after the shard was dropped: a row here contradicts the tracked schema.
        added: Columns that the shard got between these held rows and their release: the target may
            need a value for them.
        passed_over: Rows here are skipped. The shard was dropped or taken out while it was held
            here, or a snapshot of its first load includes these rows.
        undone: The rows here were taken back and all come again later, so they are skipped.
        began_ms: Of the gate (``Gate.began_ms``). A snapshot row at ``start`` that is older belongs
            to an earlier snapshot.
    """

    start: SourcePosition
    columns: tuple[ShardColumn, ...]
    key: tuple[str, ...]
    live: bool = True
    passed_over: bool = False
    added: tuple[ShardColumn, ...] = ()
    undone: bool = False
    began_ms: int = 0


@dataclass(frozen=True, slots=True)
class ShardStream:
    """How to read the rows of one shard in a batch.

    Attributes:
        segments: In position order; never empty.
        stop: Position of the first gate or TRUNCATE that may not be passed; None when all may.
        partitions: How many partitions the row topic has.
        keeps_truncated: Whether rows stay in the target when the shard's table is truncated.
        where: Condition that rows must fulfil to be merged; "" for all rows.
        is_part: Whether the row topic holds other shards' rows too.
        ordered: Whether its partitions are ordered (``ordered_partitions``).
        reads_again: Whether rows that the target has already may come again by a snapshot.
        stop_began_ms: ``began_ms`` of the gate at ``stop``.
        undoes: Whether the rows are to be taken back instead of applied (``restarts``).
        ignored: Operations that are not applied.
        groups: Group of the route's expressions → its value, for origin columns.
    """

    shard: ShardId
    target: TargetTable
    segments: tuple[Segment, ...]
    stop: SourcePosition | None
    partitions: int = 1
    keeps_truncated: bool = False
    where: str = ""
    is_part: bool = False
    ordered: bool = False
    reads_again: bool = False
    stop_began_ms: int = 0
    undoes: bool = False
    ignored: frozenset[RowOperation] = frozenset()
    groups: tuple[tuple[str, str], ...] = ()

    @property
    def tells_moves(self) -> bool:
        """Whether the two records of a changed primary key have to be marked as such.

        Only a stream that ignores some row operations treats these records as one UPDATE.
        """
        return bool(self.ignored - {RowOperation.TRUNCATE})

    @property
    def kept_from(self) -> SourcePosition | None:
        """Start of the first rows that were not taken back; None when no rows were taken back."""
        kept = next((s.start for s in self.segments if not s.undone), None)
        return kept if self.segments[0].undone else None


@dataclass(frozen=True, slots=True)
class RangeTask:
    """One partition's half-open offset range ``[start_offset, end_offset)``.

    In a shared topic it is one shard's range: see ``place``. If the task takes rows back, it moves
    the partition from the end of the range to its start.

    Attributes:
        stream: How to read the shard's rows.
        bindings: Identity → physical target column, as the statements executed so far made it.
        writer_epoch: Fencing token: the target refuses it once a new driver has replaced this one.
        reading: Ranges of one partition of a shared topic with equal numbers are read together. For
            an ordered stream the number is negative, and all ranges of the topic with that number
            are read together.
        closure: For a partition of an ordered stream; None for any other.
        stored_offset: What the target has stored for the partition before the task. It can be less
            than where the partition stands (``IdleParts``). None: it is the same.
    """

    topic: str
    partition: int
    start_offset: int
    end_offset: int
    stream: ShardStream
    bindings: Mapping[str, Binding]
    writer_epoch: int
    reading: int = 0
    closure: PartitionClosure | None = None
    stored_offset: int | None = None

    @property
    def place(self) -> Partition:
        """The partition, or the shard's part of it, that this is a range of."""
        return Partition(self.topic, self.partition, self.part)

    @property
    def part(self) -> ShardId | None:
        """The shard whose part of a shared topic it is; None if the topic is the shard's own."""
        return self.stream.shard if self.stream.is_part else None

    @property
    def stands_at(self) -> int:
        """The offset at which the partition stands before the task."""
        return self.end_offset if self.stream.undoes else self.start_offset


@dataclass(frozen=True, slots=True)
class RowHold:
    """A row that cannot be applied: its shard waits before it until an operator acts.

    Attributes:
        collides: Whether another row of the target has the same value in a unique key.
        code: Of the reason, see ``schemas.codes``.
    """

    shard: ShardId
    position: SourcePosition
    offset: int
    reason: str
    hint: str
    collides: bool = False
    code: str = ""


@dataclass(frozen=True, slots=True)
class RangeResult:
    """What one task committed.

    Attributes:
        next_offset: Committed offset: every row before it is applied, none from it on.
        next_position: Position of the row at ``next_offset`` when the task stopped at a gate or
            was held; None when the range was read to its end.
        rows: Row events consumed (before keeping the last change per key).
        written, deleted: Rows sent to the target.
        truncated: Whether the row event at ``next_offset`` is a TRUNCATE of the shard's table.
        read_bytes: Size of the record values that were read.
        part: The shard whose part of a shared topic it is about; None if the topic is not shared.
        key_collisions: At least this many inserts replaced existing rows of the target. One result
            of a shard has the number for all of the shard's partitions.
    """

    topic: str
    partition: int
    start_offset: int
    next_offset: int
    next_position: SourcePosition | None
    rows: int
    written: int
    deleted: int
    hold: RowHold | None = None
    truncated: bool = False
    read_bytes: int = 0
    part: ShardId | None = None
    key_collisions: int = 0

    @property
    def place(self) -> Partition:
        """The partition, or the shard's part of it, that the result is about."""
        return Partition(self.topic, self.partition, self.part)


@dataclass(frozen=True, slots=True)
class Advance:
    """A partition's move from ``start_offset`` to ``next_offset``, and what was done meanwhile."""

    topic: str
    partition: int
    start_offset: int
    next_offset: int
    target: TargetTable
    rows: int
    written: int
    deleted: int
    part: ShardId | None = None

    @property
    def place(self) -> Partition:
        """The partition, or the shard's part of it, that moves."""
        return Partition(self.topic, self.partition, self.part)


@dataclass(frozen=True, slots=True)
class TaskFailure:
    """Why tasks ended before their ranges did. What they committed before stays valid.

    Attributes:
        final: Trying again cannot help: the sink stops, with the message.
        target: The target whose rows they were to apply; None if it is not known.
        code: Of the error, see ``schemas.codes``.
    """

    message: str
    hint: str = ""
    final: bool = False
    target: TargetTable | None = None
    code: str = UNCODED


def by_reading(tasks: Iterable[RangeTask]) -> list[tuple[RangeTask, ...]]:
    """Groups of tasks that are read together: those with one partition and one ``reading``."""
    found: dict[tuple[str, int, int], list[RangeTask]] = {}
    for task in tasks:
        found.setdefault((task.topic, task.partition, task.reading), []).append(task)
    return [tuple(group) for group in found.values()]


def offsets_in(tasks: Sequence[RangeTask]) -> int:
    """How many offsets the tasks read."""
    return sum(
        max(t.end_offset for t in group) - min(t.start_offset for t in group)
        for group in by_reading(tasks)
    )


def offsets_moved(results: Iterable[RangeResult]) -> int:
    """How many offsets the results moved over; what several shards moved over counts once."""
    by_partition: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for result in results:
        moved = (result.start_offset, result.next_offset)
        moved = (min(moved), max(moved))
        by_partition.setdefault((result.topic, result.partition), []).append(moved)
    total = 0
    for ranges in by_partition.values():
        reached = 0
        for start, end in sorted(ranges):
            total += max(0, end - max(start, reached))
            reached = max(reached, end)
    return total
