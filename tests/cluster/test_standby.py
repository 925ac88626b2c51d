"""Two sinks on two machines: the one that does not write takes over when the other is cut off."""

from __future__ import annotations

import sys

import pytest

from shardmerge.local.servers.processes import ProcessSpec

from .conftest import ClusterLine
from .machines import Machine, Network
from .traffic import Traffic, until, until_equal


class Sink:
    """One sink with ``--standby``, and Spark on its own machine."""

    def __init__(self, line: ClusterLine, machine: Machine) -> None:
        self._line, self.machine = line, machine
        self._name = f"sink-on-{machine.name}"

    def start(self) -> None:
        """Start it, and wait until it writes or waits."""
        before = self._count("sink_started"), self._count("sink_waits")

        def health() -> str | None:
            there = self._count("sink_started"), self._count("sink_waits")
            return None if there != before else f"{self._name} neither writes nor waits"

        call = (sys.executable, "-m", "shardmerge.cli.main", "sink", "--standby", "--pipeline")
        # Its workers have this process's environment, not the cluster's archive.
        env = {k: v for k, v in self._line.env.items() if k != "PYSPARK_PYTHON"}
        argv = self.machine.command(*call, self._line.pipeline_file, env=env)
        self._line.stack.add(ProcessSpec(self._name, argv, health=health, start_timeout_s=120))

    def kill(self) -> None:
        """SIGKILL, if it runs."""
        if not self.has_ended:
            self._line.stack.kill(self._name)

    @property
    def has_started(self) -> int:
        """How often it has begun to write so far."""
        return self._count("sink_started")

    @property
    def has_ended(self) -> bool:
        return self._line.stack.status().get(self._name) is None

    @property
    def log(self) -> str:
        path = self._line.stack.supervisor.log_path(self._name)
        return path.read_text(errors="replace") if path.exists() else ""

    def _count(self, event: str) -> int:
        return self.log.count(event)


@pytest.mark.timeout(600)
def test_a_standby_takes_over_from_a_machine_that_is_cut_off(
    line: ClusterLine, machines: Network
) -> None:
    if line.stack.status().get("sink"):
        line.cluster.kill_driver()
    active, standby = (Sink(line, machines.machine(name)) for name in ("sink1", "sink2"))
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
