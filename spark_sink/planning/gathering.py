"""How long rows gather before the next batch. Pure.

Few rows are applied as they come. Many would be applied by a few hundred, as soon as they are
there, and the batches' fixed costs would take all the time of a core that connectors or the target
may need. So rows that come quickly gather for a moment: a batch of thousands costs little more than
one of a hundred.
"""

from __future__ import annotations

MANY = 200
"""Records of a batch from which on others are to be expected soon."""
_SHARE = 4
"""How many times as long as the batch took; so it takes a fifth of a core."""


def gathering_s(records: int, seconds: float, most_s: float) -> float:
    """Seconds that rows gather after a batch.

    Args:
        records: Of the batch.
        seconds: How long it took; meanwhile rows gathered too.
        most_s: Most time from the batch's begin to that of the next one.
    """
    if records < MANY:
        return 0.0
    return max(0.0, min(_SHARE * seconds, most_s - seconds))
