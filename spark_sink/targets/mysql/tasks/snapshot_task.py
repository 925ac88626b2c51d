"""A whole shard, read as of one position: for loads of the kind ``SNAPSHOT``.

Theory of operation:

1. A consistent snapshot is taken at a known position S. The table is touched and shown, as for a
   chunk. If it is not the table of the load's base, the attempt ends here.
2. The attempt makes a table of its own beside the target.
3. All rows are read by one SELECT. They are written into that table while they come.
4. The transaction of the source ends. One transaction of the target marks the chunk as done, with
   S. It does so only if no other attempt has begun. Nothing is in the target's table yet.

While rows come, the attempt looks whether it is still wanted: if the load has moved, it ends early.
An attempt that ends before that leaves nothing behind but a table that nobody looks at. The next
attempt drops it, and reads everything again at another position.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.spark_sink.loading.chunk_queries import chunk_rows
from shardmerge.spark_sink.planning.chunk_orders import ChunkEnd, ChunkResult
from shardmerge.spark_sink.rows.folding.line_maker import LineMaker
from shardmerge.spark_sink.rows.folding.row_batches import Batch
from shardmerge.spark_sink.sources.chunk_task import ChunkTask, other_table

PART_BYTES = 32 << 20
"""About how many bytes of rows are held at once."""


class SnapshotSource(Protocol):
    """A connection to the server that is read. Methods raise ``StackError``."""

    def begin(self, shard: ShardId) -> SourcePosition:
        """Begin a transaction that shows a table as of a position, and return the position."""
        ...

    def table(self, shard: ShardId) -> TableSchema | None:
        """See ``ChunkSource.table``."""
        ...

    def rows(self, sql: str, most: int, size: int) -> Iterator[Sequence[Sequence[Any]]]:
        """The rows of a query in parts: of at most so many rows, and of about so many bytes."""
        ...

    def end(self) -> None:
        """End the transaction, whatever happened in it."""
        ...


class Stage(Protocol):
    """The table beside the target. Methods raise ``TargetError``."""

    maker: LineMaker | None

    def begin(self, task: ChunkTask) -> bool:
        """Make an empty table for this attempt; False if the chunk is not wanted any more."""
        ...

    def add(self, task: ChunkTask, batch: Batch) -> bool:
        """Write rows into the attempt's table; False if the chunk is not wanted any more."""
        ...

    def finish(self, task: ChunkTask, result: ChunkResult) -> bool:
        """Mark the chunk as done; False if the chunk, or this attempt, is not wanted any more."""
        ...


def read_snapshot(task: ChunkTask, source: SnapshotSource, stage: Stage) -> ChunkResult:
    """Read a shard as of one position, into a table beside the target.

    Raises:
        StackError: The source does not answer, or refuses something.
        UnfitValue: A value is not one of its column's type.
        TargetError: The target cannot be written now, or refuses a value.
    """
    shard, number = task.load.shard, task.number
    count = size = 0
    try:
        place = source.begin(shard)
        if differs := other_table(task, source.table(shard)):
            return ChunkResult(shard, number, ChunkEnd.OTHER_TABLE, detail=differs)
        if not stage.begin(task):
            return ChunkResult(shard, number, ChunkEnd.REFUSED)
        sql = chunk_rows(shard, task.key, task.range, task.columns, task.row_filter)
        for rows in source.rows(sql, task.most_rows, PART_BYTES):
            count += len(rows)
            size += sum(len(value) for row in rows for value in row if value is not None)
            batch = task.rows.batch(rows, stage.maker)
            if batch is not None and not stage.add(task, batch):
                return ChunkResult(shard, number, ChunkEnd.REFUSED)
    finally:
        source.end()
    result = ChunkResult(shard, number, ChunkEnd.DONE, count, size, place)
    if not stage.finish(task, result):
        return ChunkResult(shard, number, ChunkEnd.REFUSED)
    return result
