"""Kafka Connect's REST interface: create, update, wait for RUNNING, restart, delete.

A worker answers 409 while its group rebalances, and may time out while it joins the group; both are
waited out here, so that a caller sees either an answer or a ``StackError`` with a hint.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import requests

from shardmerge.connectors.access.http import session
from shardmerge.connectors.access.tls_context import tls_fault
from shardmerge.connectors.event_log import logger
from shardmerge.connectors.formats.connector_status import ConnectorStatus, TaskStatus
from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.pipeline.settings import Connect

log = logger(__name__)
_REQUEST_TIMEOUT_S = 30.0
_PAUSE_S = 0.2
_NO_TLS = (
    "is ca under [connect.tls] of the pipeline file the CA of the worker's certificate, is the "
    "certificate not expired, and does it name the host of url?"
)
_LINK_FAILURE = "Communications link failure"
"""All that MySQL's driver says when TLS fails, or the server is away."""
_NO_REASON = "Failed to establish connection with the database:"
"""All that Debezium says where the driver gave no text, as for a certificate of another CA."""
_NO_LINK = (
    "can the worker's machine reach the server, and if tls is set: is the CA of the server's "
    "certificate in truststore, is the certificate not expired, and does it name the host?"
)
_NOT_LOOKED_UP = (
    "the worker looks up the password: are env and directory among its config.providers, and has "
    "it the variable, or the file without a line break at its end?"
)
_NO_KEY = (
    "the server has forgotten the password since it started, and the driver may not ask for the "
    "key to encrypt it: encrypt the connection (tls), or leave driver.allowPublicKeyRetrieval out "
    "of the source's connector properties"
)
_REFUSED = (requests.codes.unauthorized, requests.codes.forbidden)
_NO_ACCESS = "are user and password under [connect] of the pipeline file right?"


