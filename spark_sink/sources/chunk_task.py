"""A chunk of a first load: what its reader and its writer have to know, and how it is read.

Theory of operation:

1. A consistent snapshot is taken. The table is touched, which keeps its metadata locked until the
   transaction ends, and then shown. If it is not the table of the load's base, the chunk ends here.
2. The rows are read. The source says where its binlog ends now: the chunk's rows show no change
   from there on. A source that is read itself has no change of the table's schema before that end
   which the chunk does not show, since the change waits for the table's metadata.
3. The transaction ends. The source is held up by nothing that follows.
4. Each kind of target writes the rows in its own way, with the mark that the chunk is done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

from shardmerge.schemas.lattice.left_out_columns import without_columns
from shardmerge.schemas.model.errors import UnsupportedDDL
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.origin import origin_part
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import Column, TableSchema
from shardmerge.schemas.pipeline.row_conditions import column_names
from shardmerge.spark_sink.loading.chunk_queries import (
    chunk_rows,
    read_column_as_text,
    wanted_columns,
)
from shardmerge.spark_sink.loading.chunk_ranges import KeyRange
from shardmerge.spark_sink.loading.key_order import KeyColumn
from shardmerge.spark_sink.loading.load_state import Attempt, Load, LoadKind
from shardmerge.spark_sink.loading.row_filters import row_filter
from shardmerge.spark_sink.loading.table_shape import difference
from shardmerge.spark_sink.planning.chunk_orders import ChunkEnd, ChunkOrder, ChunkResult
from shardmerge.spark_sink.rows.folding.loaded_rows import LoadedColumn, LoadedRows
from shardmerge.spark_sink.rows.folding.segment_plan import LimitsOf, plan_segment
from shardmerge.spark_sink.rows.values.constant_values import ConstantValue
from shardmerge.spark_sink.rows.values.server_values import server_reader

from .packed_rows import PackedRows

T = TypeVar("T")
Pack: TypeAlias = Callable[[PackedRows], T | None]
"""Makes of a chunk's rows what a target writes; None if that needs the rows' single values."""


@dataclass(frozen=True, slots=True)
class ChunkTask:
    """What a worker has to know of a chunk; plain and picklable.

    Attributes:
        load: The load that the chunk belongs to, without its list of chunks.
        number: The chunk's number.
        attempt: For which the chunk was given out.
        range: Its keys.
        expected: The shard's columns behind the base.
        expected_key: Names of the columns of its primary key there.
        key: How the key's columns are compared.
        columns: What is read of each row; JSON last.
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
    attempt: Attempt
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

    def packed_rows(self, sql: str, most: int, columns: int) -> PackedRows:
        """The first ``most`` rows of a query with so many columns."""
        ...

    def end(self) -> None:
        """End the transaction, whatever happened in it."""
        ...

    def binlog_end(self) -> SourcePosition:
        """Where the binlog of the source itself ends now, also when a replica is read."""
        ...


def chunk_task(order: ChunkOrder, limits_of: LimitsOf | None = None) -> ChunkTask:
    """What a chunk's reader and writer have to know.

    Args:
        order: The chunk, as the driver gives it out.
        limits_of: What the kind of target cannot hold; see ``plan_segment``.

    Raises:
        UnsupportedDDL: No row of the shard can be written, with the reason.
        UnfitValue: The type of a column is not known here.
    """
    (segment,) = order.stream.segments
    plan = plan_segment(order.stream, segment, order.bindings, 0, limits_of=limits_of)
    if plan.refusal is not None:
        raise UnsupportedDDL(plan.refusal.reason, hint=plan.refusal.hint, code=plan.refusal.code)
    own = [c.column for c in segment.columns if origin_part(c.id) is None]
    by_name = {column.name.lower(): column for column in own}
    key_names = [by_name[name.lower()] for name in segment.key if name.lower() in by_name]
    where = order.stream.where
    # ``place`` is an index into ``own``; a name stands for one column of the table.
    targets = {own[written.place].name: written.target for written in plan.columns}
    needed = {column.name.lower() for column in key_names}
    if where:
        needed |= {name.lower() for name in column_names(where)}
    wanted = wanted_columns(own, targets.keys(), needed)
    columns = tuple(sorted(wanted, key=lambda column: column.type.name == "json"))
    staged: dict[str, str] = {}
    if order.load.kind is LoadKind.SNAPSHOT:
        staged = {c.name: f"c{place}" for place, c in enumerate(own) if c.name in targets}
    written = staged or targets
    loaded = tuple(
        LoadedColumn(
            c.name,
            c.type,
            written.get(c.name, ""),
            server_reader(c, limits_of(c.type) if limits_of is not None else None),
        )
        for c in columns
    )
    return ChunkTask(
        load=order.load,
        number=order.chunk.number,
        attempt=order.chunk.given,
        range=order.chunk.range,
        expected=segment.columns,
        expected_key=segment.key,
        key=tuple(KeyColumn(column.name, column.type) for column in key_names),
        columns=columns,
        row_filter=row_filter(where, {name: c.type for name, c in by_name.items()}),
        rows=LoadedRows(loaded, where=where, key=())
        if staged
        else LoadedRows(loaded, plan.key_names, where, plan.origin),
        leave_out=order.leave_out,
        most_rows=order.most_rows,
        writer_epoch=order.writer_epoch,
        staged=tuple((staged[name], target) for name, target in targets.items() if name in staged),
        target_key=plan.key_names,
        constants=plan.origin,
        position=plan.position,
    )


def other_table(task: ChunkTask, table: TableSchema | None) -> str:
    """What a table has that the load's base does not expect; "" when it is as expected."""
    if table is None:
        return "there is no such table"
    table = without_columns(table, task.leave_out) if task.leave_out else table
    return difference(task.expected, task.expected_key, table)


def read_chunk(
    task: ChunkTask, source: ChunkSource, pack: Pack[T] | None = None
) -> tuple[ChunkResult, Sequence[Sequence[Any]] | T]:
    """Read a chunk.

    Args:
        task: The chunk.
        source: Its shard's server.
        pack: Is tried on the rows first; its columns are those of ``read_column_as_text``.

    Returns:
        The result that the chunk has when its rows are written, and what ``pack`` has made of the
        rows, or the rows as the server sent them. There are none if the chunk cannot be written.

    Raises:
        StackError: The source does not answer, or refuses the chunk's transaction.
        UnfitValue: A text is not UTF-8.
    """
    shard, number = task.load.shard, task.number
    content: Sequence[Sequence[Any]] | T | None = None
    source.begin()
    try:
        if differs := other_table(task, source.table(shard)):
            return ChunkResult(shard, number, ChunkEnd.OTHER_TABLE, detail=differs), ()
        most = task.most_rows + 1
        if pack is not None:
            sql = chunk_rows(
                shard,
                task.key,
                task.range,
                task.columns,
                task.row_filter,
                read=read_column_as_text,
            )
            packed = source.packed_rows(sql, most, len(task.columns))
            count, size = packed.rows, packed.size
            content = pack(packed) if count < most else ()
        if content is None:
            sql = chunk_rows(shard, task.key, task.range, task.columns, task.row_filter)
            content = rows = source.rows(sql, most)
            count = len(rows)
            size = sum(len(value) for row in rows for value in row if value is not None)
        if count == most:
            return ChunkResult(shard, number, ChunkEnd.TOO_LARGE), ()
        before = source.binlog_end()
    finally:
        source.end()
    return ChunkResult(shard, number, ChunkEnd.DONE, count, size, before), content
