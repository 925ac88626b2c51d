"""The sink's waits for Kafka: while nothing arrives, the sink does not poll.

Theory of operation. The tail goes to sleep when the sink has nothing to do, and the tail has read
everything and has got no record for two seconds. Then ``Arrivals`` ends the wait. A record of a
tailed topic wakes the tail; a row does not. The tail also wakes every few seconds by itself. So an
arrival that ``Arrivals`` misses costs time and nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet

from shardmerge.connectors.event_log import logger
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka.windows.window import Kept

from .arrivals import Arrivals
from .topic_tail import TopicTail

log = logger(__name__)

_SHORT_S = 0.05
"""Longest wait, in seconds, while an arrival may fail to end the wait."""
_LACKING_S = 0.25
"""Longest wait, in seconds, for the first rows of topics that do not exist yet."""
_AWAKE_S = 2.0
"""Seconds for which the tail stays awake after a record. A schema change has several records, and
waking the tail for each of them would take some milliseconds."""
_LOOK_S = 5.0
"""Seconds after which a sleeping tail wakes and reads, even if nothing arrived."""
_TELLING_S = 0.2
"""If nothing ends a wait of at least this many seconds, ``Arrivals`` has seen nothing arrive. Rows
that the sink then finds are rows that ``Arrivals`` missed."""
_MISSES = 3
"""After so many waits in a row in which it missed rows, ``Arrivals`` gets a new consumer."""


_LOUD_S = 5.0
"""Seconds that rows may wait before the log says for what."""


class LongWaits:
    """Logs what rows wait for when that takes long."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def look(self, lacking: Mapping[str, str], missing: Callable[[], Mapping[str, object]]) -> None:
        """Take whose rows wait now.

        Args:
            lacking: Whose rows wait → for what; "" if ``missing`` says it.
            missing: For what the others wait. It is asked only when the log tells it.
        """
        now = time.monotonic()
        self._since = {who: at for who, at in self._since.items() if who in lacking}
        for who, what in lacking.items():
            if now - self._since.setdefault(who, now) >= _LOUD_S:
                log.warning("rows_delayed", rows_of=who, reason=what or missing().get(who))
                self._since[who] = now


class Waits:
    """Waits until ``Arrivals`` sees a record, or a tail reads one.

    Args:
        clock: Monotonic seconds.

    Attributes:
        is_over_early: Whether an arrival ended the last wait.
        saw_nothing: Whether any row or decision would have ended the last wait, and none did.
        rows_of: The row partitions in which the last wait saw records → the offset behind the last
            of them; 0 after an error or in a backlog.
        seen: Those of them whose records the wait has as a whole → the records.
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
        self.is_over_early = self.saw_nothing = False
        self.rows_of: Mapping[Partition, int] = {}
        self.seen: Mapping[Partition, Kept] = {}

    def wait(self, timeout_s: float, ends: Mapping[Partition, int] | None, *, lacks: bool) -> float:
        """Wait until something arrives, if the tail sleeps or can sleep.

        Args:
            timeout_s: Longest wait, in seconds.
            ends: Whole row partition → the offset up to which the sink knows its rows, if the sink
                has nothing to do. Then rows end the wait, too. None: the sink has rows to apply,
                and only records of tailed topics end the wait.
            lacks: Whether some row topics do not exist yet. ``Arrivals`` cannot see their first
                rows, so the wait is short.

        Returns:
            Seconds for which the tail itself may wait for a record afterwards.
        """
        self._was_told_nothing = self.is_over_early = self.saw_nothing = False
        self.rows_of, self.seen = {}, {}
        complete = self._tail.is_asleep
        if ends is not None and (places := self._tail.places()) is not None:
            own = {Partition(topic, 0): place for topic, place in places.items()}
            complete = self._arrivals.follow(ends, own)
            if not complete:
                timeout_s = min(timeout_s, _SHORT_S)
            elif lacks:
                timeout_s = min(timeout_s, _LACKING_S)
            self._was_told_nothing = complete and timeout_s >= _TELLING_S
            if complete and not self._tail.is_asleep and self._tail.silent_s >= _AWAKE_S:
                self._tail.sleep()
                self._look_at = self._clock() + _LOOK_S
        if not complete and not self._tail.is_asleep:
            return timeout_s if ends is None else min(timeout_s, _SHORT_S)
        until = self._clock() + timeout_s
        is_wanted = self._arrivals.wait(timeout_s, rows=ends is not None)
        self.rows_of, self.seen = self._arrivals.rows_of, self._arrivals.seen
        now = self._clock()
        # librdkafka counts milliseconds: a wait in vain may end a part of one before its bound.
        saw_any = is_wanted or bool(self.rows_of)
        self.is_over_early = saw_any and now < until
        self._was_told_nothing &= not self.is_over_early
        self.saw_nothing = complete and ends is not None and not saw_any
        if self._tail.is_asleep and (is_wanted or now >= self._look_at):
            self._tail.wake()
            is_wanted = True
        return _SHORT_S if is_wanted else 0.0

    def follow_also(self, ends: Mapping[Partition, int]) -> None:
        """Follow partitions that are new; see ``Arrivals.follow_also``."""
        self._arrivals.follow_also(ends)

    def arrived(self, known: Mapping[Partition, object]) -> AbstractSet[Partition]:
        """The partitions in which records arrived since the last call, or may have arrived.

        Args:
            known: The row partitions that the sink knows.
        """
        if not self._tail.is_asleep:
            # Nobody may have waited since. While the tail sleeps, its records must end a wait.
            self._arrivals.wait(0.0, rows=True)
        return self._arrivals.take_found(known)

    def check(self, rows_came: bool) -> None:
        """Make a new consumer for ``Arrivals`` if it misses rows again and again.

        Args:
            rows_came: Whether the sink found new rows after the last wait.
        """
        if not self._was_told_nothing:
            return
        self._misses = self._misses + 1 if rows_came else 0
        if self._misses >= _MISSES:
            log.warning("kafka_client_renewed", client="arrivals")
            self._arrivals.close()
            self._misses = 0
