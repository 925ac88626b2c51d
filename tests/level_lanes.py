"""How many levels of a queue run at a time: fewer for a time. Standard library only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition


class Lanes:
    """Lets so many in at a time.

    Args:
        count: How many.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._taken = 0
        self._changed = Condition()

    @contextmanager
    def one(self) -> Iterator[None]:
        """Wait for a free lane, and have it meanwhile."""
        with self._changed:
            self._changed.wait_for(lambda: self._taken < self._count)
            self._taken += 1
        try:
            yield
        finally:
            with self._changed:
                self._taken -= 1
                self._changed.notify_all()

    def narrow(self) -> None:
        """Close one lane: the next one that is left gets nobody in."""
        with self._changed:
            self._count -= 1

    def widen(self) -> None:
        """Open one lane more."""
        with self._changed:
            self._count += 1
            self._changed.notify_all()
