"""How long rows gather before the next batch. Pure.

When few rows come, they are applied at once. When many come, batches at once would have a few
hundred rows each, and their fixed costs would take a whole core that connectors or the target may
need. So rows that come quickly gather for a moment: a batch of thousands costs little more than one
of a hundred.
"""

from __future__ import annotations

MANY = 200
"""A batch with at least this many records shows that more will come soon."""
_SHARE = 4
"""Rows gather this many times as long as the batch took, so batches take a fifth of a core."""


def gathering_s(records: int, seconds: float, most_s: float) -> float:
    """Seconds that rows gather after a batch.

    Args:
        records: Number of the batch's records.
        seconds: How long the batch took; meanwhile rows gathered too.
        most_s: Most seconds from the start of the batch to the start of the next one.
    """
    if records < MANY:
        return 0.0
    return max(0.0, min(_SHARE * seconds, most_s - seconds))
