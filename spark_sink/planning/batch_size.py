"""How many records a batch may have, so that it ends in time with rows of any size. Pure.

The cost of a batch is not known before it is read, so it is estimated from the batches before.
Batches must be short enough for statements, gates and progress to have their turn. A fixed bound
that suits large rows would make batches of small rows too short.
"""

from __future__ import annotations

_FIRST = 100_000
_LEAST = 1_000
_GROWTH = 4


class BatchSize:
    """The bound of the next batch, worked out from what the last batches took.

    Args:
        records: Most records of a batch.
        size_bytes: Most bytes of their values, approximately.
        seconds: Most seconds that a batch may take, approximately.

    Attributes:
        records: Most records of the next batch.
    """

    def __init__(self, records: int, size_bytes: int, seconds: float) -> None:
        self._most = records
        self._size_bytes = size_bytes
        self._seconds = seconds
        self.records = min(records, _FIRST)

    def took(self, records: int, size_bytes: int, seconds: float) -> None:
        """Take the records, bytes and seconds of a finished batch into account.

        A batch with few records does not show how fast many records are. So it is ignored, unless
        it was over a bound already, or more records were not allowed.
        """
        used = max(seconds / self._seconds, size_bytes / self._size_bytes)
        if records == 0 or (records < min(_LEAST, self.records) and used <= 1):
            return
        most = min(self._most, max(self.records, _LEAST) * _GROWTH)
        # The division is done only if its result is below ``most``: ``used`` can be almost 0.
        self.records = most if records >= most * used else max(1, int(records / used))
