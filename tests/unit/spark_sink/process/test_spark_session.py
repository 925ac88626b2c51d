"""Which Python Spark's workers run."""

from __future__ import annotations

import sys

from shardmerge.spark_sink.process.spark_session import pythons


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
