"""A part of ``make chaos-connect``: each kind of failure once, on sources with GTIDs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from shardmerge.local.servers.stack import LocalStack, Ports

from .chaos import Chaos, arguments, chosen, start_server

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def line() -> Iterator[LocalStack]:
    """Kafka and Connect."""
    directory = Path(tempfile.mkdtemp(prefix="chaos-connect-", dir=ROOT / ".local"))
    stack = LocalStack(directory, Ports.free(), cache=ROOT / ".local" / "cache")
    try:
        for name in ("kafka", "connect"):
            stack.start(name)
        yield stack
    finally:
        stack.clean()


@pytest.mark.parametrize(
    ("server", "names"), [("mysql80", ("swap", "kill-rename")), ("mariadb1011", ("swap",))]
)
def test_the_source_goes_on_and_nothing_is_lost_doubled_or_misread(
    server: str, names: tuple[str, ...], line: LocalStack
) -> None:
    """One source of a server goes through all of it; a case that stops it gets a new one."""
    process, port = start_server(line, server, gtid=True)
    chaos = Chaos(line, process, port, True, arguments(["--moment", "seen", "--bound", "120"]))
    try:
        for case in chosen(arguments(["--cases", ",".join(names)])):
            result = chaos.play(case, 1)
            assert result.is_right, result
    finally:
        chaos.close()
        line.stop(process)
