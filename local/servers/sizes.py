"""How large the Java servers of a local stack may grow, and how long its line may need to start."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sizes:
    """The defaults are for a few shards.

    Attributes:
        kafka_heap: Of the broker, in Java's notation.
        connect_heap: Of the Connect worker.
        ready_s: Bound, in seconds, of the wait until every part works.
    """

    kafka_heap: str = "512m"
    connect_heap: str = "768m"
    ready_s: float = 180.0


FEW_SHARDS = Sizes()
"""The defaults."""
