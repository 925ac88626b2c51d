"""Counts wrong tokens of each address, so that nobody tries one after the other. Pure."""

from __future__ import annotations

MOST = 10
"""Wrong tokens that an address may send in one window."""
WINDOW_S = 60.0
_MOST_ADDRESSES = 10_000


class Failures:
    """The addresses that sent a wrong token lately."""

    def __init__(self) -> None:
        self._windows: dict[str, tuple[float, int]] = {}

    def note(self, address: str, now_s: float) -> None:
        """Count a wrong token.

        Args:
            address: The address that sent it.
            now_s: The present time in seconds.
        """
        begun, count = self._windows.pop(address, (now_s, 0))
        if now_s - begun >= WINDOW_S:
            begun, count = now_s, 0
        self._windows[address] = (begun, count + 1)
        while len(self._windows) > _MOST_ADDRESSES:
            del self._windows[next(iter(self._windows))]

    def are_too_many(self, address: str, now_s: float) -> bool:
        """Whether the tokens of this address do not count now, not even right ones."""
        begun, count = self._windows.get(address, (now_s, 0))
        return count >= MOST and now_s - begun < WINDOW_S
