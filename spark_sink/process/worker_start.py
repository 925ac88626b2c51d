"""Starts Spark's Python workers, and tells when they can begin a task at once.

A worker that runs its first task imports the task's modules, which takes about a second of a
processor. Until the workers have done that, the driver can do some of the work itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from py4j.protocol import Py4JError

from shardmerge.connectors.event_log import logger
from shardmerge.schemas.model.errors import ShardMergeError

from .python_workers import in_worker
from .spark_session import SparkStart

log = logger(__name__)


class WorkerStart:
    """Has each worker import the modules of a function.

    Any thread may use it.

    Args:
        spark: Starts Spark.
        function: Of the tasks to come.
    """

    def __init__(self, spark: SparkStart, function: Callable[..., Any]) -> None:
        self._spark, self._function = spark, function
        self._starting = threading.Lock()
        self._starter: threading.Thread | None = None

    def have_started(self) -> bool:
        """Whether the workers have started. The first call begins to start them.

        It is also True if they could not: the next task meets the same obstacle, and tells it.
        """
        with self._starting:
            if self._starter is None:
                self._starter = threading.Thread(target=self._run, name="worker-start", daemon=True)
                self._starter.start()
        return not self._starter.is_alive()

    def _run(self) -> None:
        try:
            context = self._spark.session().sparkContext
            cores = context.defaultParallelism
            task = partial(in_worker, partial(_nothing, self._function))
            context.parallelize(range(cores), cores).mapPartitions(task).collect()
        except (ShardMergeError, Py4JError) as error:
            log.warning("workers_failed", error=error)


def _nothing(_: Callable[..., Any], __: Iterable[int]) -> Iterator[int]:
    """A task that needs the function's modules, and does nothing."""
    return iter(())
