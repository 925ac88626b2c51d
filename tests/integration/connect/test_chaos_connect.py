"""A part of ``make chaos-connect``: one statement that stops Debezium, on sources with GTIDs.

Restarts right behind a statement are in ``test_connectors`` and ``test_gtid_mode``.
"""

from __future__ import annotations

import pytest

from shardmerge.connectors.local.stack import LocalStack, Ports

from .chaos import Chaos, arguments, chosen, start_server


@pytest.mark.parametrize("server", ["mysql80", "mariadb1011"])
def test_the_source_goes_on_and_nothing_is_lost_doubled_or_misread(
    server: str, stack: LocalStack
) -> None:
    process, port = start_server(stack, server, gtid=True, port=Ports.free().source1)
    chaos = Chaos(stack, process, port, True, arguments(["--moment", "seen", "--bound", "120"]))
    try:
        (case,) = chosen(arguments(["--cases", "swap"]))
        result = chaos.play(case, 1)
        assert result.is_right, result
    finally:
        chaos.close()
        stack.stop(process)
