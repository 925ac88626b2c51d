"""The loop of a thread that runs beside the watchdog's own loop, and what both tell of errors."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from shardmerge.connectors.event_log import logger
from shardmerge.schemas.model.errors import ShardMergeError

log = logger(__name__)


def look_until(
    stop: threading.Event, look: Callable[[float], object], interval_s: float, watched: str
) -> None:
    """Call ``look`` again and again until ``stop`` is set, even if something does not answer.

    A defect of our own is logged with its traceback, and the loop goes on: without the thread a
    connector that it stopped would stay stopped.

    Args:
        stop: Ends the loop.
        look: Gets a monotonic clock's time, in seconds.
        interval_s: Pause before each look.
        watched: What is looked at, for the log: ``watch_failed watched=…``.
    """
    while not stop.wait(interval_s):
        try:
            look(time.monotonic())
        except Exception as error:
            tell(error, watched)


def tell(error: Exception, watched: str) -> None:
    """Log the error that is handled: a defect of our own with its traceback."""
    if isinstance(error, ShardMergeError):
        log.warning("watch_failed", watched=watched, error=error)
    else:
        log.exception("watch_broken", watched=watched)
