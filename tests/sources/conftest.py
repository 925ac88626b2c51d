"""One stack for the contract, and each server beside it while its tests run."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.local.servers.stack import LocalStack, Ports

from .servers import CACHE, KINDS, ROOT, Kind, start

NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def stack() -> Iterator[LocalStack]:
    """Kafka, Connect and a target."""
    (ROOT / ".local").mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="sources-", dir=ROOT / ".local"))
    stack = LocalStack(directory, Ports.free(), cache=CACHE)
    try:
        for name in ("kafka", "connect", "target"):
            stack.start(name)
        yield stack
    finally:
        if os.environ.get("KEEP_LOGS"):
            shutil.copy(stack.directory / "logs" / "connect.log", os.environ["KEEP_LOGS"])
        stack.clean()


@pytest.fixture(scope="module", params=KINDS)
def kind(stack: LocalStack, request: pytest.FixtureRequest) -> Iterator[Kind]:
    """A server as a source."""
    kind = start(stack, request.param, next(NUMBERS))
    print(f"{kind.name}: {kind.server.flavour} {kind.server.version}")
    yield kind
    stack.stop(kind.process)


@pytest.fixture
def rest(stack: LocalStack) -> Iterator[ConnectRest]:
    """Connect's client; connectors that a test leaves behind are deleted."""
    rest = ConnectRest(stack.connect_url)
    before = set(rest.connectors())
    yield rest
    for name in set(rest.connectors()) - before:
        rest.delete(name)
    rest.close()
