"""How many shards have what: multisets as values that share their structure.

A changed copy costs the logarithm of the size, in time and in memory. Iteration has no order that
means anything: whoever needs one sorts.
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
        plus: Likewise; one that is in both stays as it is.
        times: How many shards change alike.
    """
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
