"""Sinks with ``--standby`` on machines of the network."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from shardmerge.connectors.log_lines import event_in
from shardmerge.local.servers.processes import ProcessSpec

from .conftest import SMALL_BATCH, ClusterLine
from .from_the_page import submission
from .machines import Machine
from .parts import MachinePart


class Sink(MachinePart):
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
        super().__init__(line, machine, "sink")
        self._call, self._env = call, env

    def start(self) -> None:
        """Start it, and wait until it writes or waits."""
        before = self._count("sink_started"), self._count("sink_waits")

        def health() -> str | None:
            there = self._count("sink_started"), self._count("sink_waits")
            return None if there != before else f"{self._name} neither writes nor waits"

        argv = self.machine.command(*self._call, "--standby", env=self._env)
        self._line.stack.add(ProcessSpec(self._name, argv, health=health, start_timeout_s=120))

    @property
    def has_started(self) -> int:
        """How often it has begun to write so far."""
        return self._count("sink_started")

    def started_at(self) -> float:
        """When it last began to write: seconds since 1970."""
        said = (event_in(text) for text in self.log.splitlines())
        (*_, last) = (at for at, event in filter(None, said) if event == "sink_started")
        return last.timestamp()

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
