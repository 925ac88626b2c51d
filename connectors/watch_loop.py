"""The loop of a thread that runs beside the watchdog's own loop, and what both tell of errors."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

from shardmerge.connectors.event_log import logger
from shardmerge.schemas.model.errors import ShardMergeError

log = logger(__name__)
T = TypeVar("T")


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


def look_at_each(things: Iterable[T], look: Callable[[T], bool], watched: str) -> list[T]:
    """Look at each thing, even if the look at another one fails; those that count are returned.

    Args:
        things: Looked at one after the other.
        look: Whether the thing counts.
        watched: As for ``look_until``.

    Raises:
        Exception: The first error, when everything was looked at; later ones are told.
    """
    found = []
    first: Exception | None = None
    for thing in things:
        try:
            if look(thing):
                found.append(thing)
        except Exception as error:
            if first is None:
                first = error
            else:
                tell(error, watched)
    if first is not None:
        raise first
    return found


def tell(error: Exception, watched: str) -> None:
    """Log the error that is handled: a defect of our own with its traceback."""
    if isinstance(error, ShardMergeError):
        log.warning("watch_failed", watched=watched, error=error)
    else:
        log.exception("watch_broken", watched=watched)
