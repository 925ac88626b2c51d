"""A part of ``make chaos-connect``: each kind of failure once, on sources with GTIDs."""

from __future__ import annotations

import pytest

from shardmerge.local.servers.stack import LocalStack
from tests.breadth import with_further

from .chaos import Chaos, arguments, chosen, start_server


@pytest.mark.parametrize(
    ("server", "names"),
    with_further(("mariadb1011", ("swap",)), ("mysql80", ("swap", "kill-rename"))),
)
def test_the_source_goes_on_and_nothing_is_lost_doubled_or_misread(
    server: str, names: tuple[str, ...], stack: LocalStack
) -> None:
    """One source of a server goes through all of it; a case that stops it gets a new one."""
    process, port = start_server(stack, server, gtid=True)
    chaos = Chaos(stack, process, port, True, arguments(["--moment", "seen", "--bound", "120"]))
    try:
        for case in chosen(arguments(["--cases", ",".join(names)])):
            result = chaos.play(case, 1)
            assert result.is_right, result
    finally:
        chaos.close()
        stack.stop(process)
