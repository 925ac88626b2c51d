"""Runs the tasks of a plan: in the driver when they are few, as a Spark job otherwise."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from py4j.protocol import Py4JJavaError

from shardmerge.schemas.errors import ConfigError
from shardmerge.schemas.names import TargetTable
from shardmerge.spark_sink.ranges import RangeResult, RangeTask, TaskFailure
from shardmerge.spark_sink.settings import SinkSettings
from shardmerge.spark_sink.spark_session import start_spark

from .connection import ApplyConfig, close_connections
from .task_runs import run_tasks

_SLICES_PER_CORE = 4
_SHARES_PER_CORE = 2


class BatchRunner:
    """Runs batches; Spark starts in the background, since small batches do not need it."""

    def __init__(self, settings: SinkSettings, config: ApplyConfig, min_records: int) -> None:
        self._settings = settings
        self._config = config
        self._min_records = min_records
        self._session: Any = None
        self._failure: Exception | None = None
        self._starter = threading.Thread(target=self._start, name="spark-start", daemon=True)

    def start(self) -> None:
        """Begin to start Spark."""
        self._starter.start()

    def bound(self, records: int) -> int:
        """At most that many records, fewer while Spark starts: they are applied in the driver."""
        return min(records, self._min_records - 1) if self._starter.is_alive() else records

    def run(self, tasks: Sequence[RangeTask]) -> Iterator[RangeResult | TaskFailure]:
        """Apply the tasks; results come in any order.

        Raises:
            ConfigError: Spark could not be started.
        """
        size = sum(task.end_offset - task.start_offset for task in tasks)
        if size < self._min_records:
            # Tasks of one target are neighbours: they are applied together.
            yield from run_tasks([sorted(tasks, key=_target)], self._config)
            return
        context = self._spark().sparkContext
        units = units_of(tasks, context.defaultParallelism)
        slices = min(len(units), context.defaultParallelism * _SLICES_PER_CORE)
        # Every slice gets large and small units.
        dealt = [unit for first in range(slices) for unit in units[first::slices]]
        job = context.parallelize(dealt, slices).mapPartitions(
            partial(run_tasks, config=self._config)
        )
        try:
            results = job.collect()
        except Py4JJavaError as error:
            yield TaskFailure(f"Spark's job failed: {error.java_exception}", "see the log of Spark")
            return
        yield from results

    def stop(self) -> None:
        """Close the driver's own connections; stop Spark, if it runs."""
        close_connections()
        if self._starter.ident is None:
            return
        self._starter.join()
        if self._session is not None:
            self._session.stop()

    def _spark(self) -> Any:
        self._starter.join()
        if self._failure is not None:
            raise ConfigError(
                f"Spark does not start: {self._failure}",
                hint="see the lines before this one; the driver's JVM needs Java 17 and 450 MB",
            ) from self._failure
        return self._session

    def _start(self) -> None:
        try:
            self._session = start_spark(self._settings)
        except Exception as error:  # told by _spark, in the thread that needs it
            self._failure = error


def units_of(tasks: Sequence[RangeTask], cores: int) -> list[tuple[RangeTask, ...]]:
    """What is applied together when there is a lot, largest first: the partitions of a topic.

    They are parts of one shard, whose rows lie side by side in the target. A topic that would keep
    one core busy while the others have nothing left is cut into several units.
    """
    by_topic: dict[str, list[RangeTask]] = {}
    for task in tasks:
        by_topic.setdefault(task.topic, []).append(task)
    share = _records(tasks) / (_SHARES_PER_CORE * cores)
    units: list[tuple[RangeTask, ...]] = []
    todo = [tuple(unit) for unit in by_topic.values()]
    while todo:
        unit = todo.pop()
        if len(unit) > 1 and _records(unit) > share:
            todo += [unit[::2], unit[1::2]]
        else:
            units.append(unit)
    return sorted(units, key=_records, reverse=True)


def _records(unit: Sequence[RangeTask]) -> int:
    return sum(task.end_offset - task.start_offset for task in unit)


def _target(task: RangeTask) -> TargetTable:
    return task.stream.target
