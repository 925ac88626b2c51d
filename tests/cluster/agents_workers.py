"""Workers of the line's agents on machines of the network, in place of the line's own one."""

from __future__ import annotations

import json
import sys
from urllib.request import urlopen

from shardmerge.local.servers.processes import ProcessSpec
from shardmerge.schemas.pipeline import topics

from .conftest import ClusterLine
from .machines import Machine
from .parts import MachinePart

OWN = "agents"
"""The line's worker, on this machine."""
_PORT = 6066


class AgentsWorker(MachinePart):
    """A worker.

    Args:
        line: Whose agents.
        machine: Where it runs.
    """

    def __init__(self, line: ClusterLine, machine: Machine) -> None:
        super().__init__(line, machine, "agents")

    def start(self) -> None:
        """Start it (again), with the disk that it had."""
        argv = self.machine.command(
            sys.executable, "-m", "shardmerge.agents.app",
            "--pipeline", self._line.pipeline_file, "--datadir", str(self.machine.folder / "data"),
            "--web-host", self.machine.address, "--web-port", str(_PORT),
            env={**self._line.env, "PYTHONSAFEPATH": "1"},
        )  # fmt: skip
        self._line.stack.add(ProcessSpec(self._name, argv))

    def partitions(self) -> list[str]:
        """What it reads; nothing while it is not ready."""
        try:
            with urlopen(f"http://{self.machine.address}:{_PORT}/healthz", timeout=5) as told:
                found: list[str] = json.load(told)["assigned"]
        except OSError:
            return []
        return found

    def decides(self) -> bool:
        """Whether it has the tracker."""
        return f"{topics.commands(self._line.pipeline).name}/0" in self.partitions()
