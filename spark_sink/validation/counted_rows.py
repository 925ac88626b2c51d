"""Compares tables without a primary key: how many rows of each digest there are. Pure.

Equal rows cannot be told apart, so the number of rows with each digest is compared. A digest whose
numbers differ is in doubt, like a row with a key (``doubts``). Then the digest takes the place of
the key, and the number takes the place of the row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .compared_table import ComparedTable
from .doubts import Difference, DifferenceKind, Key


def total(counts: Iterable[Mapping[Key, int]]) -> dict[Key, int]:
    """Digest → how many rows have it in several tables together."""
    found: dict[Key, int] = {}
    for each in counts:
        for key, number in each.items():
            found[key] = found.get(key, 0) + number
    return found


def doubtful_counts(shards: Mapping[Key, int], target: Mapping[Key, int]) -> list[Key]:
    """The digests whose numbers differ."""
    keys = shards.keys() | target.keys()
    return sorted(key for key in keys if shards.get(key, 0) != target.get(key, 0))


def count_difference(
    table: ComparedTable, key: Key, shards: Sequence[Mapping[Key, int]], target: int
) -> Difference | None:
    """What differs; None when the numbers are equal, or the difference is not judged.

    Args:
        table: What is compared.
        key: A digest.
        shards: Of each shard of the table: digest → how many rows have it.
        target: How many rows of the target have it.
    """
    owners = tuple(
        (side.shard, number)
        for side, counts in zip(table.shards, shards, strict=True)
        if side.shard is not None and (number := counts.get(key, 0))
    )
    there = sum(number for _, number in owners)
    judged = table.judges_missing if there > target else table.judges_extra
    if there == target or not judged:
        return None
    return Difference(DifferenceKind.COUNT, key, counts=(there, target), owners=owners)
