"""Runs one chunk of a first load, or a snapshot: in a Spark worker, or in the driver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Lock

from shardmerge.schemas.model.errors import (
    ContractError,
    ShardMergeError,
    TargetError,
    TargetLost,
    UnsupportedDDL,
)
from shardmerge.schemas.model.origin import origin_part
from shardmerge.schemas.pipeline.row_conditions import column_names
from shardmerge.schemas.pipeline.settings import Source
from shardmerge.spark_sink.loading.chunk_queries import wanted_columns
from shardmerge.spark_sink.loading.key_order import KeyColumn
from shardmerge.spark_sink.loading.load_state import LoadKind
from shardmerge.spark_sink.loading.row_filters import row_filter
from shardmerge.spark_sink.planning.chunk_orders import (
    ChunkEnd,
    ChunkFailure,
    ChunkOrder,
    ChunkResult,
)
from shardmerge.spark_sink.rows.folding.loaded_rows import LoadedColumn, LoadedRows
from shardmerge.spark_sink.rows.folding.segment_plan import plan_segment
from shardmerge.spark_sink.rows.values.server_values import server_reader
from shardmerge.spark_sink.sources.replica_reader import chunk_reader
from shardmerge.spark_sink.sources.table_reader import TableReader
from shardmerge.spark_sink.sources.table_snapshot import TableSnapshot
from shardmerge.spark_sink.targets.mysql.server_errors import TRANSACTION_TOO_LARGE

from .chunk_task import ChunkTask, load_chunk
from .chunk_writer import ChunkWriter
from .connection import ApplyConfig, TaskConnection, idle_connection
from .encoders import limits_of
from .rounds import collector_resting
from .snapshot_task import read_snapshot
from .staging import StageWriter, copy_rows

_OTHER_KEY = (
    "the target's table has another unique key, so rows cannot be read at different moments"
)


def run_chunks(
    orders: Iterable[ChunkOrder], source: Source, config: ApplyConfig
) -> Iterator[ChunkResult | ChunkFailure]:
    """Read chunks and write them; an error becomes a value. The function for ``mapPartitions``."""
    for order in orders:
        shard, number = order.load.shard, order.chunk.number
        try:
            with idle_connection(config) as connection:
                if order.load.kind is LoadKind.SNAPSHOT:
                    yield _run_snapshot(order, source, connection)
                else:
                    with _idle_reader(source) as reader:
                        yield _run(order, reader, connection)
        except TargetError as error:
            if error.number in TRANSACTION_TOO_LARGE and order.load.kind is LoadKind.CHUNKS:
                yield ChunkResult(shard, number, ChunkEnd.TOO_LARGE)
            else:
                yield _failure(order, error, final=isinstance(error, TargetLost))
        except ShardMergeError as error:
            yield _failure(order, error, final=isinstance(error, ContractError))


def _failure(order: ChunkOrder, error: ShardMergeError, *, final: bool) -> ChunkFailure:
    shard, number = order.load.shard, order.chunk.number
    return ChunkFailure(shard, number, error.message, error.hint, final, error.code)


def _run(order: ChunkOrder, reader: TableReader, connection: TaskConnection) -> ChunkResult:
    if connection.shape(order.load.target).other_unique:
        raise TargetError(
            _OTHER_KEY,
            hint="drop the key, or let Debezium read the shard, see SM-1616",
            code="SM-1616",
        )
    with collector_resting():
        return load_chunk(chunk_task(order), reader, ChunkWriter(connection))


def _run_snapshot(order: ChunkOrder, source: Source, connection: TaskConnection) -> ChunkResult:
    task = chunk_task(order)
    # A server may take only small transactions.
    task = replace(task, most_rows=min(task.most_rows, connection.round_records))
    snapshot = TableSnapshot(source, order.signals)
    try:
        with collector_resting():
            return read_snapshot(task, snapshot, StageWriter(connection))
    except TargetError as error:
        if error.number in TRANSACTION_TOO_LARGE:
            connection.shrink_rounds(task.most_rows)
        raise


def copy_snapshot(order: ChunkOrder, config: ApplyConfig) -> ChunkFailure | None:
    """Copy the rows of a snapshot into the target; None when all of them are there.

    Args:
        order: For the load's chunk, which is done.
        config: Of the target.
    """
    place = order.chunk.read_before
    assert place is not None
    try:
        with idle_connection(config) as connection:
            try:
                copy_rows(chunk_task(order), place, connection)
            except TargetError as error:
                if error.number in TRANSACTION_TOO_LARGE:
                    connection.shrink_rounds(connection.round_records)
                raise
    except ShardMergeError as error:
        return _failure(order, error, final=isinstance(error, ContractError | TargetLost))
    return None


def chunk_task(order: ChunkOrder) -> ChunkTask:
    """What a chunk's reader and writer have to know.

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
    columns = wanted_columns(own, targets.keys(), needed)
    staged: dict[str, str] = {}
    if order.load.kind is LoadKind.SNAPSHOT:
        staged = {c.name: f"c{place}" for place, c in enumerate(own) if c.name in targets}
    written = staged or targets
    loaded = tuple(
        LoadedColumn(c.name, c.type, written.get(c.name, ""), server_reader(c, limits_of(c.type)))
        for c in columns
    )
    return ChunkTask(
        load=order.load,
        number=order.chunk.number,
        base=order.chunk.base,
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


_idle: dict[Source, list[TableReader]] = {}
"""The idle connections of this process. They outlive a chunk: Spark keeps its Python workers."""
_keeping = Lock()


@contextmanager
def _idle_reader(source: Source) -> Iterator[TableReader]:
    """A connection to a source that no one else in this process uses meanwhile."""
    with _keeping:
        idle = _idle.setdefault(source, [])
        reader = idle.pop() if idle else chunk_reader(source)
    try:
        yield reader
    except Exception:
        reader.close()
        raise
    finally:
        with _keeping:
            idle.append(reader)


def close_readers() -> None:
    """Close the connections that this process kept open; none of them may be in use."""
    with _keeping:
        for readers in _idle.values():
            for reader in readers:
                reader.close()
        _idle.clear()
