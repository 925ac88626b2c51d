"""Two sinks on two machines: the one that does not write takes over when the other is cut off."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from .conftest import ClusterLine
from .machines import Network
from .sinks import Sink, on_the_cluster, with_spark_of_its_own
from .spark_cluster import WORKERS
from .traffic import Traffic, until, until_equal


@pytest.mark.timeout(600)
def test_a_standby_takes_over_from_a_machine_that_is_cut_off(
    line: ClusterLine, machines: Network
) -> None:
    if line.stack.status().get("sink"):
        line.cluster.kill_driver()
    active, standby = (
        with_spark_of_its_own(line, machines.machine(name)) for name in ("sink1", "sink2")
    )
    took: list[float] = []
    try:
        active.start()
        with Traffic(line.pipeline) as traffic:
            traffic.passes()
            standby.start()
            for _ in range(2):
                traffic.passes()
                assert not standby.has_ended
                before = standby.has_started
                active.machine.cut_off()
                took.append(traffic.passes())
                assert standby.has_started == before + 1
                # It lives on without knowing of the other one. With its network it must not write.
                active.machine.connect()
                until(lambda sink=active: sink.has_ended, "end of the sink before")  # type: ignore[misc]
                assert "SM-3103" in active.log
                active.start()
                active, standby = standby, active
        print("seconds until the standby had written a row:", [round(s, 1) for s in took])
        until_equal(line.pipeline)
    finally:
        active.kill()
        standby.kill()


@pytest.mark.timeout(600)
def test_a_standby_on_the_cluster_takes_over_from_a_driver_that_is_cut_off(
    line: ClusterLine, machines: Network, tmp_path: Path
) -> None:
    cluster = line.cluster
    if line.stack.status().get("sink"):
        cluster.kill_driver()
    active, standby = (
        on_the_cluster(line, machines.machine(name), tmp_path) for name in ("driver1", "driver2")
    )
    took: dict[str, float] = {}

    def executors(sink: Sink) -> list[int]:
        return [pid for w in WORKERS for pid in cluster.executors(w, of=sink.machine.address)]

    try:
        active.start()
        with Traffic(line.pipeline) as traffic:
            until(lambda: len(executors(active)) == len(WORKERS), "executors of the first driver")
            standby.start()
            traffic.passes()
            # It has no cores of the cluster: the driver that writes needs them.
            assert executors(standby) == []
            at, started = time.time(), time.monotonic()
            active.machine.cut_off()
            took["row"] = traffic.passes()
            took["lease"] = standby.started_at() - at
            traffic.alter()
            took["row after DDL"] = traffic.passes()
            until(lambda: "executors_awaited" in standby.log, "Spark of the second driver")
            took["Spark"] = time.monotonic() - started
            took["row without executors"] = traffic.passes()
            # The master knows nothing of the loss, and leaves all cores to the first driver.
            assert executors(standby) == []
            traffic.alter()
            traffic.passes()
        print("seconds on the cluster:", {k: round(s, 1) for k, s in took.items()})
        until_equal(line.pipeline)
    finally:
        active.machine.connect()  # so that the master hears of its end
        active.kill()
        standby.kill()