class ConnectRest:
    """A client of one Connect cluster.

    Where the pipeline file has several workers, one that does not answer, or cannot yet, makes the
    next one be asked, and that one from then on.

    Args:
        url: Such as ``http://127.0.0.1:8083``; see ``Connect.url``.
        patience_s: How long workers that do not answer, or rebalance, are waited for.
        timeout_s: How long one request may wait for a connection, and then for the answer.
        access: User, password and certificates.

    Attributes:
        url: Of the worker that is asked.
    """

    def __init__(
        self,
        url: str,
        *,
        patience_s: float = 60.0,
        timeout_s: float = _REQUEST_TIMEOUT_S,
        access: Connect | None = None,
    ) -> None:
        access = access or Connect(url)
        self.url, *self._others = access.urls
        self._patience_s = patience_s
        self._timeout_s = timeout_s
        self._session = session(access)

    @classmethod
    def of(
        cls, connect: Connect, *, patience_s: float = 60.0, timeout_s: float = _REQUEST_TIMEOUT_S
    ) -> ConnectRest:
        """A client of the pipeline file's cluster.

        Raises:
            ConfigError: A password or a file is not where the pipeline file says.
        """
        return cls(connect.url, patience_s=patience_s, timeout_s=timeout_s, access=connect)

    def close(self) -> None:
        """Give the connection back."""
        self._session.close()

    def connectors(self) -> tuple[str, ...]:
        """Names of all connectors of the cluster."""
        return tuple(sorted(self._call("GET", "/connectors").json()))

    def plugins(self) -> tuple[str, ...]:
        """Classes of everything that the workers load as plugins."""
        return tuple(sorted(plugin["class"] for plugin in self._plugins()))

    def plugin_versions(self, name: str) -> tuple[str, ...]:
        """The versions of a class that the workers load as a plugin, where they tell any."""
        versions = {p.get("version") for p in self._plugins() if p["class"] == name}
        return tuple(sorted(str(version) for version in versions if version))

    def _plugins(self) -> Sequence[Mapping[str, Any]]:
        found: list[Mapping[str, Any]]
        found = self._call("GET", "/connector-plugins?connectorsOnly=false").json()
        return found

    def create_or_update(self, name: str, config: Mapping[str, str]) -> bool:
        """Give a connector its configuration; returns whether anything changed.

        An equal configuration is not sent: it would restart the task for nothing.

        Raises:
            StackError: Connect or the connector refuses it, with every objection by key. (It is
                validated first: where a connector leaves one of its keys without an answer,
                Connect's own refusal is an error 500 that says nothing.)
        """
        named = {**config, "name": name}
        if self.config(name) == named:
            return False
        self.refuse_unfit(named)
        self.set_config(name, config)
        return True

    def create_stopped(self, name: str, config: Mapping[str, str]) -> None:
        """Make a connector that does not run until it is resumed.

        Raises:
            StackError: As ``create_or_update``; or there is one of that name.
        """
        self.refuse_unfit({**config, "name": name})
        body = {"name": name, "config": dict(config), "initial_state": "STOPPED"}
        self._call("POST", "/connectors", body)

    def config(self, name: str) -> Mapping[str, str] | None:
        """The configuration of a connector, or None when there is no such connector."""
        answer = self._call("GET", f"/connectors/{quote(name)}/config", missing_ok=True)
        return None if answer.status_code == requests.codes.not_found else answer.json()

    def status(self, name: str) -> ConnectorStatus | None:
        """The state of a connector; None when it does not exist or has not reported one yet."""
        answer = self._call("GET", f"/connectors/{quote(name)}/status", missing_ok=True)
        if answer.status_code == requests.codes.not_found:
            return None
        return _status_of(name, answer.json())

    def statuses(self) -> Mapping[str, ConnectorStatus]:
        """The states of all connectors of the cluster; one that has not reported any is left out.

        This is one request, however many connectors there are.
        """
        told = self._call("GET", "/connectors?expand=status").json()
        # A connector that is deleted meanwhile has no status.
        return {
            name: _status_of(name, each["status"])
            for name, each in told.items()
            if "status" in each
        }

    def wait_running(
        self, name: str, timeout_s: float = 60.0, *, past: ConnectorStatus | None = None
    ) -> ConnectorStatus:
        """Wait until a connector and its tasks run.

        Args:
            name: Of the connector.
            timeout_s: The bound.
            past: Its status before it got its present configuration. Connect reports this status
                until it has stopped the old task, so a failure in it does not raise.

        Raises:
            StackError: It failed, with the first lines of the trace, or the bound passed.
        """
        deadline = time.monotonic() + timeout_s
        told = past.reason() if past is not None else ""
        while True:
            status = self.status(name)
            if status is not None and status.is_running:
                return status
            if status is not None and status.is_failed and status.reason() != told:
                raise StackError(
                    f"connector {name} failed: {status.reason()}",
                    hint="remove the cause; the watchdog then restarts the failed tasks",
                    code="SM-4301",
                )
            if time.monotonic() > deadline:
                state = "not known to Connect" if status is None else _describe(status)
                raise StackError(
                    f"connector {name} does not run after {timeout_s:.0f} s: {state}",
                    code="SM-4302",
                )
            time.sleep(_PAUSE_S)

    def restart_failed(self, name: str) -> None:
        """Restart the connector if it failed, and those of its tasks that failed; no others."""
        self._call("POST", f"/connectors/{quote(name)}/restart?includeTasks=true&onlyFailed=true")

    def restart(self, name: str) -> None:
        """Restart a connector and all of its tasks."""
        self._call("POST", f"/connectors/{quote(name)}/restart?includeTasks=true")

    def stop(self, name: str) -> None:
        """Stop a connector and wait until it has no tasks: then its offset can be changed.

        Raises:
            StackError: It has not stopped within the client's patience.
        """
        self._call("PUT", f"/connectors/{quote(name)}/stop")
        deadline = time.monotonic() + self._patience_s
        while (status := self.status(name)) is None or status.state != "STOPPED" or status.tasks:
            if time.monotonic() > deadline:
                raise StackError(
                    f"connector {name} has not stopped within {self._patience_s:.0f} s",
                    hint="see whether the workers run, and their logs",
                    code="SM-4302",
                )
            time.sleep(_PAUSE_S)

    def pause(self, name: str) -> None:
        """Let a connector and its tasks stand until ``resume``; ``stop`` would end the tasks."""
        self._call("PUT", f"/connectors/{quote(name)}/pause")

    def resume(self, name: str) -> None:
        """Let a connector that was stopped or paused run."""
        self._call("PUT", f"/connectors/{quote(name)}/resume")

    def offset(self, name: str) -> Mapping[str, Any] | None:
        """The offset that is committed for a connector of one source; None before the first."""
        body = self._call("GET", f"/connectors/{quote(name)}/offsets").json()
        found = [entry["offset"] for entry in body["offsets"] if entry.get("offset")]
        if len(found) > 1:
            raise StackError(
                f"connector {name} has the offsets of {len(found)} sources",
                hint="one connector reads one source: see GET /connectors/NAME/offsets",
                code="SM-4309",
            )
        return found[0] if found else None

    def set_offset(self, name: str, server: str, offset: Mapping[str, Any]) -> None:
        """Change the offset of a stopped connector.

        Args:
            name: Of the connector.
            server: Its ``topic.prefix``, which is Debezium's name of the source.
            offset: What it shall be.
        """
        body = {"offsets": [{"partition": {"server": server}, "offset": dict(offset)}]}
        self._call("PATCH", f"/connectors/{quote(name)}/offsets", body)

    def set_config(self, name: str, config: Mapping[str, str]) -> None:
        """Give a connector this configuration unchecked; a stopped connector stays stopped."""
        self._call("PUT", f"/connectors/{quote(name)}/config", dict(config))

    def validate(self, config: Mapping[str, str]) -> Mapping[str, tuple[str, ...]]:
        """What Connect and the connector have against a configuration: key → messages.

        Keys without a message are left out. The connector also tries its database here.
        """
        body = self._call(
            "PUT",
            f"/connector-plugins/{quote(config['connector.class'])}/config/validate",
            dict(config),
        )
        values = (entry["value"] for entry in body.json()["configs"])
        return {
            value["name"]: tuple(value["errors"]) for value in values if value and value["errors"]
        }

    def delete(self, name: str) -> None:
        """Delete a connector and wait until it is gone; nothing when there is none."""
        self._call("DELETE", f"/connectors/{quote(name)}", missing_ok=True)
        deadline = time.monotonic() + self._patience_s
        while name in self.connectors():
            if time.monotonic() > deadline:
                raise StackError(
                    f"connector {name} is still there {self._patience_s:.0f} s after its deletion",
                    code="SM-4302",
                )
            time.sleep(_PAUSE_S)

    def refuse_unfit(self, config: Mapping[str, str]) -> None:
        """Have a configuration, with its ``name``, checked; nothing is changed.

        Raises:
            StackError: Connect or the connector refuses it, with every objection by key.
        """
        if objections := self.validate(config):
            texts = [f"{key}: {' '.join(messages)}" for key, messages in objections.items()]
            raise StackError(
                f"connector {config['name']} is refused: {'; '.join(texts)}",
                hint=_refusal_hint("".join(texts), config),
                code="SM-4303",
            )

    def _call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        missing_ok: bool = False,
    ) -> requests.Response:
        deadline, unasked = time.monotonic() + self._patience_s, len(self._others)
        while True:
            try:
                answer = self._session.request(
                    method, self.url + path, json=body, timeout=self._timeout_s
                )
            except requests.RequestException as error:
                fault = tls_fault(error)
                problem = f"Kafka Connect at {self.url} cannot be reached: {fault or error}"
                if "certificate" in fault:
                    raise StackError(problem, hint=_NO_TLS, code="SM-4311") from error
            else:
                missing = answer.status_code == requests.codes.not_found
                if answer.ok or (missing_ok and missing and not _is_passing(answer)):
                    return answer
                problem = f"{method} {self.url}{path} → {answer.status_code}: {_message(answer)}"
                if not _is_passing(answer):
                    if answer.status_code in _REFUSED:
                        raise StackError(problem, hint=_NO_ACCESS, code="SM-4311")
                    raise StackError(problem, code="SM-4304")
            if not unasked and time.monotonic() > deadline:
                raise StackError(
                    problem, hint="see whether the worker runs, and its log", code="SM-4304"
                )
            log.debug("connect_retried", reason=problem)
            self._others.append(self.url)
            self.url, unasked = self._others.pop(0), max(0, unasked - 1)
            time.sleep(_PAUSE_S)


