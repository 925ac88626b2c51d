"""Servers of several versions and flavours: each starts once, when a test asks for it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from shardmerge.cli.validation.inputs.server_rows import ServerRows
from shardmerge.local.servers.other_versions import NAMES, running_server
from shardmerge.local.servers.processes import Supervisor
from shardmerge.local.servers.source_servers import source_spec
from tests.breadth import with_further

from .compared_line import pipeline
from .fuzz import data_directory, free_port
from .twin import Twin

ROOT = Path(__file__).resolve().parents[3]
GIVEN_PORT = os.environ.get("SHARDMERGE_FUZZ_PORT", "")


@pytest.fixture(scope="session")
def server_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], int]]:
    """The port of a server of that name, started at the first call."""
    ports: dict[str, int] = {}
    with ExitStack() as running:

        def port(name: str) -> int:
            if name not in ports:
                directory = data_directory(tmp_path_factory.getbasetemp())
                running.callback(shutil.rmtree, directory, ignore_errors=True)
                server = running.enter_context(
                    running_server(
                        name, directory, free_port(), cache=ROOT / ".local" / "cache", say=print
                    )
                )
                ports[name] = server.port
            return ports[name]

        yield port


@pytest.fixture(scope="module")
def port(server_port: Callable[[str], int]) -> int:
    """The port of the server that tests use when they name none."""
    return server_port("mysql80")


@pytest.fixture
def servers(port: int) -> Iterator[ServerRows]:
    """Reads sources and target of ``compared_line``, all on that server."""
    found = ServerRows(pipeline(port, port))
    yield found
    found.close()


_FURTHER = ("mysql57", "mysql97", "mariadb118")
SERVERS = with_further([name for name in NAMES if name not in _FURTHER], *_FURTHER)


@pytest.fixture(params=["given"] if GIVEN_PORT else SERVERS)
def server(request: pytest.FixtureRequest) -> str:
    """The name of a server; ``given`` is the one that runs already."""
    return str(request.param)


@pytest.fixture
def twin(server: str, server_port: Callable[[str], int]) -> Iterator[Twin]:
    """Tracker and server, without tables."""
    made = Twin(int(GIVEN_PORT) if server == "given" else server_port(server))
    made.reset([])
    yield made
    made.reset([])
    made.close()


@contextmanager
def source_server(flavour: str, base: Path, server_id: int) -> Iterator[int]:
    """The port of a server that writes a binlog, while the context lasts.

    Args:
        flavour: A name that ``source_spec`` knows.
        base: A folder for its data.
        server_id: The server's number.
    """
    directory = data_directory(base)
    port, supervisor = free_port(), Supervisor(directory)
    spec = source_spec(
        flavour, "source", directory, port, server_id, cache=ROOT / ".local" / "cache"
    )
    supervisor.spawn(spec)
    try:
        supervisor.wait_healthy(spec)
        yield port
    finally:
        supervisor.stop("source")
        shutil.rmtree(directory, ignore_errors=True)
