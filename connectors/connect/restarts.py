"""When a failed connector is restarted, and when that is given up. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shardmerge.connectors.growing_pause import GrowingPause

_MAX_PAUSE_S = 60.0
_FRUITLESS = 10


class Restarts:
    """The restarts of one connector. Times are a monotonic clock's, in seconds.

    Args:
        shortest_s: The first pause before a repeated restart; it doubles, up to a minute.

    Attributes:
        fruitless: Restarts after which it failed with the same reason at the same place.
    """

    def __init__(self, shortest_s: float) -> None:
        self._pause = GrowingPause(shortest_s, _MAX_PAUSE_S)
        self._failure: tuple[str, Mapping[str, Any] | None] | None = None
        self._given_up = False
        self.fruitless = 0

    def runs(self, now_s: float) -> None:
        """It runs: the pause is reset once it has run for a whole pause after the restart."""
        if self._pause.is_over(now_s):
            self._pause.reset()

    def is_due(self, now_s: float) -> bool:
        """Whether the pause after the last restart is over."""
        return self._pause.is_over(now_s)

    def helps(self, reason: str, offset: Mapping[str, Any] | None) -> bool:
        """Whether another restart can help it.

        Args:
            reason: Why it failed.
            offset: The connector's, where it failed. If it has moved, restarts count anew.
        """
        failure = (reason, offset)
        if failure != self._failure:
            self._failure, self.fruitless, self._given_up = failure, 0, False
        return self.fruitless < _FRUITLESS

    def gives_up(self) -> bool:
        """Whether to say that restarts are given up: True once for each failure."""
        said, self._given_up = self._given_up, True
        return not said

    def begun(self, now_s: float) -> None:
        """It is restarted now."""
        self.fruitless += 1
        self._pause.begin(now_s)

    def unanswered(self, now_s: float) -> None:
        """Connect took no restart: it does not count, and the shortest pause begins."""
        self.fruitless -= 1
        self._pause.reset()
        self._pause.begin(now_s)

    def not_restarted(self) -> None:
        """It was not restarted after all: the attempt counts for the pause, not as fruitless."""
        self.fruitless -= 1
