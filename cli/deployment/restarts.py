"""When a part that ended is started again, and when the whole is given up. Pure.

Times are a monotonic clock's, in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from shardmerge.connectors.growing_pause import GrowingPause

STEADY_S = 60.0
"""A part that ran this long did not fail at its start: it is as good as new."""
_PAUSE_S = (1.0, 30.0)
"""Shortest and longest pause before a part is started again."""


@dataclass(slots=True)
class PartRestarts:
    """The ends of one part.

    Args:
        limit: After so many ends, each within ``STEADY_S`` of its start, the part is given up.

    Attributes:
        ends: How many ends in a row there were.
    """

    limit: int
    ends: int = 0
    _pause: GrowingPause = field(default_factory=lambda: GrowingPause(*_PAUSE_S))
    _started: float = 0.0
    _waits: bool = False

    def started(self, now: float) -> None:
        """The part is started now."""
        self._started, self._waits = now, False

    def ended(self, now: float) -> bool:
        """The part does not run; returns whether that is news."""
        if self._waits:
            return False
        if now - self._started > STEADY_S:
            self.ends = 0
            self._pause.reset()
        self.ends += 1
        self._waits = True
        self._pause.begin(now)
        return True

    def is_due(self, now: float) -> bool:
        """Whether it is to be started again now."""
        return self._waits and self._pause.is_over(now)

    @property
    def gives_up(self) -> bool:
        """Whether starting it again does not help."""
        return self.ends >= self.limit