def _status_of(name: str, told: Mapping[str, Any]) -> ConnectorStatus:
    tasks = tuple(TaskStatus(t["id"], t["state"], t.get("trace", "")) for t in told["tasks"])
    connector = told["connector"]
    return ConnectorStatus(name, connector["state"], tasks, connector.get("trace", ""))


def _refusal_hint(objections: str, config: Mapping[str, str]) -> str:
    if _LINK_FAILURE in objections or objections.rstrip().endswith(_NO_REASON):
        return _NO_LINK
    if "Public Key Retrieval is not allowed" in objections:
        return _NO_KEY
    if "Access denied" in objections and "${" in config.get("database.password", ""):
        return _NOT_LOOKED_UP
    return ""


def _is_passing(answer: requests.Response) -> bool:
    """Whether the worker only asks for patience: a rebalance, or it has not joined its group."""
    if answer.status_code in (requests.codes.conflict, requests.codes.service_unavailable):
        return True
    if answer.status_code == requests.codes.not_found:
        # While it starts its web server answers before it knows its own paths, in HTML.
        return "html" in answer.headers.get("Content-Type", "")
    message = _message(answer).lower()
    return answer.status_code == requests.codes.internal_server_error and (
        "timed out" in message or "rebalance" in message
    )


def _message(answer: requests.Response) -> str:
    try:
        return str(answer.json().get("message", answer.text))
    except (ValueError, AttributeError):
        return answer.text[:500]


def _describe(status: ConnectorStatus) -> str:
    tasks = ", ".join(f"task {task.id} {task.state}" for task in status.tasks) or "no tasks yet"
    return " / ".join(filter(None, (f"{status.state}, {tasks}", status.reason())))
