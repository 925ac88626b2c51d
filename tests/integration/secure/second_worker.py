"""A second worker of Kafka Connect on the secured line. Its own clients show OAuth tokens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from shardmerge.connectors.access.kafka import admin_client
from shardmerge.local.install.artifacts import DEFAULT_CACHE, resolve
from shardmerge.local.install.exact_values import with_exact_values
from shardmerge.local.servers.connect import connect_spec
from shardmerge.local.servers.processes import Supervisor
from shardmerge.local.servers.secured import Secured
from shardmerge.local.servers.stack import Ports
from shardmerge.schemas.pipeline.kafka_client import java_client, parse_client
from shardmerge.schemas.pipeline.secrets import PROVIDERS
from shardmerge.schemas.pipeline.settings import Connect, Kafka, Pipeline

from .rights import bindings
from .secured_line import SecuredLine

SOURCES = ("tokens1", "plain1")
"""The line's first server, under the names by which connectors of this worker read it."""
_GROUP = "connect-tokens"
_ALLOWED = "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls"


@dataclass(frozen=True)
class SecondWorker:
    """The worker, started.

    Attributes:
        log: What the worker wrote.
    """

    _secured: SecuredLine
    _url: str
    log: Path

    def by_token(self) -> Pipeline:
        """A pipeline whose clients, Debezium's included, show tokens."""
        client = self._secured.token_client(
            self._secured.token_server.url, "env:KAFKA_USER", "env:KAFKA_PASSWORD"
        )
        return self._pipeline(SOURCES[0], Kafka(f"127.0.0.1:{self._secured.tokens}", client=client))

    def by_plain(self) -> Pipeline:
        """A pipeline whose clients, Debezium's included, show a password by PLAIN."""
        made = self._secured.line.pipeline.kafka
        client = parse_client(dict(made.client) | {"sasl.mechanism": "PLAIN"})
        return self._pipeline(SOURCES[1], Kafka(made.bootstrap_servers, client=client))

    def _pipeline(self, source: str, kafka: Kafka) -> Pipeline:
        made = self._secured.line.pipeline
        number = 54_900 + SOURCES.index(source)
        # No sink runs for it.
        changed = replace(made.sources[0], name=source, server_id=number, snapshot="debezium")
        return replace(made, kafka=kafka, connect=Connect(self._url), sources=(changed,))


@contextmanager
def second_worker(secured: SecuredLine, directory: Path) -> Iterator[SecondWorker]:
    """The worker, while the context lasts.

    Args:
        secured: The line that has broker, token server and source.
        directory: Of the worker's files.
    """
    directory.mkdir()
    port = Ports.free().connect
    lines = (f"{name}={value}" for name, value in secured.environment("connect").items())
    (directory / "connect.env").write_text("\n".join(lines) + "\n")
    admin = admin_client(secured.owner())
    for future in admin.create_acls(bindings("local", SOURCES, _GROUP)).values():
        future.result()
    artifacts = resolve()
    spec = connect_spec(
        artifacts,
        directory / "worker",
        port,
        f"127.0.0.1:{secured.tokens}",
        plugins=[with_exact_values(artifacts.plugin_path, DEFAULT_CACHE, artifacts.java, print)],
        secured=Secured(
            connect=_properties(secured, port),
            connect_java=(f"{_ALLOWED}={secured.token_server.url}",),
        ),
    )
    supervisor = Supervisor(directory)
    try:
        supervisor.spawn(spec)
        supervisor.wait_healthy(spec)
        yield SecondWorker(secured, f"http://127.0.0.1:{port}", supervisor.log_path(spec.name))
    finally:
        supervisor.stop(spec.name)


def _properties(secured: SecuredLine, port: int) -> dict[str, str]:
    client = java_client(
        secured.token_client(secured.token_server.url, "connect", "env:KAFKA_PASSWORD")
    )
    topics = ("config", "offset", "status")
    return {
        "group.id": _GROUP,
        "listeners": f"http://127.0.0.1:{port}",
        "config.providers": ",".join(PROVIDERS),
        **{f"config.providers.{name}.class": kind for name, kind in PROVIDERS.items()},
        **{f"{name}.storage.topic": f"{_GROUP}-{name}" for name in topics},
        **{
            f"{prefix}{key}": value
            for prefix in ("", "producer.", "consumer.", "admin.")
            for key, value in client.items()
        },
    }
