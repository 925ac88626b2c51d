"""The sink on a Spark cluster, while parts of it die: no row is lost, and none comes twice."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from .conftest import ClusterLine
from .spark_cluster import DRIVER
from .traffic import Traffic, until, until_equal

SINK = """
import sys
from shardmerge.spark_sink.job import main

sys.exit(main())
"""
CONF = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.network.timeout": "20s",
    "spark.network.timeoutInterval": "5s",
    "spark.executor.heartbeatInterval": "5s",
}


def settings(line: ClusterLine) -> list[str]:
    conf = {**CONF, "spark.archives": f"{line.archive}#environment"}
    return [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]


@pytest.mark.timeout(600)
def test_rows_pass_while_executors_die_a_worker_is_cut_off_and_the_driver_is_killed(
    line: ClusterLine,
) -> None:
    cluster = line.cluster
    program = line.stack.directory / "sink.py"
    program.write_text(SINK)
    submit = cluster.submit(*settings(line), str(program), "--pipeline", line.pipeline_file)
    env = {**line.env, "PYSPARK_DRIVER_PYTHON": sys.executable}
    took = {}
    cluster.start_driver(submit, env)
    with Traffic(line.pipeline) as traffic:
        took["first rows"] = traffic.passes()
        until(lambda: all(cluster.executors(w) for w in ("worker1", "worker2")), "executors")
        traffic.passes()
        cluster.kill_executor("worker1")
        took["executor killed"] = traffic.passes()
        traffic.alter()

        registered = cluster.registered("worker2")
        cluster.machines["worker2"].cut_off()
        took["worker cut off"] = traffic.passes()
        cluster.machines["worker2"].connect()
        took["worker back"] = traffic.passes()
        until(lambda: cluster.registered("worker2") > registered, "worker2 at the master")

        cluster.kill_driver()
        options = ["--conf", f"spark.archives={line.archive}#environment"]
        sink = (sys.executable, "-m", "shardmerge.cli.main", "sink", "--pipeline", line.pipeline_file)
        submitted = {"PYSPARK_SUBMIT_ARGS": " ".join([*settings(line), "pyspark-shell"])}
        cluster.start_driver((*sink, "--master", cluster.url), {**line.env, **submitted})
        took["driver killed"] = traffic.passes()
    print({name: round(seconds, 1) for name, seconds in took.items()})
    until_equal(line.pipeline)


def test_spark_refuses_the_cluster_mode_for_python_on_a_standalone_cluster(
    line: ClusterLine,
) -> None:
    command = line.cluster.submit("--deploy-mode", "cluster", "sink.py")
    machine = line.cluster.machines[DRIVER]
    said = subprocess.run(
        machine.command(*command), capture_output=True, text=True, check=False, timeout=120
    )
    assert said.returncode != 0
    assert "not supported for python applications on standalone clusters" in said.stderr
