"""What Kafka Connect tells of a connector, and that in one word and in one sentence. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """State of one task: ``RUNNING``, ``FAILED``, ``PAUSED``, ``UNASSIGNED``, ``RESTARTING``.

    Attributes:
        trace: The stack trace of a failed task, else "".
    """

    id: int
    state: str
    trace: str = ""


@dataclass(frozen=True, slots=True)
class ConnectorStatus:
    """State of a connector and of its tasks. A connector that was just made has no tasks yet."""

    name: str
    state: str
    tasks: tuple[TaskStatus, ...]
    trace: str = ""

    @property
    def is_running(self) -> bool:
        """Whether the connector and all of its tasks run."""
        return (
            self.state == "RUNNING"
            and bool(self.tasks)
            and all(t.state == "RUNNING" for t in self.tasks)
        )

    @property
    def is_failed(self) -> bool:
        """Whether the connector or one of its tasks failed."""
        return self.state == "FAILED" or any(t.state == "FAILED" for t in self.tasks)

    def reason(self, lines: int = 4) -> str:
        """The messages of the first trace, on one line; "" when nothing failed."""
        traces = [self.trace, *(task.trace for task in self.tasks)]
        return next((shorten_trace(trace, lines) for trace in traces if trace), "")


@dataclass(frozen=True, slots=True)
class ConnectorState:
    """One connector in Kafka Connect.

    Attributes:
        source: The source that it reads.
        name: Its name in Kafka Connect.
        state: ``RUNNING``, ``FAILED``, ``PAUSED``, ``STOPPED``, ``UNASSIGNED``, ``RESTARTING``, or
            ``missing``. If only its task does not run, the task's state.
        reason: The messages of its stack trace; "" when nothing failed.
    """

    source: str
    name: str
    state: str
    reason: str = ""

    @property
    def is_running(self) -> bool:
        """Whether the connector and all of its tasks run."""
        return self.state == "RUNNING"


def connector_state(source: str, name: str, told: ConnectorStatus | None) -> ConnectorState:
    """A connector's state in one word. If only its task does not run, it is the task's state.

    Args:
        source: The source that it reads.
        name: Of the connector.
        told: What Connect says; None when it knows no such connector.
    """
    if told is None:
        return ConnectorState(source, name, "missing")
    states = [told.state, *(task.state for task in told.tasks)]
    if told.state == "RUNNING" and not told.tasks:
        states = ["UNASSIGNED"]
    worst = next((state for state in states if state != "RUNNING"), "RUNNING")
    return ConnectorState(source, name, worst, told.reason())


def connector_fault(connector: ConnectorState) -> str:
    """What is wrong with a connector that does not run."""
    reason = f": {connector.reason}" if connector.reason else ""
    return f"connector {connector.name} is {connector.state}{reason}"


def shorten_trace(trace: str, lines: int = 4) -> str:
    """A Java stack trace without its frames: the messages, outermost first."""
    messages = [
        line.strip()
        for line in trace.splitlines()
        if line.strip() and not line.lstrip().startswith(("at ", "..."))
    ]
    return " / ".join(messages[:lines])
