"""How far rows are applied, and the proof that none is left before a place. Pure values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shardmerge.schemas.names import ShardId
from shardmerge.schemas.position import BEGINNING, SourcePosition
from shardmerge.schemas.topics import row_topic

from .barrier import Partition


@dataclass(frozen=True, slots=True)
class Applied:
    """Where a row partition stands.

    Attributes:
        offset: Every row before it is applied, none from it on.
        next_position: Position of the row at ``offset``, when a task looked at it and stopped
            there; None when that is not known. Rows of a partition come in position order.
    """

    offset: int
    next_position: SourcePosition | None = None


@dataclass(frozen=True, slots=True)
class Watermarks:
    """High watermarks of all row partitions, and when they were read.

    Attributes:
        seen: ``Decisions.seen`` *before* the topics were listed and their watermarks asked for.
        partitions: Row topic → number of its partitions; a topic that is not listed had no row.
        ends: Partition → high watermark (read uncommitted, exclusive), of all of them.
    """

    seen: int = -1
    partitions: Mapping[str, int] = field(default_factory=dict)
    ends: Mapping[Partition, int] = field(default_factory=dict)

    def partitions_of(self, shard: ShardId) -> list[Partition]:
        """The partitions of a shard's row topic, as far as known."""
        topic = row_topic(shard)
        return [(topic, n) for n in range(self.partitions.get(topic, 0))]


@dataclass(frozen=True, slots=True)
class RowProgress:
    """Everything known of how far rows are applied.

    Attributes:
        applied: Row partition → where it stands; one that is not listed stands at offset 0.
        watermarks: The latest reading.
    """

    applied: Mapping[Partition, Applied] = field(default_factory=dict)
    watermarks: Watermarks = field(default_factory=Watermarks)

    def at(self, partition: Partition) -> Applied:
        """Where a partition stands."""
        return self.applied.get(partition, _UNTOUCHED)

    def partitions_of(self, shard: ShardId) -> list[Partition]:
        """The partitions of a shard's row topic, as far as known."""
        return self.watermarks.partitions_of(shard)

    def is_parked(self, shard: ShardId) -> bool:
        """Whether the shard has rows that are not applied, by the latest reading."""
        return self.parked(shard) > 0

    def parked(self, shard: ShardId) -> int:
        """How many offsets its row topic has beyond what is applied, by the latest reading."""
        ends = self.watermarks.ends
        return sum(max(ends[p] - self.at(p).offset, 0) for p in self.partitions_of(shard))


_UNTOUCHED = Applied(0)


def unapplied_before(shard: ShardId, place: SourcePosition, seen: int, rows: RowProgress) -> str:
    """Whether rows of a shard before a place may still have to be applied.

    Proven otherwise by one of two facts, for each partition of the row topic: the next row that
    is not applied stands at or beyond the place; or everything is applied up to the high
    watermark, which was read after the record that stands at the place was seen, so that it covers
    every row that precedes it.

    Args:
        shard: Any.
        place: A gate's, say.
        seen: ``Decisions.seen`` when that record was seen: a reading made then or later counts.
        rows: How far rows are applied.

    Returns:
        "" when none is left, else what is waited for, as text for people.
    """
    if place == BEGINNING:
        return ""
    watermarks, topic = rows.watermarks, row_topic(shard)
    current = watermarks.seen >= seen
    count = watermarks.partitions.get(topic)
    if count is None:
        return "" if current else f"the high watermark of {topic}"
    for number in range(count):
        state = rows.at((topic, number))
        if state.next_position is not None and state.next_position >= place:
            continue
        if not current:
            return f"the high watermark of {topic}/{number}"
        if state.offset < watermarks.ends[topic, number]:
            return f"rows of {shard} before {place} ({topic}/{number}@{state.offset})"
    return ""
