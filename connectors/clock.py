"""The clocks: the time of day, and the seconds that really pass."""

from __future__ import annotations

import sys
import time


def now_ms() -> int:
    """The present time, in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def boot_s() -> float:
    """Seconds since the machine started, those of a suspend included.

    For what goes on elsewhere while this machine is suspended, such as a session of Kafka or a
    token's life. ``time.monotonic`` is CLOCK_MONOTONIC on Linux, which stands still meanwhile; it
    is what other systems get here. Only differences mean something.

    Source: clock_gettime(2).
    """
    is_linux = sys.platform == "linux"
    return time.clock_gettime(time.CLOCK_BOOTTIME) if is_linux else time.monotonic()
