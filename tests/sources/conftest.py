"""One stack for the contract, and each server beside it while its tests run."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.local.servers.stack import LocalStack, Ports
from tests.whole import IS_WHOLE

from .servers import CACHE, ROOT, Kind, start

NUMBERS = itertools.count(1)
# Of MySQL 8.0 without TLS, tests/integration/connect has the same.
collect_ignore = [] if IS_WHOLE else ["test_users.py"]


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
        stack.clean()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each module says which servers its tests are run with."""
    if "kind" in metafunc.fixturenames:
        metafunc.parametrize("kind", metafunc.module.KINDS, indirect=True, scope="module")


@pytest.fixture(scope="module")
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
