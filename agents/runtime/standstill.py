"""Ends a worker that stood still for so long that another one may have its partitions.

A process that is stopped, swapped out or on a paused machine sends no heartbeats. After the session
timeout its partitions go to another worker; when it wakes, it would go on in the middle of a record
that the other one performed long ago, and write older rows over newer ones. Nothing that is on the
way may still go out, so the process ends as by ``kill -9``, which is always safe (``delivery``).
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from functools import wraps
from typing import Any

from aiokafka.conn import AIOKafkaConnection

from shardmerge.connectors.clock import boot_s
from shardmerge.connectors.event_log import logger

log = logger(__name__)

TICK_S = 0.2
EXIT_CODE = 75
"""``EX_TEMPFAIL`` of sysexits.h: start it again."""


class Standstill:
    """Notices that the process stood still, by a thread that looks at the clock all the time.

    Args:
        limit_s: How long it may; see ``limit``.
        clock: Gives seconds, and goes on while the process or the machine stands still.
        end: Ends the process.
    """

    def __init__(
        self,
        limit_s: float,
        clock: Callable[[], float] = boot_s,
        end: Callable[[int], object] = os._exit,
    ) -> None:
        self._limit_s, self._clock, self._end = limit_s, clock, end
        self._seen = clock()

    def watch(self) -> None:
        """Look from now on, until the process ends."""
        self._seen = self._clock()
        threading.Thread(target=self._run, name="standstill", daemon=True).start()

    def check(self, place: str = "") -> None:
        """End the process if it stood still; called before anything is written (at a place)."""
        stood = self._clock() - self._seen
        if stood > self._limit_s:
            log.error("process_stalled", seconds=round(stood, 1), place=place)
            self._end(EXIT_CODE)

    def _run(self) -> None:
        while True:
            time.sleep(TICK_S)
            self.check()
            self._seen = self._clock()


def guard_requests(check: Callable[[str], object]) -> None:
    """Let no request leave this process unchecked.

    What was handed to the producer before the process stood still waits in its batches, and goes
    out when it wakes, before the thread may have had its turn (measured: two times in six).
    """
    send = AIOKafkaConnection.send

    @wraps(send)
    def checked(connection: AIOKafkaConnection, *arguments: Any, **options: Any) -> Any:
        check("before-request")
        return send(connection, *arguments, **options)

    AIOKafkaConnection.send = checked


def limit(session_timeout_s: float, heartbeat_interval_s: float) -> float:
    """How long a worker may stand still and be sure that it is still in its group.

    When it stops, its last heartbeat can be one interval old, and the last look at the clock one
    tick.
    """
    return session_timeout_s - heartbeat_interval_s - TICK_S
