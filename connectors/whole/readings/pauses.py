"""Pauses before what failed is tried again. Pure; times are a monotonic clock's, in seconds."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

_LONGEST_S = 600.0


@dataclass(slots=True)
class Pauses:
    """One for each thing that is tried: it doubles with each failure, up to ten minutes.

    Args:
        shortest_s: The first.
    """

    shortest_s: float
    _next_s: dict[Hashable, float] = field(default_factory=dict)
    _until_s: dict[Hashable, float] = field(default_factory=dict)

    def is_over(self, what: Hashable, now_s: float) -> bool:
        """Whether it may be tried now."""
        return now_s >= self._until_s.get(what, float("-inf"))

    def failed(self, what: Hashable, now_s: float) -> None:
        """It failed now."""
        pause_s = self._next_s.get(what, self.shortest_s)
        self._until_s[what] = now_s + pause_s
        self._next_s[what] = min(2 * pause_s, _LONGEST_S)

    def succeeded(self, what: Hashable) -> None:
        """Its next failure is its first."""
        self._until_s.pop(what, None)
        self._next_s.pop(what, None)
