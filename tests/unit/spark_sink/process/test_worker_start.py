from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from shardmerge.schemas.model.errors import ConfigError
from shardmerge.spark_sink.process.spark_session import SparkStart
from shardmerge.spark_sink.process.worker_start import WorkerStart


class Spark:
    """Runs a job's tasks when it is let."""

    defaultParallelism = 2  # noqa: N815  # as Spark names it

    def __init__(self) -> None:
        self.may_run = threading.Event()
        self.tasks: list[tuple[Callable[[Iterable[int]], Iterator[int]], int]] = []

    @property
    def sparkContext(self) -> Spark:  # noqa: N802  # as Spark names it
        return self

    def parallelize(self, units: Iterable[int], slices: int) -> Spark:
        assert len(list(units)) == slices
        self.slices = slices
        return self

    def mapPartitions(self, task: Callable[[Iterable[int]], Iterator[int]]) -> Spark:  # noqa: N802
        self.tasks.append((task, self.slices))
        return self

    def collect(self) -> list[int]:
        assert self.may_run.wait(10)
        return []


def wait_for(workers: WorkerStart) -> None:
    thread: Any = workers._starter
    thread.join(10)


def test_each_worker_gets_a_task_once() -> None:
    spark = Spark()
    workers = WorkerStart(SparkStart(lambda: spark, "Java"), wait_for)
    assert not workers.have_started()
    assert not workers.have_started()
    spark.may_run.set()
    wait_for(workers)
    assert workers.have_started()
    [(task, slices)] = spark.tasks
    assert (slices, list(task([1]))) == (2, [])
    gc.unfreeze()  # as every other test has it


def test_a_spark_that_does_not_start_holds_nothing_up(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> Any:
        raise ConfigError("no Java", code="SM-5503")

    workers = WorkerStart(SparkStart(fail, "Java"), wait_for)
    workers.have_started()
    wait_for(workers)
    assert workers.have_started()
    assert [record.getMessage().split()[0] for record in caplog.records] == ["workers_failed"]
