"""What a worker process keeps open between tasks and batches: a consumer and a target session."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Lock

from shardmerge.connectors.access.lease_names import session_mark
from shardmerge.connectors.kafka.registry import RegistryAddress
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.pipeline.settings import Kafka
from shardmerge.spark_sink.kafka.range_reader import SMALL_FETCH_WAIT_MS, RowReader
from shardmerge.spark_sink.kafka.row_avro import row_format
from shardmerge.spark_sink.planning.ranges import RangeTask, ShardStream
from shardmerge.spark_sink.rows.folding.keyless import KeylessBatch
from shardmerge.spark_sink.rows.folding.row_batches import Batch
from shardmerge.spark_sink.rows.folding.row_fold import RowFold
from shardmerge.spark_sink.rows.folding.segment_plan import Refusal
from shardmerge.spark_sink.targets.mysql import tidb_loads
from shardmerge.spark_sink.targets.mysql.control import ControlStore
from shardmerge.spark_sink.targets.mysql.lines.encoders import limits_of
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession

from .bulk import (
    TableShape,
    can_be_loaded,
    line_maker,
    read_shape,
    write_batch,
    write_keyless,
)

ROUND_RECORDS = 200_000
"""Most records of one round: bounds the memory of a worker, however large the backlog is."""
ROUND_BYTES = 128 << 20
IDLE_S = 60
"""A sink that is cut off in the middle of a transaction keeps its locks for so long."""
TIDB_ROUND_RECORDS, TIDB_CONNECTIONS = 10_000, 4
"""Measured by ``benchmarks/tidb_load.py``."""


@dataclass(frozen=True, slots=True)
class ApplyConfig:
    """The addresses and limits that a task needs; picklable.

    Attributes:
        registry: Of the rows' schemas; None if rows are in JSON.
        fetch_wait_ms: See ``range_reader``.
        connections: Number of connections by which a process writes side by side when there is a
            lot to write.
        compiled_code: Whether lines are made by compiled code, where it is there.
    """

    kafka: Kafka
    target: MySqlAddress
    control_database: str
    pipeline: str
    lock_wait_timeout_s: int = 30
    registry: RegistryAddress | None = None
    round_records: int = ROUND_RECORDS
    round_bytes: int = ROUND_BYTES
    fetch_wait_ms: int = SMALL_FETCH_WAIT_MS
    connections: int = 1
    compiled_code: bool = True

    def session(self) -> MySqlSession:
        """A session that writes. The server ends a transaction that falls silent in it."""
        wait_s = self.lock_wait_timeout_s
        mark = session_mark(self.control_database, self.pipeline)
        return MySqlSession(
            self.target, lock_wait_timeout_s=wait_s, idle_s=IDLE_S, mark=mark, together=True
        )

    def for_kind(self, kind: str) -> ApplyConfig:
        """The configuration with transaction size and connections for a kind of target."""
        if kind != "tidb":
            return self
        return replace(
            self,
            round_records=min(self.round_records, TIDB_ROUND_RECORDS),
            round_bytes=min(self.round_bytes, tidb_loads.ROUND_BYTES),
            connections=TIDB_CONNECTIONS,
        )


class NotSafe(Exception):
    """The rows of a transaction may not be committed: it is rolled back."""


def always() -> bool:
    """For tasks whose rows are known to be safe."""
    return True


class TaskConnection:
    """A consumer and a target session, which a worker process keeps between tasks and batches.

    Attributes:
        round_records: Most records of one transaction. It is halved when the target refuses a
            transaction for its size, and is not raised again while this process lives.
        is_safe: Whether the rows of its present tasks may be committed (``Batches.run``).
    """

    def __init__(self, config: ApplyConfig) -> None:
        self.config = config
        self.session = config.session()
        self.control = ControlStore(self.session, config.control_database, config.pipeline)
        self.rows = row_format(config.registry)
        self.round_records = config.round_records
        self.is_safe: Callable[[], bool] = always
        self._reader: RowReader | None = None
        self._shapes: dict[TargetTable, tuple[int, TableShape]] = {}

    @property
    def reader(self) -> RowReader:
        """The consumer; made when it is first needed."""
        if self._reader is None:
            self._reader = RowReader(self.config.kafka, self.config.fetch_wait_ms)
        return self._reader

    def shape(self, target: TargetTable) -> TableShape:
        """The target's keys, looked up once per statement that the sink executed on it."""
        executed = self.control.executed_statements(target)
        known = self._shapes.get(target)
        if known is None or known[0] != executed:
            known = (executed, read_shape(self.session, target))
            self._shapes[target] = known
        return known[1]

    def known_shape(self, target: TargetTable) -> tuple[int, TableShape] | None:
        """The target's keys as looked up last, and how many statements were executed before."""
        return self._shapes.get(target)

    def check_safe(self) -> None:
        """Make sure, as late as possible, that the rows may be committed; raises ``NotSafe``."""
        if not self.is_safe():
            raise NotSafe

    @property
    def is_counted(self) -> bool:
        """Whether the server's counts of changed rows tell by how many a table grew."""
        return not self.session.is_tidb  # How TiDB counts was not measured.

    def new_fold(
        self, task: RangeTask, refusals: Mapping[int, Refusal] | None = None, *, loads: bool = True
    ) -> RowFold:
        """An empty fold for a task's records.

        Args:
            task: The task.
            refusals: Rows known not to be applicable, by offset.
            loads: Whether many rows become lines, as this server's LOAD DATA reads them.
        """
        return RowFold(
            task.stream,
            task.bindings,
            refusals,
            self.rows,
            line_maker(self.session, is_compiled=self.config.compiled_code)
            if loads and self.session.can_load and _takes_loads(self.session, task.stream)
            else None,
            limits_of=limits_of,
            partition=task.partition,
        )

    def shrink_rounds(self, records: int) -> bool:
        """Halve the bound of a transaction, after one with ``records`` records was too large.

        Returns:
            False for one record: there is nothing to halve.
        """
        self.round_records = max(1, min(self.round_records, records) // 2)
        return records > 1

    def write(
        self, target: TargetTable, batches: Sequence[Batch | KeylessBatch]
    ) -> list[int | None]:
        """Write batches in the open transaction; raises ``TargetError``.

        Returns:
            For each batch by how many rows the table grew at most; None when it is not known.
        """
        if not batches:
            return []
        shape, grown = self.shape(target), list[int | None]()
        for batch in batches:
            if isinstance(batch, KeylessBatch):
                write_keyless(self.session, target, batch, takes_loads=shape.takes_loads)
                grown.append(None)
            else:
                found = write_batch(self.session, target, shape, batch)
                grown.append(found if self.is_counted else None)
        return grown

    def close(self) -> None:
        """Close both; the next use connects again."""
        self.session.close()
        self._shapes.clear()
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()


def _takes_loads(session: MySqlSession, stream: ShardStream) -> bool:
    """Whether the server takes loads of a stream's rows, as far as the stream tells that.

    The server is not asked, for the sake of latency. A target's column is NOT NULL only if it is on
    every shard.
    """
    found = (column.column for segment in stream.segments for column in segment.columns)
    columns = ((column.type.name, column.nullable) for column in found)
    return can_be_loaded(columns, is_mariadb=session.is_mariadb)


class _Kept:
    """A process's connections of one configuration: all of them, and the idle ones."""

    def __init__(self) -> None:
        self.all: list[TaskConnection] = []
        self.idle: list[TaskConnection] = []


_kept: dict[ApplyConfig, _Kept] = {}
"""The connections of this process. They outlive a task: Spark keeps its Python workers."""
_keeping = Lock()


@contextmanager
def idle_connection(config: ApplyConfig) -> Iterator[TaskConnection]:
    """A connection of this process that no one else uses meanwhile; made when all are in use.

    After an exception the connection is closed, since its state is unknown; its next user connects
    again. If one connection had to lower its ``round_records``, the others of this process get the
    lower number, too.
    """
    with _keeping:
        kept = _kept.setdefault(config, _Kept())
        if not kept.idle:
            kept.idle.append(TaskConnection(config))
            kept.all.append(kept.idle[-1])
        connection = kept.idle.pop()
        connection.round_records = min(one.round_records for one in kept.all)
    try:
        yield connection
    except Exception:
        connection.close()
        raise
    finally:
        with _keeping:
            kept.idle.append(connection)


def close_connections() -> None:
    """Close the connections that this process kept open; none of them may be in use."""
    with _keeping:
        for kept in _kept.values():
            for connection in kept.all:
                connection.close()
        _kept.clear()
