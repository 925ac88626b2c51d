"""Which Python Spark's workers run, and whether a job would wait for an executor."""

from __future__ import annotations

import sys
from typing import Any
from unittest.mock import MagicMock

import pytest

from shardmerge.spark_sink.process.spark_session import SparkStart, pythons


def test_local_workers_run_this_python_whatever_the_environment_says() -> None:
    found = pythons({"PYSPARK_PYTHON": "python2"}, local=True)
    assert found == {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}


def test_workers_of_a_cluster_run_the_python_that_is_named() -> None:
    found = pythons({"PYSPARK_PYTHON": "./environment/bin/python"}, local=False)
    assert found["PYSPARK_PYTHON"] == "./environment/bin/python"
    assert found["PYSPARK_DRIVER_PYTHON"] == sys.executable


def test_workers_of_a_cluster_have_this_python_at_the_same_path_otherwise() -> None:
    assert pythons({}, local=False)["PYSPARK_PYTHON"] == sys.executable
    assert pythons({"PYSPARK_PYTHON": ""}, local=False)["PYSPARK_PYTHON"] == sys.executable


def a_session(master: str, *, executors: int, stopped: bool = False) -> Any:
    session = MagicMock()
    session.sparkContext.master = master
    scala = session.sparkContext._jsc.sc.return_value
    scala.getExecutorIds.return_value.isEmpty.return_value = executors == 0
    scala.isStopped.return_value = stopped
    return session


@pytest.mark.parametrize(
    ("session", "lacks"),
    [
        (a_session("spark://m:7077", executors=0), True),
        (a_session("spark://m:7077", executors=1), False),
        # A job tells that the cluster has given up the application.
        (a_session("spark://m:7077", executors=0, stopped=True), False),
        (a_session("local[2]", executors=0), False),
    ],
)
def test_a_job_would_wait_while_a_cluster_has_no_executor(session: Any, lacks: bool) -> None:
    start = SparkStart(lambda: session, "")
    assert not start.lacks_executors
    start.session()
    assert start.lacks_executors is lacks
