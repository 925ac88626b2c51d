"""Threads beside the driver's loop, for what first loads ask of sources and targets."""

from __future__ import annotations

import queue
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class LoadThreads:
    """Runs jobs in threads, and gives their results to the driver's thread.

    Only the driver's thread may call the methods.

    Args:
        most: How many jobs run at once; further ones wait.
    """

    def __init__(self, most: int) -> None:
        self._pool = ThreadPoolExecutor(most, "first-load")
        self._ended: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._running = 0

    @property
    def is_busy(self) -> bool:
        """Whether a job runs, or has ended and ``ended`` has not returned it yet."""
        return self._running > 0

    def begin(
        self, job: Callable[[], T], take: Callable[[T], None], failed: Callable[[Exception], None]
    ) -> None:
        """Begin a job.

        Args:
            job: Runs in a thread.
            take: The caller of ``ended`` calls it with the job's result.
            failed: Is called with the job's error instead.
        """

        def run() -> None:
            try:
                result = job()
            except Exception as error:  # the driver gets it, in its own thread
                told = error  # Python forgets ``error`` at the end of this block
                self._ended.put(lambda: failed(told))
            else:
                self._ended.put(lambda: take(result))

        self._running += 1
        self._pool.submit(run)

    def ended(self, wait_s: float) -> list[Callable[[], None]]:
        """For each job that has ended: what to call in the driver's thread, in order.

        Args:
            wait_s: Seconds to wait for a first one while a job runs.
        """
        found: list[Callable[[], None]] = []
        while self._running:
            try:
                found.append(self._ended.get(timeout=0 if found or not wait_s else wait_s))
            except queue.Empty:
                break
            self._running -= 1
        return found

    def stop(self) -> None:
        """Wait for the jobs that run; those that wait are not begun."""
        self._pool.shutdown(wait=True, cancel_futures=True)
