"""TRUNCATE TABLE of a shard: its rows in the target are deleted, wherever they came from.

Debezium tells a TRUNCATE by a row event alone, in one partition of the shard's row topic. Theory of
operation:

1. The task that meets the event stops before it. The shard's other partitions go on up to its
   position, and stop there.
2. When every row before it is applied the shard's rows are deleted: those that the origin columns
   tell from others' rows, or all rows of a target that has had no other shard.
3. A partition may have been applied beyond the position before the event was met, and those rows
   are deleted with the others. So the partition is set back to its first row from there on, in the
   transaction that moves the event's own partition past it. No contracting statement can be in
   between: it would have waited for the event's partition.

A crash before that transaction finds the event again, and deletes again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shardmerge.schemas.events import Binding
from shardmerge.schemas.names import ShardId, TargetTable
from shardmerge.schemas.origin import Origin, OriginColumn, origin_part
from shardmerge.schemas.position import SourcePosition

from .barrier import Partition
from .decisions import TargetDecisions
from .range_reader import OffsetRange, RowReader
from .row_envelope import UndecodableRow, decode_row, position_of

_BLOCK = 1_000


@dataclass(frozen=True, slots=True)
class Truncation:
    """A TRUNCATE that was met.

    Attributes:
        partition, offset: Of its event.
        position: Rows from there on came after it.
        seen: ``Decisions.seen`` when it was met.
    """

    target: TargetTable
    shard: ShardId
    partition: Partition
    offset: int
    position: SourcePosition
    seen: int


UNKNOWN_ROWS = (
    "the table was truncated on the source; the target does not know which rows are this shard's"
)
UNKNOWN_ROWS_HINT = (
    "delete them in the target if they shall go, then start the sink with on_truncate = 'keep' in "
    "the shard's route; origin columns would tell them"
)


def deletion(
    target: TargetDecisions, shard: ShardId, bindings: Mapping[str, Binding]
) -> str | None:
    """The statement that deletes the rows of a shard; None when nobody knows which they are.

    Args:
        target: Everything decided for it.
        shard: One of its shards.
        bindings: Identity → target column, as the executed statements made it.
    """
    origin = Origin(
        tuple(
            OriginColumn(part, binding.name)
            for column_id, binding in sorted(bindings.items())
            if (part := origin_part(column_id)) is not None
        )
    )
    if origin.tells_shards_apart:
        return f"DELETE FROM {target.target.sql} WHERE {origin.condition(shard)}"
    if target.shards.keys() == {shard}:
        return f"DELETE FROM {target.target.sql}"
    return None


def first_from(reader: RowReader, partition: Partition, end: int, position: SourcePosition) -> int:
    """Offset of a partition's first row that stands at or beyond a position; ``end`` if none.

    Args:
        reader: Of row topics.
        partition: Its rows are in position order.
        end: Where to stop looking (exclusive).
        position: What is looked for.

    Raises:
        StackError: Kafka cannot be read.
        ContractError: A range's start does not exist any more.
    """
    lowest = reader.beginning(partition)
    found, block_end, size = end, end, _BLOCK
    while block_end > lowest:
        start = max(block_end - size, lowest)
        cursor = reader.open([OffsetRange(*partition, start, block_end)])
        before = False
        first: int | None = None
        while cursor.is_open:
            for records in cursor.read():
                for offset, value in zip(records.offsets, records.values, strict=True):
                    place = _position(value)
                    if place is None or first is not None:
                        continue
                    if place >= position:
                        first = offset
                    else:
                        before = True
        found = found if first is None else first
        if before:
            return found
        block_end, size = start, size * 2
    return found


def _position(value: bytes | None) -> SourcePosition | None:
    """Where a row stands; None where that does not tell what it comes before.

    Rows of an incremental snapshot stand between rows of the binlog.
    """
    if value is None:
        return None
    try:
        source = decode_row(value).source
        return None if source.get("snapshot") == "incremental" else position_of(source)
    except (UndecodableRow, KeyError, TypeError):
        return None
