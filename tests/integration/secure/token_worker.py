"""A second worker of Kafka Connect on the secured line, all of whose clients show OAuth tokens."""

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
from shardmerge.schemas.pipeline.kafka_client import java_client
from shardmerge.schemas.pipeline.secrets import PROVIDERS
from shardmerge.schemas.pipeline.settings import Connect, Kafka, Pipeline
from shardmerge.schemas.pipeline.text import pipeline_text

from .rights import bindings
from .secured_line import SecuredLine

SOURCE = "t1"
"""The first source's server again, under the name that the second worker reads it by."""
_GROUP = "connect-tokens"
_ALLOWED = "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls"


@dataclass(frozen=True)
class TokenWorker:
    """The worker, started.

    Attributes:
        pipeline: Its one source's; clients of ours show tokens, too.
        path: The pipeline's file.
        log: What the worker wrote.
    """

    pipeline: Pipeline
    path: Path
    log: Path


@contextmanager
def token_worker(secured: SecuredLine, directory: Path) -> Iterator[TokenWorker]:
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
    for future in admin.create_acls(bindings("local", (SOURCE,), _GROUP)).values():
        future.result()
    secured_worker = Secured(
        connect=_properties(secured, port),
        connect_java=(f"{_ALLOWED}={secured.token_server.url}",),
    )
    artifacts = resolve()
    spec = connect_spec(
        artifacts,
        directory / "worker",
        port,
        f"127.0.0.1:{secured.tokens}",
        plugins=[with_exact_values(artifacts.plugin_path, DEFAULT_CACHE, artifacts.java, print)],
        secured=secured_worker,
    )
    pipeline = _pipeline(secured, port)
    path = directory / "pipeline.toml"
    path.write_text(pipeline_text(pipeline))
    supervisor = Supervisor(directory)
    try:
        supervisor.spawn(spec)
        supervisor.wait_healthy(spec)
        yield TokenWorker(pipeline, path, supervisor.log_path(spec.name))
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


def _pipeline(secured: SecuredLine, port: int) -> Pipeline:
    made = secured.line.pipeline
    client = secured.token_client(secured.token_server.url, "env:KAFKA_USER", "env:KAFKA_PASSWORD")
    source = replace(made.sources[0], name=SOURCE, server_id=54_900)
    return replace(
        made,
        kafka=Kafka(f"127.0.0.1:{secured.tokens}", client=client),
        connect=Connect(f"http://127.0.0.1:{port}"),
        sources=(source,),
    )
