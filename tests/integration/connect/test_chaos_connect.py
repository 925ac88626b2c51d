"""A part of ``make chaos-connect``: each kind of failure once, on one source with GTIDs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from shardmerge.connectors.local.stack import LocalStack, Ports

from .chaos import Chaos, arguments, chosen, start_server

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def chaos() -> Iterator[Chaos]:
    """One source that goes through all of it; a case that stops it gets a new one."""
    directory = Path(tempfile.mkdtemp(prefix="chaos-connect-", dir=ROOT / ".local"))
    stack = LocalStack(directory, Ports.free(), cache=ROOT / ".local" / "cache")
    try:
        for name in ("kafka", "connect"):
            stack.start(name)
        process, port = start_server(stack, "mysql80", gtid=True)
        options = arguments(["--moment", "seen", "--bound", "120"])
        made = Chaos(stack, process, port, True, options)
        yield made
        made.close()
    finally:
        stack.clean()


@pytest.mark.parametrize("name", ["swap", "kill-rename"])
def test_the_source_goes_on_and_nothing_is_lost_doubled_or_misread(name: str, chaos: Chaos) -> None:
    (case,) = chosen(arguments(["--cases", name]))
    result = chaos.play(case, 1)
    assert result.is_right, result
