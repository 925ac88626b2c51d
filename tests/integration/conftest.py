"""The embedded stack, started once per session for every test that asks for it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from shardmerge.local.servers.stack import LocalStack, Ports

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def stack() -> Iterator[LocalStack]:
    """Two MySQL sources, a target, Kafka, Connect and a schema registry, on free ports."""
    (ROOT / ".local").mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="integration-", dir=ROOT / ".local"))
    stack = LocalStack(directory, Ports.free(), cache=ROOT / ".local" / "cache", registry=True)
    stack.up()
    try:
        yield stack
    finally:
        stack.clean()
