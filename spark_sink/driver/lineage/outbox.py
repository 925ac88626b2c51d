"""Sends lineage events in a thread beside the driver's loop, which never waits for it.

Reports wait in a queue of bounded length. When the server is away, the first event is tried again
and again, with growing pauses. When the queue is full, new reports are dropped; that is counted and
logged, and the loop is told which targets have to be described anew.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from shardmerge.connectors.event_log import logger
from shardmerge.connectors.growing_pause import GrowingPause
from shardmerge.connectors.metrics import catalog
from shardmerge.connectors.metrics.family import Sample
from shardmerge.schemas.model.names import TargetTable
from shardmerge.spark_sink.lineage.reports import Report

log = logger(__name__)

REPORTS = 1000
"""How many reports wait at most."""
_SHORTEST_S, _LONGEST_S = 1.0, 30.0
_WAKE_S = 0.2
_LOUD_S = 60.0
"""Seconds between two log lines about dropped reports."""
SENT, REFUSED, DROPPED = "sent", "refused", "dropped"


class EventRefused(Exception):
    """The server does not take the event, however often it is sent."""


class Outbox:
    """The queue and its thread.

    Args:
        events: Makes the events of a report; called in the thread.
        emit: Sends one event. It raises ``EventRefused``, or any other error when the event may be
            sent again.
        size: How many reports wait at most.
        shortest_s: The first pause after a failure, in seconds.
    """

    def __init__(
        self,
        events: Callable[[Report], Iterable[Any]],
        emit: Callable[[Any], None],
        *,
        size: int = REPORTS,
        shortest_s: float = _SHORTEST_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._events, self._emit, self._clock = events, emit, clock
        self._reports: queue.Queue[Report] = queue.Queue(size)
        self._pause = GrowingPause(shortest_s, _LONGEST_S)
        self._lock = threading.Lock()
        self._counts = Counter({SENT: 0, REFUSED: 0, DROPPED: 0})
        self._lost: set[TargetTable] = set()
        self._begun: set[str] = set()
        self._stopping = threading.Event()
        self._ends_at = float("inf")
        self._dropped = 0
        self._loud_at = float("-inf")
        self._is_away = False
        self._thread = threading.Thread(target=self._work, name="lineage", daemon=True)

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def put(self, report: Report) -> None:
        """Send a report when its turn comes; without room it is dropped. Never waits."""
        try:
            self._reports.put_nowait(report)
        except queue.Full:
            self._drop(report, "the queue is full")

    def take_lost(self) -> set[TargetTable]:
        """The targets of which a report was dropped since the last call."""
        with self._lock:
            lost, self._lost = self._lost, set()
        return lost

    def has_begun(self, run_id: str) -> bool:
        """Whether the first event of a run was sent."""
        with self._lock:
            return run_id in self._begun

    def samples(self) -> list[Sample]:
        """The metrics now; any thread may ask."""
        with self._lock:
            return [
                Sample(catalog.SINK_LINEAGE, (name,), count) for name, count in self._counts.items()
            ]

    def stop(self, wait_s: float) -> None:
        """Send what waits, for so many seconds at most, and try nothing twice. The rest is dropped.

        A server that does not answer now is not waited for.
        """
        self._ends_at = self._clock() + (0.0 if self._is_away else wait_s)
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(wait_s)
        while (report := self._next()) is not None:
            self._drop(report, "the sink ends")
        with self._lock:
            dropped = self._dropped
        if dropped:
            log.warning("lineage_dropped", reports=dropped, reason="the sink ends")

    def _next(self) -> Report | None:
        try:
            return self._reports.get_nowait()
        except queue.Empty:
            return None

    def _work(self) -> None:
        while not self._stopping.is_set() or self._clock() < self._ends_at:
            try:
                report = self._reports.get(timeout=_WAKE_S)
            except queue.Empty:
                if self._stopping.is_set():
                    return
                continue
            try:
                for event in self._events(report):
                    if not self._send(event):
                        self._drop(report, "the sink ends")
                        break
                else:
                    with self._lock:
                        self._begun.add(report.run_id)
            except Exception as error:  # lineage must not end, whatever an event is made of
                log.error("lineage_failed", target=report.target, error=error)  # noqa: TRY400
                self._drop(report, "its events cannot be made")

    def _send(self, event: Any) -> bool:
        """Send an event. False: it was given up because the sink ends."""
        while True:
            try:
                self._emit(event)
            except EventRefused as error:
                self._count(REFUSED)
                log.error("lineage_refused", error=str(error), code="SM-7112")  # noqa: TRY400
                return True
            except Exception as error:  # of whatever the transport is made: the event stays
                if self._stopping.is_set():
                    self._ends_at = float("-inf")
                    return False
                if not self._is_away:
                    log.warning("lineage_delayed", error=error)
                self._is_away = True
                self._await_turn()
            else:
                self._count(SENT)
                self._pause.reset()
                if self._is_away:
                    log.info("lineage_resumed")
                self._is_away = False
                return True

    def _await_turn(self) -> None:
        self._pause.begin(self._clock())
        while not self._pause.is_over(self._clock()) and not self._stopping.wait(_WAKE_S):
            pass

    def _count(self, outcome: str) -> None:
        with self._lock:
            self._counts[outcome] += 1

    def _drop(self, report: Report, reason: str) -> None:
        with self._lock:
            self._counts[DROPPED] += 1
            self._lost.add(report.target)
            self._dropped += 1
            dropped, now = self._dropped, self._clock()
            if now < self._loud_at or self._stopping.is_set():
                return
            self._loud_at, self._dropped = now + _LOUD_S, 0
        log.warning("lineage_dropped", reports=dropped, reason=reason)
