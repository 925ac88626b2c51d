"""How long Kafka still keeps rows that wait, by the age or the size of their topic. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a topic keeps.

    Attributes:
        age_s: Its ``retention.ms`` in seconds; None: records of any age.
        size: Its ``retention.bytes``, for each partition; None: any number.
    """

    age_s: float | None = None
    size: int | None = None

    def __bool__(self) -> bool:
        return self.age_s is not None or self.size is not None


@dataclass(frozen=True, slots=True)
class OldestRow:
    """The first record of a partition that waits, and records behind it.

    Attributes:
        came_s: When it came, in seconds since 1970.
        mean_bytes: Mean size of it and of records behind it.
        is_deleted: Whether Kafka deleted it already.
    """

    came_s: float
    mean_bytes: float
    is_deleted: bool = False


@dataclass(frozen=True, slots=True)
class RetentionLeft:
    """What is left until Kafka may delete the oldest of some rows.

    Attributes:
        deadline_s: When it may be deleted by age, in seconds since 1970; None: never.
        left_bytes: How many bytes can come until it may be deleted by size, an estimate; None: any
            number.
    """

    deadline_s: float | None
    left_bytes: float | None


def retention_left(rows: Iterable[tuple[Bounds, OldestRow, int]]) -> RetentionLeft | None:
    """The least that is left for any of these rows; None when nothing bounds them.

    Args:
        rows: Each with the bounds of its topic, and how many offsets its partition has from it on.
    """
    deadlines: list[float] = []
    lefts: list[float] = []
    for bounds, row, offsets in rows:
        if bounds.age_s is not None:
            deadlines.append(0.0 if row.is_deleted else row.came_s + bounds.age_s)
        if bounds.size is not None:
            lefts.append(0.0 if row.is_deleted else bounds.size - row.mean_bytes * offsets)
    if not deadlines and not lefts:
        return None
    return RetentionLeft(min(deadlines, default=None), min(lefts, default=None))
