"""A process that gets SIGTERM ends as by an exit, and if told so also when something is stuck."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

STUCK = """
import threading
from shardmerge.local.sigterm import end_on_sigterm
end_on_sigterm({within})
threading.Thread(target=threading.Event().wait, daemon={daemon}).start()
try:
    print("waits", flush=True)
    threading.Event().wait()
finally:
    print("cleaned up", flush=True)
"""


def ended(within: str, *, daemon: bool) -> tuple[int, str]:
    """Exit code and output of a process that got SIGTERM while it waited."""
    code = STUCK.format(within=within, daemon=daemon)
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as started:
        assert started.stdout is not None
        assert started.stdout.readline() == "waits\n"
        started.send_signal(signal.SIGTERM)
        told, _ = started.communicate(timeout=60)
        return started.returncode, told


@pytest.mark.parametrize(("within", "daemon"), [("", True), ("30.0", True), ("0.5", False)])
def test_a_process_cleans_up_and_ends(within: str, daemon: bool) -> None:
    """In the last case a thread that nobody ends would keep the process for ever."""
    assert ended(within, daemon=daemon) == (143, "cleaned up\n")
