"""First loads into a target of the MySQL family: their stored state, and who runs their chunks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from py4j.protocol import Py4JJavaError

from shardmerge.schemas.pipeline.settings import Source
from shardmerge.spark_sink.loading.load_state import Load
from shardmerge.spark_sink.planning.chunk_orders import ChunkFailure, ChunkOrder, ChunkResult
from shardmerge.spark_sink.process.python_workers import in_worker
from shardmerge.spark_sink.process.spark_session import SparkStart

from .control import ControlStore
from .load_store import LoadStore
from .session import MySqlSession
from .tasks.chunk_runs import run_chunks
from .tasks.connection import ApplyConfig

_CHUNK_ROWS = 50_000
"""A chunk of so many rows is read in a few seconds, so that a source's snapshot is short; the
target writes it by one LOAD DATA."""


class MySqlLoads:
    """See ``interface.Loads``.

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

    @property
    def chunk_rows(self) -> int:
        """See ``interface.Loads``."""
        return min(_CHUNK_ROWS, self._config.round_records)

    def prepare(self) -> None:
        """See ``interface.Loads``."""
        self._store.prepare()

    def loads(self) -> list[Load]:
        """See ``interface.Loads``."""
        return self._store.loads() if self._store.is_prepared() else []

    def keep(self, epoch: int, steps: Sequence[tuple[Load | None, Load]]) -> None:
        """See ``interface.Loads``."""
        with self._session.transaction():
            self._control.fence(epoch)
            for before, after in steps:
                self._store.keep(before, after)

    def run(self, order: ChunkOrder, source: Source, *, small: bool) -> ChunkResult | ChunkFailure:
        """See ``interface.Loads``."""
        if small:
            return next(run_chunks([order], source, self._config))
        context = self._spark.session().sparkContext
        task = partial(run_chunks, source=source, config=self._config)
        job = context.parallelize([order], 1).mapPartitions(partial(in_worker, task))
        try:
            found: list[ChunkResult | ChunkFailure] = job.collect()
        except Py4JJavaError as error:
            return ChunkFailure(
                order.load.shard,
                order.chunk.number,
                f"Spark's job failed: {error.java_exception}",
                "see the log of Spark",
                code="SM-3113",
            )
        return found[0]
