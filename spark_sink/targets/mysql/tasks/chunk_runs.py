"""Runs one chunk of a first load, or a snapshot: in a Spark worker, or in the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from shardmerge.schemas.model.errors import (
    ContractError,
    ShardMergeError,
    TargetError,
    TargetLost,
)
from shardmerge.schemas.pipeline.settings import Source
from shardmerge.spark_sink.loading.load_estimate import LOADED_FIRST
from shardmerge.spark_sink.loading.load_state import LoadKind
from shardmerge.spark_sink.planning.chunk_orders import (
    ChunkEnd,
    ChunkFailure,
    ChunkOrder,
    ChunkResult,
)
from shardmerge.spark_sink.sources.chunk_task import chunk_task
from shardmerge.spark_sink.sources.idle_readers import idle_reader
from shardmerge.spark_sink.sources.table_reader import TableReader
from shardmerge.spark_sink.sources.table_snapshot import TableSnapshot
from shardmerge.spark_sink.targets.mysql.lines.encoders import limits_of
from shardmerge.spark_sink.targets.mysql.server_errors import TRANSACTION_TOO_LARGE

from .chunk_load import load_chunk
from .chunk_writer import ChunkWriter
from .connection import ApplyConfig, TaskConnection, idle_connection
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
                    with idle_reader(source) as reader:
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
        return load_chunk(chunk_task(order, limits_of), reader, ChunkWriter(connection))


def _run_snapshot(order: ChunkOrder, source: Source, connection: TaskConnection) -> ChunkResult:
    task = chunk_task(order, limits_of)
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


def copy_snapshot(
    order: ChunkOrder, config: ApplyConfig, is_stopped: Callable[[], bool] = lambda: False
) -> ChunkFailure | None:
    """Copy the rows of a snapshot into the target; None when all of them are there.

    Args:
        order: For the load's chunk, which is done.
        config: Of the target.
        is_stopped: See ``copy_rows``.
    """
    place = order.chunk.read_before
    assert place is not None
    try:
        with idle_connection(config) as connection:
            try:
                done = copy_rows(chunk_task(order, limits_of), place, connection, is_stopped)
            except TargetError as error:
                if error.number in TRANSACTION_TOO_LARGE:
                    connection.shrink_rounds(connection.round_records)
                raise
    except ShardMergeError as error:
        return _failure(order, error, final=isinstance(error, ContractError | TargetLost))
    if done:
        return None
    return ChunkFailure(order.load.shard, order.chunk.number, "the sink ends", code=LOADED_FIRST)
