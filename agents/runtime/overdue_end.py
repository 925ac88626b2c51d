"""Ends a worker that was told to end, or failed, and does not come to its end.

Faust ends its services one after the other, and each may wait for another one without a limit.
Measured: a worker's last commit waited for a thread that had ended before, and five minutes later
the worker was still there. An end like that of ``kill -9`` is always safe (``delivery``).
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

from shardmerge.connectors.event_log import logger

from .standstill import EXIT_CODE, TICK_S

log = logger(__name__)

MOST_S = 10.0
"""How long an end may take. That is less than supervisors wait before they send KILL: 15 seconds
here, 30 in Kubernetes."""


def end_in_time(
    is_ending: Callable[[], bool],
    most_s: float = MOST_S,
    *,
    sleep: Callable[[float], object] = time.sleep,
    end: Callable[[int], object] = os._exit,
) -> None:
    """Look from now on, by a thread, and end the process when its own end takes too long.

    Args:
        is_ending: Whether the process was told to end, or has failed.
        most_s: How long the end may take, in seconds.
        sleep: Waits for so many seconds.
        end: Ends the process.
    """

    def look() -> None:
        while not is_ending():
            sleep(TICK_S)
        sleep(most_s)
        log.error("end_overdue", seconds=most_s)
        end(EXIT_CODE)

    threading.Thread(target=look, name="overdue-end", daemon=True).start()
