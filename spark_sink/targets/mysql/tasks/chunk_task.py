"""One chunk of a first load: read in a transaction of the source, written in one of the target.

For loads of the kind ``CHUNKS``. Theory of operation:

1. A consistent snapshot is taken. The table is touched, which keeps its metadata locked until the
   transaction ends, and then shown. If it is not the table of the load's base, the chunk ends here.
2. The rows are read, and the transaction ends. The source is held up by nothing that follows.
3. The source says where its binlog ends now. The chunk's rows show no change from there on.
4. One transaction of the target checks the writer epoch, marks the chunk as done, and writes the
   rows. If the chunk is not wanted any more, nothing is written.

When the acknowledgement of a COMMIT is lost, the chunk may be done; the next attempt then finds
that it is not wanted. So the driver reads the state before it gives a refused chunk out again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from shardmerge.schemas.lattice.left_out_columns import without_columns
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import Column, TableSchema
from shardmerge.spark_sink.loading.chunk_queries import chunk_rows
from shardmerge.spark_sink.loading.chunk_ranges import KeyRange
from shardmerge.spark_sink.loading.key_order import KeyColumn
from shardmerge.spark_sink.loading.load_state import Load
from shardmerge.spark_sink.loading.table_shape import difference
from shardmerge.spark_sink.planning.chunk_orders import ChunkEnd, ChunkResult
from shardmerge.spark_sink.rows.folding.loaded_rows import LoadedRows
from shardmerge.spark_sink.rows.folding.row_batches import Batch
from shardmerge.spark_sink.rows.folding.row_blocks import LinesOf
from shardmerge.spark_sink.rows.values.constant_values import ConstantValue


@dataclass(frozen=True, slots=True)
class ChunkTask:
    """What a worker has to know of a chunk; plain and picklable.

    Attributes:
        load: The load that the chunk belongs to, without its list of chunks.
        number: The chunk's number.
        base: The base at which the chunk was given out.
        range: Its keys.
        expected: The shard's columns behind the base.
        expected_key: Names of the columns of its primary key there.
        key: How the key's columns are compared.
        columns: What is read of each row.
        row_filter: See ``row_filters``.
        rows: How the rows are written.
        leave_out: The route's expression for the names of columns that are not read; "" for none.
        most_rows: How many rows the chunk may have. One more is read, to see whether it has more.
        writer_epoch: Fencing token, as of ``RangeTask``.
        staged: Of a snapshot: the columns of the table beside the target, each with the target's
            column that it is copied into.
        target_key: Of a snapshot: the target's columns of the primary key, origin columns included.
        constants: Of a snapshot: see ``LoadedRows``, whose own have no values yet.
        position: Of a snapshot: the target's column for a row's place in its source; "" for none.
    """

    load: Load
    number: int
    base: int
    range: KeyRange
    expected: tuple[ShardColumn, ...]
    expected_key: tuple[str, ...]
    key: tuple[KeyColumn, ...]
    columns: tuple[Column, ...]
    row_filter: str
    rows: LoadedRows
    leave_out: str
    most_rows: int
    writer_epoch: int
    staged: tuple[tuple[str, str], ...] = ()
    target_key: tuple[str, ...] = ()
    constants: tuple[tuple[str, ConstantValue], ...] = ()
    position: str = ""


class ChunkSource(Protocol):
    """A connection to the server that is read. Methods raise ``StackError``."""

    def begin(self) -> None:
        """Begin a transaction with a consistent snapshot (``chunk_queries.begin_snapshot``)."""
        ...

    def table(self, shard: ShardId) -> TableSchema | None:
        """Lock a table's metadata until the transaction ends, and read its definition.

        None if there is no such table.
        """
        ...

    def rows(self, sql: str, most: int) -> Sequence[Sequence[Any]]:
        """The first ``most`` rows of a query, as the server sends them."""
        ...

    def end(self) -> None:
        """End the transaction, whatever happened in it."""
        ...

    def binlog_end(self) -> SourcePosition:
        """Where the binlog of the source itself ends now, also when a replica is read."""
        ...


class ChunkTarget(Protocol):
    """The target's transaction of a chunk."""

    lines_of: LinesOf | None

    def write(self, task: ChunkTask, result: ChunkResult, batch: Batch | None) -> bool:
        """Check the epoch, mark the chunk as done, and write its rows, in one transaction.

        Returns:
            False, with nothing written, when the chunk is not wanted any more.

        Raises:
            WriterReplaced: Another writer took over.
            TargetError: The target refuses a row, or cannot be written now (``retryable``).
        """
        ...


def other_table(task: ChunkTask, table: TableSchema | None) -> str:
    """What a table has that the load's base does not expect; "" when it is as expected."""
    if table is None:
        return "there is no such table"
    table = without_columns(table, task.leave_out) if task.leave_out else table
    return difference(task.expected, task.expected_key, table)


def load_chunk(task: ChunkTask, source: ChunkSource, target: ChunkTarget) -> ChunkResult:
    """Read a chunk and write it.

    Raises:
        StackError: The source does not answer, or refuses the chunk's transaction.
        UnfitValue: A value is not one of its column's type.
        TargetError: See ``ChunkTarget.write``.
    """
    shard, number = task.load.shard, task.number
    source.begin()
    try:
        if differs := other_table(task, source.table(shard)):
            return ChunkResult(shard, number, ChunkEnd.OTHER_TABLE, detail=differs)
        sql = chunk_rows(shard, task.key, task.range, task.columns, task.row_filter)
        rows = source.rows(sql, task.most_rows + 1)
    finally:
        source.end()
    if len(rows) > task.most_rows:
        return ChunkResult(shard, number, ChunkEnd.TOO_LARGE)
    before = source.binlog_end()
    size = sum(len(value) for row in rows for value in row if value is not None)
    result = ChunkResult(shard, number, ChunkEnd.DONE, len(rows), size, before)
    if not target.write(task, result, task.rows.batch(rows, target.lines_of)):
        return ChunkResult(shard, number, ChunkEnd.REFUSED)
    return result
