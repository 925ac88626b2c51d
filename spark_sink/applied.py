"""How far rows are applied, and the proof that none is left before a place. Pure values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shardmerge.schemas.names import ShardId
from shardmerge.schemas.position import BEGINNING, SourcePosition
from shardmerge.schemas.topics import row_topic

from .barrier import Partition
from .decisions import Gate


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


def unapplied_before(
    shard: ShardId, gate: Gate, applied: Mapping[Partition, Applied], watermarks: Watermarks
) -> str:
    """Whether rows of a shard before a gate may still have to be applied.

    Proven otherwise by one of two facts, for each partition of the row topic: the next row that
    is not applied stands at or beyond the gate; or everything is applied up to the high
    watermark, which was read after the gate's decision was seen, so that it covers every row
    that precedes that decision's schema change.

    Returns:
        "" when none is left, else what is waited for, as text for people.
    """
    place = gate.position
    if place == BEGINNING:
        return ""
    topic = row_topic(shard)
    current = watermarks.seen >= gate.seen
    count = watermarks.partitions.get(topic)
    if count is None:
        return "" if current else f"the high watermark of {topic}"
    for number in range(count):
        state = applied.get((topic, number), Applied(0))
        if state.next_position is not None and state.next_position >= place:
            continue
        if not current:
            return f"the high watermark of {topic}/{number}"
        if state.offset < watermarks.ends[topic, number]:
            return f"rows of {shard} before {place} ({topic}/{number}@{state.offset})"
    return ""
