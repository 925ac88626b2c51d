"""When a row that looks different is a difference. Pure.

Shards and target are read at different moments, and rows on their way are in one and not yet in the
other. So a row that looks different is only *in doubt*. It is looked at again:

1. the shard's row is read, and then the position of the source is noted;
2. the target is waited for, until it has passed that position;
3. the target's row is read, then the shard's row again.

The target then has applied everything that the shard's first row came from. If the shard's row is
the same before and after, the target must have that row. If it has not, that is a difference, or
the row was changed and changed back meanwhile; so it must be seen ``LOOKS`` times, each time behind
a new position. A row that differs from what it was before is moving, and is looked at again.

What a row is compared by is here; who reads it is not.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeAlias

from shardmerge.schemas.model.names import ShardId

from .compared_table import ComparedTable

LOOKS = 2
"""So often a difference is seen behind a new position before it is told."""
ROUNDS = 10
"""So often a row is looked at again that changes all the time."""
Key: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SeenRow:
    """A row as one look saw it.

    Attributes:
        shard: None for a row of the target.
        values: For each of ``ComparedTable.columns``; None is NULL. Of a shard's row only those
            that are judged count.
    """

    shard: ShardId | None
    values: tuple[bytes | None, ...]


class DifferenceKind(StrEnum):
    """How a row of the target is not what it must be."""

    MISSING = "missing"
    """A shard has it, the target has not."""
    EXTRA = "extra"
    """The target has it, no shard has."""
    DIFFERS = "differs"
    """Both have it, with other values."""
    COUNT = "count"
    """Without a primary key: the target has another number of such rows."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A row that is a difference.

    Attributes:
        key: The row's key; without a primary key its digest.
        shard: That has the row; None when none has.
        columns: The target's columns that differ, of a row that ``DIFFERS``.
        counts: Of a ``COUNT``: how many such rows the shards and the target have.
    """

    kind: DifferenceKind
    key: Key
    shard: ShardId | None = None
    columns: tuple[str, ...] = ()
    counts: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Doubt:
    """A row that looked different.

    Attributes:
        looks: How often in a row it looked different behind a new position.
        rounds: How often it was looked at.
    """

    key: Key
    looks: int = 0
    rounds: int = 0


class Verdict(StrEnum):
    """What a look at a row in doubt says."""

    EQUAL = "equal"
    AGAIN = "again"
    DIFFERENT = "different"
    UNSETTLED = "unsettled"
    """It changed each time."""


def difference_of(
    table: ComparedTable, key: Key, shards: Sequence[SeenRow], target: SeenRow | None
) -> Difference | None:
    """What differs; None when the rows are equal, or the difference is not judged.

    Args:
        table: What is compared.
        key: Of all these rows.
        shards: The rows that shards have; more than one where shards collide. Then the target must
            have one of them.
        target: The row that the target has.
    """
    if target is None:
        if not shards or not table.judges_missing:
            return None
        return Difference(DifferenceKind.MISSING, key, shards[0].shard)
    if not shards:
        return Difference(DifferenceKind.EXTRA, key) if table.judges_extra else None
    if not table.judges_values:
        return None
    found = [_differing(table, row, target) for row in shards]
    if not all(found):
        return None
    return Difference(DifferenceKind.DIFFERS, key, shards[0].shard, found[0])


def look_again(
    doubt: Doubt,
    before: Sequence[object],
    after: Sequence[object],
    differs: Sequence[bool],
) -> tuple[Verdict, Doubt]:
    """Judge one look at a row in doubt.

    Args:
        doubt: The row.
        before: The shards' rows, or their number, before the position was noted.
        after: The same after the target's row was read.
        differs: Whether the target's row differs from the one before, and from the one after.
    """
    rounds = doubt.rounds + 1
    if not all(differs):
        return Verdict.EQUAL, doubt
    if list(before) == list(after):
        seen = replace(doubt, looks=doubt.looks + 1, rounds=rounds)
        return (Verdict.DIFFERENT if seen.looks >= LOOKS else Verdict.AGAIN), seen
    moving = replace(doubt, looks=0, rounds=rounds)
    return (Verdict.UNSETTLED if rounds >= ROUNDS else Verdict.AGAIN), moving


def _differing(table: ComparedTable, shard: SeenRow, target: SeenRow) -> tuple[str, ...]:
    side = next(s for s in table.shards if s.shard == shard.shard)
    return tuple(
        name
        for name, text, a, b in zip(
            table.columns, side.texts, shard.values, target.values, strict=True
        )
        if text is not None and a != b and not (text.is_json and _same_json(a, b))
    )


def _same_json(a: bytes | None, b: bytes | None) -> bool:
    """Whether two JSON texts mean the same; numbers that are equal are the same."""
    if a is None or b is None:
        return False
    try:
        return _plain(json.loads(a)) == _plain(json.loads(b))
    except ValueError:
        return False


def _plain(value: object) -> object:
    """A value whose ``==`` keeps true and 1 apart, which Python's does not."""
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return value


def doubtful_keys(shards: dict[Key, list[object]], target: dict[Key, object]) -> list[Key]:
    """The keys whose digests differ, or that only one side has.

    Args:
        shards: Key → the digests that shards have under it; None is an unknown one.
        target: Key → the digest that the target has.
    """
    found = [
        key
        for key, digests in shards.items()
        if None in digests or len(digests) > 1 or target.get(key) != digests[0]
    ]
    return sorted({*found, *(target.keys() - shards.keys())})
