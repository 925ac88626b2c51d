"""Ties a process to the one that started it: when that one ends, this process ends, too."""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1
"""Source: prctl(2): the signal is sent when the thread that started this process ends."""


def end_with(owner: int) -> None:
    """Have the kernel send TERM to this process when its owner ends, in whatever way.

    Args:
        owner: The pid of the process that started this one.

    Raises:
        SystemExit: The owner is gone already.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != owner:
        raise SystemExit(f"the process {owner} that started this part is gone")
