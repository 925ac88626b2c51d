"""Runs the tasks of a plan: in the driver when they are few, as a Spark job otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from py4j.protocol import Py4JJavaError

from shardmerge.connectors.event_log import logger
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka.range_reader import LARGE_FETCH_WAIT_MS
from shardmerge.spark_sink.kafka.windows.window import Kept, ReadWindows, Window
from shardmerge.spark_sink.kafka.windows.window_reader import read_windows
from shardmerge.spark_sink.planning.ranges import (
    RangeResult,
    RangeTask,
    TaskFailure,
    by_reading,
    offsets_in,
)
from shardmerge.spark_sink.process.job_failures import job_failure
from shardmerge.spark_sink.process.python_workers import once_in_worker
from shardmerge.spark_sink.process.settings import SinkSettings
from shardmerge.spark_sink.process.spark_session import SparkStart, start_spark
from shardmerge.spark_sink.sources.idle_readers import close_readers

from .connection import ApplyConfig, close_connections, idle_connection
from .task_runs import run_tasks

log = logger(__name__)

_SLICES_PER_CORE = 4
_SHARES_PER_WRITER = 2


class BatchRunner:
    """Runs batches; Spark starts in the background, since small batches do not need it.

    Attributes:
        spark: Starts Spark, and waits for it.
    """

    def __init__(self, settings: SinkSettings, config: ApplyConfig, min_records: int) -> None:
        self._config = config
        self._min_records = min_records
        self._lacked = False
        self.spark = SparkStart(lambda: start_spark(settings), "Java 17 and 450 MB")

    def start(self) -> None:
        """Begin to start Spark."""
        self.spark.begin()

    @property
    def orders_partitions(self) -> bool:
        """See ``Batches``."""
        return True

    def bound(self, records: int) -> int:
        """At most ``records``; fewer while no job could run, so that the driver can apply them."""
        if not self.spark.is_starting:
            lacking, self._lacked = self._lacked, self.spark.lacks_executors
            if not self._lacked:
                return records
            if not lacking:
                log.warning("executors_awaited")
        return min(records, self._min_records - 1)

    def expect(self, starts: Mapping[Partition, int], seen: Mapping[Partition, Kept]) -> None:
        """See ``Batches``: the driver's own reader fetches."""
        with idle_connection(self._config) as connection:
            connection.reader.expect(starts, seen)

    @property
    def read_windows(self) -> ReadWindows:
        """See ``Batches``: the reader keeps the records for the batch that follows."""
        return self._read_windows

    def _read_windows(
        self, asked: Mapping[Partition, tuple[int, int]]
    ) -> Mapping[Partition, Window]:
        """Windows with so many records that Spark's workers read them are left out."""
        if sum(end - start for start, end in asked.values()) >= self._min_records:
            return {}
        with idle_connection(self._config) as connection:
            return read_windows(connection.reader, asked, connection.rows)

    def run(
        self, tasks: Sequence[RangeTask], is_safe: Callable[[], bool]
    ) -> Iterator[RangeResult | TaskFailure]:
        """Apply the tasks; results come in any order.

        Raises:
            ConfigError: Spark could not be started.
        """
        if offsets_in(tasks) < self._min_records:
            # Sorted, so that tasks that can be applied together are next to each other.
            yield from run_tasks([sorted(tasks, key=_kind_of_work)], self._config, is_safe)
            return
        if not is_safe():
            return
        self.expect({}, {})  # other processes read them
        context = self.spark.session().sparkContext
        cores, connections = context.defaultParallelism, self._config.connections
        units = units_of(tasks, cores * connections)
        # If a worker writes by several connections, these share the units of a slice.
        slices = min(len(units), cores * (_SLICES_PER_CORE if connections == 1 else 1))
        # The units are sorted by size; this gives large and small ones to every slice.
        spread = [unit for first in range(slices) for unit in units[first::slices]]
        config = replace(self._config, fetch_wait_ms=LARGE_FETCH_WAIT_MS)
        job = context.parallelize(spread, slices).mapPartitions(
            partial(once_in_worker, partial(run_tasks, config=config))
        )
        try:
            results = job.collect()
        except Py4JJavaError as error:
            failure = job_failure(error, context)
            yield TaskFailure(failure.message, failure.hint, final=failure.final, code=failure.code)
            return
        yield from results

    def stop(self) -> None:
        """Close the driver's own connections; stop Spark, if it runs."""
        close_connections()
        close_readers()
        self.spark.stop()


def units_of(tasks: Sequence[RangeTask], writers: int) -> list[tuple[RangeTask, ...]]:
    """The units of a large batch, largest first: tasks of a unit are applied together.

    A unit has the partitions of one topic. They belong to one shard, whose rows lie side by side in
    the target, or to the shards of a shared topic. A topic so large that one writer would still be
    busy when the others have nothing left is split into several units. Ranges that are read
    together are never split, nor are ordered shards.
    """
    by_topic: dict[tuple[str, int], list[tuple[RangeTask, ...]]] = {}
    for reading in by_reading(tasks):
        first = reading[0]
        by_topic.setdefault((first.topic, min(first.reading, 0)), []).append(reading)
    share = offsets_in(tasks) / (_SHARES_PER_WRITER * writers)
    units: list[tuple[RangeTask, ...]] = []
    todo = list(by_topic.values())
    while todo:
        readings = todo.pop()
        unit = tuple(task for reading in readings for task in reading)
        if unit[0].closure is not None:
            units.append(tuple(sorted(unit, key=_shard)))
        elif len(readings) > 1 and offsets_in(unit) > share:
            todo += [readings[::2], readings[1::2]]
        else:
            units.append(unit)
    return sorted(units, key=offsets_in, reverse=True)


def _kind_of_work(task: RangeTask) -> tuple[TargetTable, bool, bool]:
    """Only tasks for which this is equal can be applied together."""
    return task.stream.target, task.closure is not None, task.stream.undoes


def _shard(task: RangeTask) -> tuple[TargetTable, ShardId]:
    return task.stream.target, task.stream.shard
