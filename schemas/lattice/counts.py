"""How many shards have an item: immutable multisets that share their structure.

A changed copy costs time and memory proportional to the logarithm of the size. The order of
iteration means nothing: callers that need an order sort.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeAlias, TypeVar

from immutables import Map

T = TypeVar("T", bound=Hashable)

Counts: TypeAlias = Map[T, int]
"""Item → how many shards have it, at least one."""


def recounted(
    counts: Counts[T], minus: Iterable[T], plus: Iterable[T], times: int = 1
) -> Counts[T]:
    """The counts after ``times`` shards that had ``minus`` have ``plus``.

    Args:
        counts: Holds every item of ``minus`` at least ``times`` times.
        minus: Items without repeats.
        plus: Items without repeats; an item that is also in ``minus`` keeps its count.
        times: How many shards make this change.
    """
    if minus == plus:
        return counts
    changed = counts.mutate()
    for item in plus:
        changed[item] = changed.get(item, 0) + times
    for item in minus:
        left = changed[item] - times
        if left:
            changed[item] = left
        else:
            del changed[item]
    return changed.finish()
