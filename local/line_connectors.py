"""The connectors of the local line, by the names of their sources."""

from __future__ import annotations

import threading

from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.settings import Pipeline


class LineConnectors:
    """Stops, starts and restarts the connectors of a pipeline's sources.

    Every method raises ``StackError`` when Connect does not answer, or refuses.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._names = {source.name: connector_name(pipeline, source) for source in pipeline.sources}
        # Whatever watches the line asks again by itself, so nothing is waited for here.
        self._rest = ConnectRest.of(pipeline.connect, patience_s=0.0)
        self._lock = threading.Lock()
        self._pauses = 0

    def restart(self, source: str) -> None:
        """Restart a source's connector with its task, through Connect."""
        self._rest.restart(self._names[source])

    def stop(self, source: str) -> None:
        """Stop reading a source, until ``start``; its server runs on."""
        self._rest.pause(self._names[source])

    def start(self, source: str) -> None:
        """Read a source again that ``stop`` stopped."""
        self._rest.resume(self._names[source])

    def pause_all(self) -> None:
        """Stop reading every source, until ``resume_all`` was called as often as this."""
        with self._lock:
            self._pauses += 1
            if self._pauses == 1:
                for source in self._names:
                    self.stop(source)

    def resume_all(self) -> None:
        """Read every source again, unless somebody else still wants the pause."""
        with self._lock:
            self._pauses -= 1
            if self._pauses == 0:
                for source in self._names:
                    self.start(source)

    def state(self, source: str) -> str:
        """``RUNNING`` when a source's connector and its task work; else the worse state."""
        try:
            status = self._rest.status(self._names[source])
        except StackError as error:
            return str(error)
        if status is None:
            return "not known to Kafka Connect"
        if not status.tasks:
            return "without a task"
        states = [status.state, *(task.state for task in status.tasks)]
        return next((state for state in states if state != "RUNNING"), "RUNNING")
