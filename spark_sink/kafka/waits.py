"""The sink's waits for Kafka: while nothing arrives, nothing is asked.

Theory of operation. When the sink has nothing to do and its tail has read everything, the tail goes
to sleep, and ``Arrivals`` ends the wait. A row does not wake the tail; a record of a tailed topic
does. The tail is also woken now and then without a reason, so that nothing but time depends on
``Arrivals``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from shardmerge.connectors.event_log import logger
from shardmerge.spark_sink.barrier.partitions import Partition

from .arrivals import Arrivals
from .topic_tail import TopicTail

log = logger(__name__)

_SHORT_S = 0.05
"""Longest wait, in seconds, that an arrival may not end."""
_LACKING_S = 0.25
"""Longest wait, in seconds, for the first rows of topics that do not exist yet."""
_LOOK_S = 5.0
"""Seconds after which a sleeping tail reads without a reason."""
_TELLING_S = 0.2
"""A wait at least as long, in seconds, that nothing ended tells that nothing arrived."""
_MISSES = 3
"""After so many waits in a row that rows should have ended, the consumer is of no use."""


class Waits:
    """Waits for a tail, by means of arrivals.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(
        self, tail: TopicTail, arrivals: Arrivals, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._tail = tail
        self._arrivals = arrivals
        self._clock = clock
        self._look_at = 0.0
        self._was_told_nothing = False
        self._misses = 0

    def wait(self, timeout_s: float, ends: Mapping[Partition, int] | None, *, lacks: bool) -> float:
        """Wait until something arrives, if the tail sleeps or can sleep.

        Args:
            timeout_s: Longest wait, in seconds.
            ends: Whole row partition → an offset up to which everything is known, when there is
                nothing to do: rows then end the wait. None: only records of tailed topics do.
            lacks: Whether row topics do not exist yet: nobody can tell of the first rows there.

        Returns:
            How long the tail may wait for a record itself, in seconds.
        """
        self._was_told_nothing = False
        idle = ends is not None
        if ends is not None and (places := self._tail.places()) is not None:
            own = {Partition(topic, 0): place for topic, place in places.items()}
            complete = self._arrivals.follow({**ends, **own})
            if not complete:
                timeout_s = min(timeout_s, _SHORT_S)
            elif lacks:
                timeout_s = min(timeout_s, _LACKING_S)
            if complete and not self._tail.is_asleep:
                self._tail.sleep()
                self._look_at = self._clock() + _LOOK_S
            self._was_told_nothing = complete and timeout_s >= _TELLING_S
        if not self._tail.is_asleep:
            return min(timeout_s, _SHORT_S) if idle else timeout_s
        until = self._clock() + timeout_s
        is_wanted = self._arrivals.wait(timeout_s, rows=idle)
        now = self._clock()
        self._was_told_nothing &= now >= until
        if is_wanted or now >= self._look_at:
            self._tail.wake()
        return _SHORT_S

    def check(self, rows_came: bool) -> None:
        """Renew the arrivals' consumer if it did not tell of rows, again and again.

        Args:
            rows_came: Whether a look behind the last wait found new rows.
        """
        if not self._was_told_nothing:
            return
        self._misses = self._misses + 1 if rows_came else 0
        if self._misses >= _MISSES:
            log.warning("kafka_client_renewed", client="arrivals")
            self._arrivals.close()
            self._misses = 0
