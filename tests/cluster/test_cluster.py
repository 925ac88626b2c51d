"""The sink on a Spark cluster, while parts of it die: no row is lost, and none comes twice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import ClusterLine
from .from_the_page import call_of, submission
from .spark_cluster import DRIVER, SPARK, WORKERS
from .traffic import Traffic, opened, until, until_equal


@pytest.mark.timeout(600)
def test_rows_pass_while_executors_master_and_driver_die_and_a_worker_is_cut_off(
    line: ClusterLine, installed: str, tmp_path: Path
) -> None:
    cluster, took = line.cluster, dict[str, float]()
    cluster.start_driver(
        submission(line, tmp_path), {**line.env, "PYSPARK_DRIVER_PYTHON": sys.executable}
    )
    with Traffic(line.pipeline) as traffic:
        took["first rows"] = traffic.passes()
        until(lambda: all(cluster.executors(w) for w in WORKERS), "executors")
        traffic.passes()
        failed = cluster.failed_batches()
        while cluster.failed_batches() == failed:  # a kill between two tasks fails no batch
            until(lambda: cluster.executors("worker1"), "an executor")
            cluster.kill_executor_in_a_task("worker1")
            took["executor killed"] = traffic.passes()
        traffic.alter()

        registered, failed = cluster.registered("worker2"), cluster.failed_batches()
        cluster.machines["worker2"].cut_off()
        took["worker cut off"] = traffic.passes()
        assert cluster.failed_batches() > failed
        cluster.machines["worker2"].connect()
        took["worker back"] = traffic.passes()
        until(lambda: cluster.registered("worker2") > registered, "worker2 at the master")

        cluster.kill_master()
        took["master killed"] = traffic.passes()
        cluster.start_master()
        before = cluster.executors("worker1")
        cluster.kill_executor("worker1")
        took["executor killed, under the new master"] = traffic.passes()
        until(lambda: set(cluster.executors("worker1")) - set(before), "an executor by the master")

        cluster.kill_driver()
        # Now with the packages installed on the workers' machines.
        settings = tmp_path / "spark-defaults.conf"
        kept = [row for row in settings.read_text().splitlines() if "archives" not in row]
        settings.write_text("\n".join(kept) + "\n")
        there = {"PYSPARK_PYTHON": installed, "SPARK_CONF_DIR": str(tmp_path)}
        words = call_of("shardmerge sink", line)
        command = [sys.executable, "-m", "shardmerge.cli.main", "sink", *words]
        cluster.start_driver(command, {**line.env, **there})
        took["driver killed"] = traffic.passes()
        until(lambda: all(cluster.executors(w) for w in WORKERS), "executors of the new driver")
        took["new driver's executors"] = traffic.passes()
    print({name: round(seconds, 1) for name, seconds in took.items()})
    # What a task wrote was not written again by a second attempt: the driver planned anew instead.
    assert set(cluster.finished_attempts()) == {0}
    until_equal(line.pipeline)


def test_spark_refuses_the_cluster_mode_for_python_on_a_standalone_cluster(
    line: ClusterLine,
) -> None:
    machine = line.cluster.machines[DRIVER]
    submit = str(SPARK / "bin" / "spark-submit")
    words = (submit, "--master", line.cluster.url, "--deploy-mode", "cluster", "sink.py")
    said = subprocess.run(
        machine.command(*words), capture_output=True, text=True, check=False, timeout=120
    )
    assert said.returncode != 0
    assert "not supported for python applications on standalone clusters" in said.stderr


LOCKED = """
import sys, time
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession

host, port, user = sys.argv[1:4]
session = MySqlSession(MySqlAddress(host, int(port), user, "env:TARGET_PASSWORD"), idle_s=5)
with session.transaction():
    session.execute("INSERT INTO merged.locked VALUES (1)")
    print("locked", flush=True)
    time.sleep(3600)
"""


def test_a_machine_that_is_cut_off_in_a_transaction_does_not_keep_its_locks(
    line: ClusterLine,
) -> None:
    target, machine = line.pipeline.target, line.cluster.machines[DRIVER]
    with opened(target) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE IF NOT EXISTS merged")
        cursor.execute("CREATE TABLE merged.locked (id INT PRIMARY KEY)")
        words = (sys.executable, "-c", LOCKED, target.host, str(target.port), target.user)
        holder = subprocess.Popen(machine.command(*words, env=line.env), stdout=subprocess.PIPE)
        assert holder.stdout is not None
        try:
            assert holder.stdout.readline() == b"locked\n"
            machine.cut_off()
            # Fails after these seconds if the lock is still held.
            cursor.execute("SET SESSION innodb_lock_wait_timeout = 60")
            cursor.execute("INSERT INTO merged.locked VALUES (1)")
        finally:
            machine.connect()
            holder.kill()
            holder.wait()
            holder.stdout.close()
