"""Two sinks on two machines: the one that does not write takes over when the other is cut off."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from shardmerge.connectors.log_lines import event_in
from shardmerge.local.servers.processes import ProcessSpec

from .conftest import SMALL_BATCH, ClusterLine
from .from_the_page import submission
from .machines import Machine, Network
from .spark_cluster import WORKERS
from .traffic import Traffic, until, until_equal


class Sink:
    """One sink with ``--standby``.

    Args:
        line: Its pipeline.
        machine: Where it runs.
        call: Its command line, without ``--standby``.
        env: Its environment.
    """

    def __init__(
        self, line: ClusterLine, machine: Machine, call: Sequence[str], env: Mapping[str, str]
    ) -> None:
        self._line, self.machine, self._call, self._env = line, machine, call, env
        self._name = f"sink-on-{machine.name}"

    def start(self) -> None:
        """Start it, and wait until it writes or waits."""
        before = self._count("sink_started"), self._count("sink_waits")

        def health() -> str | None:
            there = self._count("sink_started"), self._count("sink_waits")
            return None if there != before else f"{self._name} neither writes nor waits"

        argv = self.machine.command(*self._call, "--standby", env=self._env)
        self._line.stack.add(ProcessSpec(self._name, argv, health=health, start_timeout_s=120))

    def kill(self) -> None:
        """SIGKILL, if it runs."""
        if not self.has_ended:
            self._line.stack.kill(self._name)

    @property
    def has_started(self) -> int:
        """How often it has begun to write so far."""
        return self._count("sink_started")

    def started_at(self) -> float:
        """When it last began to write: seconds since 1970."""
        said = (event_in(text) for text in self.log.splitlines())
        (*_, last) = (at for at, event in filter(None, said) if event == "sink_started")
        return last.timestamp()

    @property
    def has_ended(self) -> bool:
        return self._line.stack.status().get(self._name) is None

    @property
    def log(self) -> str:
        path = self._line.stack.supervisor.log_path(self._name)
        return path.read_text(errors="replace") if path.exists() else ""

    def _count(self, event: str) -> int:
        return self.log.count(event)


def with_spark_of_its_own(line: ClusterLine, machine: Machine) -> Sink:
    """A sink with Spark on its own machine, and this process's packages there."""
    call = (sys.executable, "-m", "shardmerge.cli.main", "sink", "--pipeline", line.pipeline_file)
    env = {k: v for k, v in line.env.items() if k != "PYSPARK_PYTHON"}
    return Sink(line, machine, call, env)


def on_the_cluster(line: ClusterLine, machine: Machine, folder: Path) -> Sink:
    """A sink that is submitted as the page tells; without executors its driver keeps up, too."""
    small = f"spark_min_records = {SMALL_BATCH}"
    text = Path(line.pipeline_file).read_text()
    assert small in text
    file = folder / "pipeline.toml"
    file.write_text(text.replace(small, "spark_min_records = 2000"))
    env = {**line.env, "PYSPARK_DRIVER_PYTHON": sys.executable}
    return Sink(line, machine, submission(line, folder, FILE=str(file)), env)


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
