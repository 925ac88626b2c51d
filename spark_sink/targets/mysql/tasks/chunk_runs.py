"""Runs one chunk of a first load: in a Spark worker, or in the driver when it is small."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
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
from shardmerge.spark_sink.loading.row_filters import row_filter
from shardmerge.spark_sink.planning.chunk_orders import (
    ChunkEnd,
    ChunkFailure,
    ChunkOrder,
    ChunkResult,
)
from shardmerge.spark_sink.process.failpoints import reach
from shardmerge.spark_sink.rows.folding.loaded_rows import LoadedColumn, LoadedRows
from shardmerge.spark_sink.rows.folding.row_batches import Batch
from shardmerge.spark_sink.rows.folding.segment_plan import plan_segment
from shardmerge.spark_sink.rows.values.server_values import server_reader
from shardmerge.spark_sink.sources.table_reader import TableReader
from shardmerge.spark_sink.targets.mysql.load_store import LoadStore
from shardmerge.spark_sink.targets.mysql.server_errors import (
    CONFLICTS,
    LOST,
    TRANSACTION_TOO_LARGE,
)

from .bulk import lines_for
from .chunk_task import ChunkTask, load_chunk
from .connection import ApplyConfig, TaskConnection, idle_connection
from .encoders import limits_of
from .rounds import collector_resting

_ATTEMPTS = 5
OTHER_KEY = "the target's table has another unique key, so rows cannot be read at different moments"


def run_chunks(
    orders: Iterable[ChunkOrder], source: Source, config: ApplyConfig
) -> Iterator[ChunkResult | ChunkFailure]:
    """Read chunks and write them; an error becomes a value. The function for ``mapPartitions``."""
    for order in orders:
        shard, number = order.load.shard, order.chunk.number
        try:
            with idle_connection(config) as connection, _idle_reader(source) as reader:
                yield _run(order, reader, connection)
        except TargetError as error:
            if error.number in TRANSACTION_TOO_LARGE:
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
            OTHER_KEY,
            hint="let Debezium read the shard, see SM-1616",
            code="SM-1616",
        )
    with collector_resting():
        return load_chunk(chunk_task(order), reader, ChunkWriter(connection))


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
    loaded = tuple(
        LoadedColumn(c.name, c.type, targets.get(c.name, ""), server_reader(c, limits_of(c.type)))
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
        rows=LoadedRows(loaded, plan.key_names, where, plan.origin),
        leave_out=order.leave_out,
        most_rows=order.most_rows,
        writer_epoch=order.writer_epoch,
    )


class ChunkWriter:
    """See ``ChunkTarget``; on a connection that its process keeps."""

    def __init__(self, connection: TaskConnection) -> None:
        self._connection = connection
        session = connection.session
        self.lines_of = lines_for(session) if session.can_load else None
        config = connection.config
        self._store = LoadStore(session, config.control_database, config.pipeline)

    def write(self, task: ChunkTask, result: ChunkResult, batch: Batch | None) -> bool:
        """See ``ChunkTarget``. Repeated after a conflict, or when the connection was lost."""
        assert result.read_before is not None
        connection, uncertain = self._connection, False
        reach("chunk-read")
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                with connection.session.transaction():
                    connection.control.fence(task.writer_epoch, task.load.target)
                    if uncertain and self._store.is_done(task.load, task.number, task.base):
                        return True
                    if not self._store.finish(
                        task.load,
                        task.number,
                        task.base,
                        rows=result.rows,
                        size=result.size,
                        read_before=result.read_before,
                    ):
                        return False
                    connection.write(task.load.target, [] if batch is None else [batch])
                    reach("chunk-written")
            except TargetError as error:
                if attempt == _ATTEMPTS or error.number not in LOST | CONFLICTS:
                    raise
                # The COMMIT may have been lost, or only its acknowledgement.
                uncertain |= error.number in LOST
                time.sleep(0.05 * attempt)
            else:
                reach("chunk-committed")
                return True
        raise AssertionError  # the last attempt returns or raises


_idle: dict[Source, list[TableReader]] = {}
"""The idle connections of this process. They outlive a chunk: Spark keeps its Python workers."""
_keeping = Lock()


@contextmanager
def _idle_reader(source: Source) -> Iterator[TableReader]:
    """A connection to a source that no one else in this process uses meanwhile."""
    with _keeping:
        idle = _idle.setdefault(source, [])
        reader = idle.pop() if idle else TableReader(source)
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
