"""Commands that are killed in the middle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence


def kill_when_told(
    words: Sequence[str], text: str, first: Mapping[str, Callable[[], None]] | None = None
) -> None:
    """Kill a call of ``shardmerge`` with SIGKILL when it writes a line with a text.

    Args:
        words: The call, without its first word.
        text: Part of the line, on standard output or standard error.
        first: Part of an earlier line → what to do then.
    """
    with subprocess.Popen(
        [sys.executable, "-m", "shardmerge.cli.main", *words],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "PYTHONSAFEPATH": "1"},
    ) as running:  # fmt: skip
        assert running.stdout is not None
        told = []
        for line in running.stdout:
            told.append(line)
            for part, act in (first or {}).items():
                if part in line:
                    act()
            if text in line:
                running.send_signal(signal.SIGKILL)
                break
        else:
            raise AssertionError(f"it never said {text!r}: {''.join(told)}")
    assert running.returncode == -signal.SIGKILL
