"""Ends a process on SIGTERM as an exit does."""

from __future__ import annotations

import os
import signal
import sys
from threading import Timer
from types import FrameType


def end_on_sigterm(within_s: float | None = None) -> None:
    """Make SIGTERM end this process like an exit, so that what it started is stopped.

    Args:
        within_s: After so many seconds the process ends whatever it still waits for, for example
            a server's answer. Only for a process that leaves nothing behind. None: it waits.
    """

    def end(number: int, frame: FrameType | None) -> None:
        if within_s is not None:
            last = Timer(within_s, os._exit, (128 + number,))
            last.daemon = True
            last.start()
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, end)
