"""Rows of tables without a primary key: how many of each there are. Pure.

Equal rows cannot be told apart, so what is compared is how many rows have each digest. A digest
whose numbers differ is in doubt as a row with a key is (``doubts``): its key is the digest, and its
row on either side is the number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .compared_table import ComparedTable
from .doubts import Difference, DifferenceKind, Key


def total(counts: Iterable[Mapping[Key, int]]) -> dict[Key, int]:
    """The numbers of several tables together."""
    found: dict[Key, int] = {}
    for each in counts:
        for key, number in each.items():
            found[key] = found.get(key, 0) + number
    return found


def doubtful_counts(shards: Mapping[Key, int], target: Mapping[Key, int]) -> list[Key]:
    """The digests whose numbers differ."""
    keys = shards.keys() | target.keys()
    return sorted(key for key in keys if shards.get(key, 0) != target.get(key, 0))


def count_difference(table: ComparedTable, key: Key, shards: int, target: int) -> Difference | None:
    """What differs; None when the numbers are equal, or the difference is not judged."""
    judged = table.judges_missing if shards > target else table.judges_extra
    if shards == target or not judged:
        return None
    return Difference(DifferenceKind.COUNT, key, counts=(shards, target))
