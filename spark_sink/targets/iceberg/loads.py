"""First loads into Iceberg tables: one MERGE and one commit per chunk.

Theory of operation, per chunk:

1. The chunk's table must be of this writer or an earlier one, and the chunk must still be wanted.
2. A worker reads the chunk and hands on lines (``chunk_lines``). If an executor is lost together
   with the lines, the chunk fails: reading it again would show another moment than its head says.
   Spark is told so by a local checkpoint.
3. MERGE stages a snapshot on top of the current one, as for a batch (``batches``).
4. One commit makes it the current snapshot and marks the chunk as done. The commit is refused if
   anybody has committed since the table was read. Then everything is checked again: the epoch, the
   load, the columns, and that the staged snapshot's parent is still the current one.

A crash before step 4 leaves the table as it was before the chunk.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import uuid4

from py4j.protocol import Py4JJavaError

from shardmerge.schemas.model.errors import (
    ContractError,
    ShardMergeError,
    TargetError,
    TargetLost,
)
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.pipeline.settings import Source
from shardmerge.schemas.records.decisions import TargetStatement
from shardmerge.spark_sink.loading.load_state import Load, LoadKind
from shardmerge.spark_sink.planning.chunk_orders import (
    ChunkEnd,
    ChunkFailure,
    ChunkOrder,
    ChunkResult,
)
from shardmerge.spark_sink.process.failpoints import reach
from shardmerge.spark_sink.process.job_failures import job_failure
from shardmerge.spark_sink.process.python_workers import in_worker
from shardmerge.spark_sink.process.spark_session import SparkStart
from shardmerge.spark_sink.sources.idle_readers import close_readers
from shardmerge.spark_sink.targets.iceberg.texts.decided import written_columns
from shardmerge.spark_sink.targets.iceberg.texts.lines import Columns
from shardmerge.spark_sink.targets.iceberg.texts.merge import (
    changes_sql,
    key_bounds,
    key_bounds_sql,
    merge_sql,
)
from shardmerge.spark_sink.targets.iceberg.texts.stored_loads import accepts, finished, is_done

from .chunk_lines import ReadChunk, chunk_lines
from .heads import MARK_OF_HEADS, line_rows, read_head
from .load_store import IcebergLoadStore
from .staging import Wanted, new_id, publish, stage
from .store import IcebergStore
from .tables import Moved, Uncertain, translated
from .turns import TableTurns

_CHUNK_ROWS = 100_000
"""A chunk of so many rows is read in a few seconds; each one costs a MERGE and a commit."""
_NO_SNAPSHOTS = (
    "its rows would have to be read as of one moment, which is not done for an Iceberg target: the "
    "shard has, or had, no primary key"
)


@dataclass(frozen=True, slots=True)
class _Own:
    """What belongs to one thread: a store, and a session whose settings staging may change."""

    store: IcebergStore
    loads: IcebergLoadStore
    session: Any


class IcebergLoads:
    """See ``load_interface.Loads``.

    Args:
        spark: Iceberg's catalog is configured in it.
        store: Of the driver's thread.
        new_store: Makes the store of another thread.
        turns: Shared with the batches.
    """

    def __init__(
        self,
        spark: SparkStart,
        store: IcebergStore,
        new_store: Callable[[], IcebergStore],
        turns: TableTurns,
    ) -> None:
        self._spark, self._new_store, self._turns = spark, new_store, turns
        self._loads = IcebergLoadStore(store)
        self._threads = threading.local()

    @property
    def chunk_rows(self) -> int:
        """See ``load_interface.Loads``."""
        return _CHUNK_ROWS

    def prepare(self) -> None:
        """See ``load_interface.Loads``: loads need nothing but the tables that are there."""

    def loads(self) -> list[Load]:
        """See ``load_interface.Loads``; only the latest load of each shard."""
        return self._loads.loads()

    def keep(self, epoch: int, steps: Sequence[tuple[Load | None, Load]]) -> None:
        """See ``load_interface.Loads``; the steps of each table are one commit."""
        self._loads.keep(epoch, steps)

    def has_other_unique_key(self, target: TargetTable) -> bool:
        """See ``load_interface.Loads``: Iceberg has no unique keys."""
        return False

    def clear(self, epoch: int, target: TargetTable, statement: TargetStatement) -> None:
        """See ``load_interface.Loads``: no load ends as a snapshot."""
        raise TargetError(f"{target}: {_NO_SNAPSHOTS}", code="SM-1660")

    def copy(self, order: ChunkOrder) -> ChunkFailure | None:
        """See ``load_interface.Loads``: no snapshot is ever done, so there is none to copy."""
        return _snapshot_failure(order)

    def staged(self) -> Collection[ShardId]:
        """See ``load_interface.Loads``: no rows are beside the tables."""
        return ()

    def forget_staged(self, loads: Collection[Load]) -> None:
        """See ``staged``."""

    def stop(self) -> None:
        """See ``load_interface.Loads``: chunks end soon by themselves."""

    def close(self) -> None:
        """Close the connections to sources that this process keeps; no chunk may run any more."""
        close_readers()

    def run(self, order: ChunkOrder, source: Source, *, small: bool) -> ChunkResult | ChunkFailure:
        """See ``load_interface.Loads``."""
        if order.load.kind is LoadKind.SNAPSHOT:
            return _snapshot_failure(order)
        try:
            return self._run(order, source, small=small)
        except Moved:
            what = f"somebody else committed to {order.load.target} meanwhile"
            return _failure(order, what, code="SM-3113")
        except Uncertain:
            # The next attempt finds whether the chunk is done.
            what = f"a commit to {order.load.target} was not acknowledged"
            return _failure(order, what, code="SM-3113")
        except ShardMergeError as error:
            final = isinstance(error, ContractError | TargetLost)
            return _failure(order, error.message, error.hint, error.code, final=final)

    def _run(self, order: ChunkOrder, source: Source, *, small: bool) -> ChunkResult | ChunkFailure:
        own, target = self._own(), order.load.target
        table = own.store.catalog.load(target)
        state = own.store.writable(table, order.writer_epoch)
        shard, number = order.load.shard, order.chunk.number
        if not accepts(own.loads.stored(table, shard), order.load, order.chunk.given):
            return ChunkResult(shard, number, ChunkEnd.REFUSED)
        columns = written_columns(table.layout, state.decided)
        with self._lines(own.session, order, source, columns, small=small) as (read, view):
            if not isinstance(read, ReadChunk):
                return read
            if read.result.end is not ChunkEnd.DONE:
                return read.result
            reach("chunk-read")
            with self._turns.of_chunk(target):
                staged_as = new_id()
                if read.count:
                    self._stage(own, staged_as, target, view, columns, read.key)
                reach("chunk-written")
                done = self._publish(own, order, read.result, columns, staged_as)
        if not done:
            return ChunkResult(shard, number, ChunkEnd.REFUSED)
        reach("chunk-committed")
        return read.result

    def _own(self) -> _Own:
        own: _Own | None = getattr(self._threads, "own", None)
        if own is None:
            store = self._new_store()
            session = store.catalog.new_session()
            own = self._threads.own = _Own(store, IcebergLoadStore(store), session)
        return own

    @contextmanager
    def _lines(
        self, session: Any, order: ChunkOrder, source: Source, columns: Columns, *, small: bool
    ) -> Iterator[tuple[ReadChunk | ChunkFailure, str]]:
        """What became of a chunk's reading, and the view of its lines while the context is open."""
        context, view = session.sparkContext, f"shardmerge_{uuid4().hex}"
        work = partial(chunk_lines, source=source, columns=columns)
        if small:
            texts = list(work([order]))
            rdd, heads = context.parallelize(texts, 1), texts[-1:]
        else:
            rdd = context.parallelize([order], 1).mapPartitions(partial(in_worker, work)).persist()
            # Lost lines must not be read again: they would be of another moment than the head.
            rdd.localCheckpoint()
            try:
                heads = rdd.filter(_is_head).collect()
            except Py4JJavaError as error:
                rdd.unpersist()
                failure = job_failure(error, context)
                yield (
                    _failure(
                        order, failure.message, failure.hint, failure.code, final=failure.final
                    ),
                    "",
                )
                return
        try:
            line_rows(session, rdd).createOrReplaceTempView(view)
            yield read_head(heads[0]), view
        finally:
            session.catalog.dropTempView(view)
            rdd.unpersist()

    def _stage(  # noqa: PLR0917
        self,
        own: _Own,
        staged_as: str,
        target: TargetTable,
        view: str,
        columns: Columns,
        key: tuple[str, ...],
    ) -> None:
        changes = changes_sql(view, columns, key, None, distinct=False)
        with translated(f"reading rows of {target}"):
            bounds = own.session.sql(key_bounds_sql(changes, columns, key)).collect()[0]
        name = own.store.catalog.sql_name(target)
        sql = merge_sql(name, columns, key, changes, within=key_bounds(bounds, columns, key))
        stage(own.session, staged_as, sql, f"merging into {target}")

    def _publish(
        self,
        own: _Own,
        order: ChunkOrder,
        result: ChunkResult,
        columns: Columns,
        staged_as: str,
    ) -> bool:
        """Make the staged snapshot the current one, and mark the chunk as done, in one commit.

        Returns:
            False, with nothing published, when the chunk is not wanted any more.

        Raises:
            Moved: The staged snapshot's parent is no longer the current snapshot, or the table's
                columns have changed.
            Uncertain: It is not known whether the commit took effect.
            WriterReplaced: Another writer took over.
        """
        attempt = order.chunk.given

        def wanted(uncertain: bool) -> Wanted:
            table = own.store.catalog.load(order.load.target)
            state = own.store.writable(table, order.writer_epoch)
            stored = own.loads.stored(table, result.shard)
            if uncertain and is_done(stored, order.load, attempt):
                return True
            after = finished(stored, order.load, result, attempt)
            if after is None:
                return False
            if written_columns(table.layout, state.decided) != columns:
                raise Moved
            return table, {**own.store.properties(state), **own.loads.properties(after)}

        return publish(staged_as, wanted)


def _snapshot_failure(order: ChunkOrder) -> ChunkFailure:
    hint = (
        "give the shard a primary key, then give its source snapshot = 'debezium', restart the "
        "sink, and run `shardmerge command reread` for the shard"
    )
    return _failure(order, _NO_SNAPSHOTS, hint, "SM-1660")


def _failure(
    order: ChunkOrder, message: str, hint: str = "", code: str = "", *, final: bool = False
) -> ChunkFailure:
    return ChunkFailure(order.load.shard, order.chunk.number, message, hint, final, code)


def _is_head(text: str) -> bool:
    return text.startswith(MARK_OF_HEADS)
