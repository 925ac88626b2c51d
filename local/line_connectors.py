"""The connectors of the local line, driven through Connect's REST interface."""

from __future__ import annotations

import threading
from typing import Any

import requests

from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.settings import Pipeline


class LineConnectors:
    """Stops, starts and restarts the connectors of a pipeline's sources.

    Every method raises ``StackError`` when Connect does not answer, or refuses.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._lock = threading.Lock()
        self._pauses = 0
        self._session = requests.Session()
        self._session.trust_env = False  # everything is on this machine: no proxy

    def restart(self, source: str) -> None:
        """Restart a source's connector with its task, through Connect."""
        path = f"/connectors/{self._name(source)}/restart"
        self._request("POST", f"{path}?includeTasks=true&onlyFailed=false")

    def stop(self, source: str) -> None:
        """Stop reading a source, until ``start``; its server runs on."""
        self._request("PUT", f"/connectors/{self._name(source)}/pause")

    def start(self, source: str) -> None:
        """Read a source again that ``stop`` stopped."""
        self._request("PUT", f"/connectors/{self._name(source)}/resume")

    def pause_all(self) -> None:
        """Stop reading every source, until ``resume_all`` was called as often as this."""
        with self._lock:
            self._pauses += 1
            if self._pauses == 1:
                self._each("pause")

    def resume_all(self) -> None:
        """Read every source again, unless somebody else still wants the pause."""
        with self._lock:
            self._pauses -= 1
            if self._pauses == 0:
                self._each("resume")

    def _each(self, command: str) -> None:
        for source in self._pipeline.sources:
            self._request("PUT", f"/connectors/{self._name(source.name)}/{command}")

    def _name(self, source: str) -> str:
        return connector_name(self._pipeline, self._pipeline.source(source))

    def state(self, source: str) -> str:
        """``RUNNING`` when a source's connector and its task work; else the worse state."""
        try:
            status = self._request("GET", f"/connectors/{self._name(source)}/status")
        except StackError as error:
            return str(error)
        states = [status["connector"]["state"], *(task["state"] for task in status["tasks"])]
        if not status["tasks"]:
            return "without a task"
        return next((str(state) for state in states if state != "RUNNING"), "RUNNING")

    def _request(self, method: str, path: str) -> Any:
        try:
            answer = self._session.request(method, self._pipeline.connect.url + path, timeout=10)
        except requests.RequestException as error:
            raise StackError(f"Kafka Connect does not answer: {error}") from None
        if not answer.ok:
            raise StackError(f"Kafka Connect: {method} {path}: {answer.status_code} {answer.text}")
        return answer.json() if answer.content else None
