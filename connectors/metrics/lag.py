"""For how long the oldest row that is not applied has been waiting, told from offsets alone. Pure.

Each time the end of a shard's rows grows, the end and the time are kept as a mark. A mark goes when
everything below it is applied. The oldest mark that is left tells the age of the oldest row.
"""

from __future__ import annotations

from collections.abc import Hashable

MARKS = 16
"""Most marks of one shard; above that every second one goes, but never the oldest."""


class Lags:
    """The marks of each shard that has rows left."""

    def __init__(self) -> None:
        self._marks: dict[Hashable, list[tuple[int, float]]] = {}

    def take(self, key: Hashable, applied: int, left: int, now_s: float) -> None:
        """Take a reading of one shard.

        Args:
            key: Of the shard.
            applied: Offset up to which its rows are applied.
            left: How many offsets are left from there on.
            now_s: Time of the reading, in seconds.
        """
        end = applied + left
        marks = [mark for mark in self._marks.get(key, ()) if applied < mark[0] <= end]
        if left and (not marks or end > marks[-1][0]):
            marks.append((end, now_s))
            if len(marks) > MARKS:
                del marks[1:-1:2]
        if marks:
            self._marks[key] = marks
        else:
            self._marks.pop(key, None)

    def oldest(self) -> float | None:
        """When the oldest mark of all shards was made; None when no shard has rows left."""
        return min((marks[0][1] for marks in self._marks.values()), default=None)

    def seconds(self, key: Hashable, now_s: float) -> float:
        """Age of the shard's oldest row that is not applied; 0 when none is left."""
        marks = self._marks.get(key)
        return max(0.0, now_s - marks[0][1]) if marks else 0.0
