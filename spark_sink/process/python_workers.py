"""Spark's Python workers: saves work that PySpark repeats for every task.

A worker process runs many tasks. Around each task PySpark clears Python's caches of the folders on
its path, and collects garbage. Measured with Spark 4.1 and Python 3.11 on two cores: a task that
does nothing took 130 ms. It took 15 ms without this work, and without TCP's delays between the
JVM and the worker (``spark_session``).

A task that writes runs once. Spark runs a task again whose executor was lost with its machine,
whatever ``spark.task.maxFailures`` says. What the first run committed would look like another
writer's work to the second one, and the first run may even go on, on a machine that only the
network has lost. So the second run is refused; the driver then plans anew, from what is committed.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar
from zipimport import zipimporter

from pyspark import TaskContext

from shardmerge.schemas.model.errors import StackError

T = TypeVar("T")
U = TypeVar("U")


def in_worker(function: Callable[[Iterable[U]], Iterable[T]], units: Iterable[U]) -> Iterator[T]:
    """Run ``function`` over the units of a task; for ``mapPartitions`` with ``function`` bound."""
    if not gc.get_freeze_count():
        # Objects that exist now stay, so the collection after each task need not look at them.
        gc.collect()
        gc.freeze()
    try:
        yield from function(units)
    finally:
        _drop_zip_importers()


def once_in_worker(
    function: Callable[[Iterable[U]], Iterable[T]], units: Iterable[U]
) -> Iterator[T]:
    """``in_worker`` for a function that writes to the target.

    Raises:
        StackError: Spark runs the task again. The job ends with this error.
    """
    task = TaskContext.get()
    if task is not None and task.attemptNumber() > 0:
        raise StackError(
            "Spark lost the executor of a task and would run the task again",
            hint="the driver plans its rows anew instead, from what is committed",
            code="SM-5804",
        )
    yield from in_worker(function, units)


def _drop_zip_importers() -> None:
    """Keep the next task from reading the directories of the zip files on the path again.

    Spark puts these files on the path. Up to Python 3.12 ``importlib.invalidate_caches`` makes the
    importer of every zip file read the file's directory again. Without an importer in the cache it
    reads nothing; a later import from the file makes a new importer, with the directory that
    ``zipimport`` has kept.
    """
    for path, importer in list(sys.path_importer_cache.items()):
        if isinstance(importer, zipimporter):
            del sys.path_importer_cache[path]
