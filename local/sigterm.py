"""Ends a process on SIGTERM as an exit does."""

from __future__ import annotations

import signal
import sys
from types import FrameType


def end_on_sigterm() -> None:
    """Make SIGTERM end this process like an exit, so that what it started is stopped."""

    def end(number: int, frame: FrameType | None) -> None:
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, end)
