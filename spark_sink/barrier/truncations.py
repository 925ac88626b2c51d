"""TRUNCATE TABLE of a shard: its rows in the target are deleted, from whichever partition.

Debezium reports a TRUNCATE only by a row event, in one partition of the shard's row topic. Theory
of operation:

1. The task that meets the event stops before it. The shard's other partitions go on up to the
   event's position, and stop there.
2. When every row before the event is applied, the shard's rows are deleted. The origin columns tell
   them from other shards' rows; without such columns, all rows of the target are deleted, provided
   that it has never had another shard.
3. A partition may have been applied beyond the position before the event was met. Those rows are
   deleted with the others, so they must be applied again. Therefore, before anything is deleted,
   the partition is set back to its first row from the position on. No contracting statement can be
   in between: it would have waited for the event's partition.
4. At last the event's own partition moves past the event.

After a crash before step 4 the sink meets the event again, and deletes again. If the route's
``on_truncate`` keeps rows by then, the sink passes the event. Either way, rows behind the event
that were deleted come again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from shardmerge.schemas.model.coded_text import CodedText
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.origin import Origin, OriginColumn, OriginPart, origin_part
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.records.decisions import Binding, TargetStatement
from shardmerge.schemas.target.row_statements import clearing, deletion

from .applied import RowProgress, unapplied_before
from .decisions import TargetDecisions
from .partitions import Partition


@dataclass(frozen=True, slots=True)
class Truncation:
    """A TRUNCATE that was met.

    Attributes:
        partition, offset: Of its event.
        position: Of its event; rows from this position on came after it.
        seen: ``Decisions.seen`` when it was met.
        reading: Number of the first reading of watermarks after it was met.
    """

    target: TargetTable
    shard: ShardId
    partition: Partition
    offset: int
    position: SourcePosition
    seen: int
    reading: int = 0

    def waits_for(self, rows: RowProgress) -> str:
        """The rows before the event that are not applied, as text for people; "" for none.

        Args:
            rows: How far rows are applied.
        """
        return unapplied_before(self.shard, self.position, self.seen, rows, reading=self.reading)


UNKNOWN_ROWS = (
    "the table was truncated on the source; the target does not know which rows are this shard's"
)
UNKNOWN_ROWS_HINT = (
    "delete them in the target if they shall go, then start the sink with on_truncate = 'keep' in "
    "the shard's route; with origin columns the sink would know these rows"
)


_WHY = CodedText("their rows were truncated, or all of them come again", "SM-1924")


def emptying(
    target: TargetDecisions, shards: Collection[ShardId], bindings: Mapping[str, Binding]
) -> TargetStatement | None:
    """The statement that deletes the rows of shards; None when those rows cannot be told apart.

    Args:
        target: Everything decided for it.
        shards: Some of its shards.
        bindings: Identity → target column, as the executed statements made it.
    """
    origin = Origin(
        tuple(
            OriginColumn(part, binding.name)
            for column_id, binding in sorted(bindings.items())
            if (part := origin_part(column_id)) not in (None, OriginPart.GROUP)
        )
    )
    if origin.tells_shards_apart:
        return deletion(target.target, sorted(shards), origin, _WHY)
    if target.shards.keys() == set(shards):
        return clearing(target.target, _WHY)
    return None
