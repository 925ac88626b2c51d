"""First loads into a target of the MySQL family: their stored state, and who runs their chunks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from threading import Event, Semaphore

from py4j.protocol import Py4JJavaError

from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.pipeline.settings import Source
from shardmerge.schemas.records.decisions import TargetStatement
from shardmerge.spark_sink.loading.load_state import Load, LoadKind
from shardmerge.spark_sink.planning.chunk_orders import ChunkFailure, ChunkOrder, ChunkResult
from shardmerge.spark_sink.process.job_failures import job_failure
from shardmerge.spark_sink.process.python_workers import once_in_worker
from shardmerge.spark_sink.process.spark_session import SparkStart
from shardmerge.spark_sink.process.worker_start import WorkerStart

from .control import ControlStore
from .ddl.journal import Journal
from .load_store import LoadStore
from .session import MySqlSession
from .snapshot_processes import SnapshotProcesses
from .stage_store import StageStore
from .tasks.bulk import read_shape
from .tasks.chunk_runs import copy_snapshot, run_chunks
from .tasks.connection import ApplyConfig, idle_connection
from .tasks.staging import forget_stages

_CHUNK_ROWS = 50_000
"""A chunk of so many rows is read in a few seconds, so that a source's snapshot is short; the
target writes it by one LOAD DATA."""
_CHUNKS_IN_DRIVER = 2
"""The driver runs so many chunks at once while Spark's workers start. A chunk of 10 MB takes 50 MB
of memory meanwhile."""


class MySqlLoads:
    """See ``load_interface.Loads``.

    Args:
        session: The driver's.
        control: On this session.
        config: For chunks.
        spark: Starts Spark, and waits for it.
    """

    def __init__(
        self, session: MySqlSession, control: ControlStore, config: ApplyConfig, spark: SparkStart
    ) -> None:
        self._session = session
        self._control = control
        self._config = config
        self._spark = spark
        self._store = LoadStore(session, config.control_database, config.pipeline)
        self._stages = StageStore(session, config.control_database, config.pipeline)
        self._processes = SnapshotProcesses(config)
        self._workers = WorkerStart(spark, run_chunks)
        self._stopped = Event()
        self._driver_has_room = Semaphore(_CHUNKS_IN_DRIVER)

    @property
    def chunk_rows(self) -> int:
        """See ``load_interface.Loads``."""
        return min(_CHUNK_ROWS, self._config.round_records)

    def prepare(self) -> None:
        """See ``load_interface.Loads``."""
        self._store.prepare()
        self._stages.prepare()

    def loads(self) -> list[Load]:
        """See ``load_interface.Loads``."""
        return self._store.loads() if self._store.is_prepared() else []

    def keep(self, epoch: int, steps: Sequence[tuple[Load | None, Load]]) -> None:
        """See ``load_interface.Loads``."""
        with self._session.transaction():
            self._control.fence(epoch)
            for before, after in steps:
                self._store.keep(before, after)

    def has_other_unique_key(self, target: TargetTable) -> bool:
        """See ``load_interface.Loads``."""
        return read_shape(self._session, target).other_unique

    def clear(self, epoch: int, target: TargetTable, statement: TargetStatement) -> None:
        """See ``load_interface.Loads``."""
        with idle_connection(self._config) as connection:
            session, control = connection.session, connection.control
            Journal(session, control, self._config.pipeline, epoch).change_rows(target, statement)

    def copy(self, order: ChunkOrder) -> ChunkFailure | None:
        """See ``load_interface.Loads``."""
        return copy_snapshot(order, self._config, self._stopped.is_set)

    def staged(self) -> Collection[ShardId]:
        """See ``load_interface.Loads``."""
        return self._stages.shards()

    def forget_staged(self, loads: Collection[Load]) -> None:
        """See ``load_interface.Loads``."""
        with idle_connection(self._config) as connection:
            forget_stages(loads, connection)

    def stop(self) -> None:
        """See ``load_interface.Loads``."""
        self._stopped.set()
        self._processes.stop()

    def run(self, order: ChunkOrder, source: Source, *, small: bool) -> ChunkResult | ChunkFailure:
        """See ``load_interface.Loads``."""
        is_snapshot = order.load.kind is LoadKind.SNAPSHOT
        if is_snapshot and not (small and not source.load_rows_per_s):
            return self._processes.run(order, source)
        if small:
            return next(run_chunks([order], source, self._config))
        if not self._workers.have_started() and self._driver_has_room.acquire(blocking=False):
            try:
                return next(run_chunks([order], source, self._config))
            finally:
                self._driver_has_room.release()
        context = self._spark.session().sparkContext
        task = partial(run_chunks, source=source, config=self._config)
        job = context.parallelize([order], 1).mapPartitions(partial(once_in_worker, task))
        try:
            found: list[ChunkResult | ChunkFailure] = job.collect()
        except Py4JJavaError as error:
            failure = job_failure(error, context)
            return ChunkFailure(
                order.load.shard,
                order.chunk.number,
                failure.message,
                failure.hint,
                final=failure.final,
                code=failure.code,
            )
        return found[0]
