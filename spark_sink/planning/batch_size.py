"""How many records a batch may have, so that it ends in time whatever the rows are like. Pure.

What a batch is going to cost is not known before it is read; the batches before it tell. A batch
ends soon enough for statements, gates and progress to have their turn, and small rows do not pay
for what large ones need.
"""

from __future__ import annotations

_FIRST = 100_000
_LEAST = 1_000
_GROWTH = 4


class BatchSize:
    """The bound of the next batch, by what the last ones took.

    Args:
        records: Most records of a batch.
        size_bytes: Most bytes of their values, about.
        seconds: Most time that it may take, about.

    Attributes:
        records: Most records of the next batch.
    """

    def __init__(self, records: int, size_bytes: int, seconds: float) -> None:
        self._most = records
        self._size_bytes = size_bytes
        self._seconds = seconds
        self.records = min(records, _FIRST)

    def took(self, records: int, size_bytes: int, seconds: float) -> None:
        """A batch of so many records and bytes took so long.

        One with few records tells nothing of the speed of many, unless these alone were too much,
        or no more were allowed.
        """
        used = max(seconds / self._seconds, size_bytes / self._size_bytes)
        if records == 0 or (records < min(_LEAST, self.records) and used <= 1):
            return
        most = min(self._most, max(self.records, _LEAST) * _GROWTH)
        # Not divided unless the quotient is below that: ``used`` can be as good as nothing.
        self.records = most if records >= most * used else max(1, int(records / used))
