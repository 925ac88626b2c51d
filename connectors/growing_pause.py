"""The pause before what failed is tried again. Pure; times are a monotonic clock's, in seconds."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class GrowingPause:
    """A pause that doubles with each failure, up to a longest one.

    Args:
        shortest_s: The first.
        longest_s: It does not grow beyond this.
    """

    shortest_s: float
    longest_s: float
    _next_s: float = field(init=False)
    _until_s: float = field(init=False, default=float("-inf"))

    def __post_init__(self) -> None:
        self._next_s = self.shortest_s

    def begin(self, now_s: float) -> None:
        """It failed now: the pause begins, and the next one is twice as long."""
        self._until_s = now_s + self._next_s
        self._next_s = min(2 * self._next_s, self.longest_s)

    def is_over(self, now_s: float) -> bool:
        """Whether it may be tried now."""
        return now_s >= self._until_s

    def reset(self) -> None:
        """Make the next pause the shortest; a pause that has begun goes on."""
        self._next_s = self.shortest_s
