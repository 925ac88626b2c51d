"""Commands that are killed in the middle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence

from shardmerge.spark_sink.process.failpoints import SETTING

Acts = Mapping[str, Callable[[], None]]
"""Part of a line that a command writes → what to do then."""


def kill_when_told(words: Sequence[str], text: str) -> None:
    """Kill a call of ``shardmerge`` with SIGKILL when it writes a line with a text.

    It may have begun the next step by then; ``kill_at_place`` is exact.

    Args:
        words: The call, without its first word.
        text: Part of the line, on standard output or standard error.
    """

    def is_last(line: str, running: subprocess.Popen[str]) -> bool:
        if text in line:
            running.send_signal(signal.SIGKILL)
        return text in line

    _killed(words, {}, is_last)


def kill_at_place(words: Sequence[str], place: str, acts: Acts | None = None) -> None:
    """Call ``shardmerge``, which kills itself at a place.

    Args:
        words: The call, without its first word.
        place: The value of the failpoint.
        acts: What to do meanwhile.
    """

    def act(line: str, _: subprocess.Popen[str]) -> bool:
        for part, todo in (acts or {}).items():
            if part in line:
                todo()
        return False

    _killed(words, {SETTING: place}, act)


def _killed(
    words: Sequence[str],
    more: Mapping[str, str],
    take: Callable[[str, subprocess.Popen[str]], bool],
) -> None:
    """The call, whose lines are taken until ``take`` says that one is the last to look at."""
    told = []
    with subprocess.Popen(
        [sys.executable, "-m", "shardmerge.cli.main", *words],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "PYTHONSAFEPATH": "1", **more},
    ) as running:  # fmt: skip
        assert running.stdout is not None
        for line in running.stdout:
            told.append(line)
            if take(line, running):
                break
    assert running.returncode == -signal.SIGKILL, "".join(told)
