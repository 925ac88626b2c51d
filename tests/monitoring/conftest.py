"""Kafka, a source and a Connect worker that has Prometheus' JMX exporter inside."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.local.install.artifacts import resolve
from shardmerge.local.install.exact_values import with_exact_values
from shardmerge.local.install.jmx_exporter import jmx_exporter, jmx_option
from shardmerge.local.servers.connect import connect_spec
from shardmerge.local.servers.stack import LocalStack, Ports

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".local" / "cache"
JMX_RULES = ROOT / "docker" / "jmx" / "connect.yml"


@pytest.fixture(scope="session")
def stack() -> Iterator[LocalStack]:
    """The stack; the exporter has the port of the registry, which is not there."""
    (ROOT / ".local").mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="monitoring-", dir=ROOT / ".local"))
    stack = LocalStack(directory, Ports.free(), cache=CACHE)
    artifacts = resolve(CACHE)
    try:
        for name in ("kafka", "source1"):
            stack.start(name)
        worker = connect_spec(
            artifacts,
            directory / "connect",
            stack.ports.connect,
            stack.bootstrap_servers,
            plugins=[with_exact_values(artifacts.plugin_path, CACHE, artifacts.java)],
        )
        option = jmx_option(jmx_exporter(CACHE), stack.ports.registry, JMX_RULES)
        stack.add(replace(worker, env={**worker.env, "JAVA_TOOL_OPTIONS": option}))
        yield stack
    finally:
        stack.clean()


@pytest.fixture
def rest(stack: LocalStack) -> Iterator[ConnectRest]:
    """Connect's client; connectors that a test leaves behind are deleted."""
    rest = ConnectRest(stack.connect_url)
    yield rest
    for name in rest.connectors():
        rest.delete(name)
    rest.close()
