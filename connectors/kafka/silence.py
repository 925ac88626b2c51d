"""When a client of Kafka that gets no answer is to be made anew.

librdkafka 2.13 to 2.16 can lose all brokers for good, when a broker that comes back answers with
topics but without brokers (its issue 5301). A new client begins with the bootstrap servers again.
"""

from __future__ import annotations

import time

SILENT_S = 20.0
"""Seconds of refusals after which a client is made anew."""


class Silence:
    """For how long a client has got no answer, as far as somebody asked by it."""

    def __init__(self) -> None:
        self._since: float | None = None

    def ends(self) -> None:
        """An answer came."""
        self._since = None

    def is_too_long(self) -> bool:
        """A question was refused, or not answered; returns whether to make the client anew now."""
        now = time.monotonic()
        if self._since is None:
            self._since = now
        if now - self._since < SILENT_S:
            return False
        self._since = now
        return True
