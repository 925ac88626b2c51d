"""When a failed connector is restarted. Pure.

After ten restarts that changed nothing it counts as given up, and people are told. Restarts go on
nevertheless, ever more rarely: when the cause is removed, neither the reason nor the place of the
failure tells it. Only a restart does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shardmerge.connectors.growing_pause import GrowingPause

_MAX_PAUSE_S = 60.0
_FRUITLESS = 10
_MAX_PAUSE_GIVEN_UP_S = 600.0


class Restarts:
    """The restarts of one connector. Times are a monotonic clock's, in seconds.

    Args:
        shortest_s: The first pause before a repeated restart; it doubles, up to a minute, and from
            the tenth fruitless restart on up to ten minutes.

    Attributes:
        fruitless: Restarts after which it failed with the same reason at the same place.
        is_given_up: Whether that has been said, and nothing has changed since.
    """

    def __init__(self, shortest_s: float) -> None:
        self._pause = GrowingPause(shortest_s, _MAX_PAUSE_S)
        self._failure: tuple[str, Mapping[str, Any] | None] | None = None
        self._begun_s = float("-inf")
        self.is_given_up = False
        self.fruitless = 0

    def runs(self, now_s: float) -> None:
        """It runs.

        The pause is reset once it has run for a whole pause after the restart. After ten minutes
        its failure is forgotten.
        """
        if self._pause.is_over(now_s):
            self._pause.reset()
        if now_s >= self._begun_s + _MAX_PAUSE_GIVEN_UP_S:
            self._forget(None)

    def is_due(self, now_s: float) -> bool:
        """Whether the pause after the last restart is over."""
        return self._pause.is_over(now_s)

    def helps(self, reason: str, offset: Mapping[str, Any] | None) -> bool:
        """Whether restarts can be expected to help; False from the tenth fruitless one on.

        Args:
            reason: Why it failed.
            offset: The connector's, where it failed. If it has moved, restarts count anew.
        """
        failure = (reason, offset)
        if failure != self._failure:
            self._forget(failure)
        return self.fruitless < _FRUITLESS

    def gives_up(self) -> bool:
        """Whether to say that restarts do not help: True once for each failure."""
        said, self.is_given_up = self.is_given_up, True
        return not said

    def begun(self, now_s: float) -> None:
        """It is restarted now."""
        self.fruitless += 1
        self._begun_s = now_s
        if self.fruitless >= _FRUITLESS:
            self._pause.longest_s = _MAX_PAUSE_GIVEN_UP_S
        self._pause.begin(now_s)

    def unanswered(self, now_s: float) -> None:
        """Connect took no restart: it does not count, and the shortest pause begins."""
        self.fruitless -= 1
        self._pause.reset()
        self._pause.begin(now_s)

    def not_restarted(self) -> None:
        """It was not restarted after all: the attempt counts for the pause, not as fruitless."""
        self.fruitless -= 1

    def _forget(self, failure: tuple[str, Mapping[str, Any] | None] | None) -> None:
        """Count anew, for another failure or none."""
        self._failure, self.fruitless = failure, 0
        if self._pause.longest_s > _MAX_PAUSE_S:
            self._pause.longest_s = _MAX_PAUSE_S
            self._pause.reset()
        self.is_given_up = False
