"""A part of the pipeline that runs on a machine of the network."""

from __future__ import annotations

from .conftest import ClusterLine
from .machines import Machine


class MachinePart:
    """One process; a subclass starts it.

    Args:
        line: Its pipeline.
        machine: Where it runs.
        kind: What it is; the name of its log begins so.
    """

    def __init__(self, line: ClusterLine, machine: Machine, kind: str) -> None:
        self._line, self.machine = line, machine
        self._name = f"{kind}-on-{machine.name}"

    def kill(self) -> None:
        """SIGKILL, if it runs."""
        if not self.has_ended:
            self._line.stack.kill(self._name)

    @property
    def has_ended(self) -> bool:
        return self._line.stack.status().get(self._name) is None

    @property
    def log(self) -> str:
        """What it has said in all its lives."""
        path = self._line.stack.supervisor.log_path(self._name)
        return path.read_text(errors="replace") if path.exists() else ""
