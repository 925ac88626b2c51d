"""Servers of several versions and flavours: each starts once, when a test asks for it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from shardmerge.local.servers.other_versions import NAMES, running_server

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


SERVERS = [name for name in NAMES if name != "mariadb118"]
"""``information`` does not find MariaDB 11.8's charsets; ``tests/sources`` has its corpus."""


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
