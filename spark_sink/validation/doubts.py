"""When a row that looks different is a difference. Pure.

Shards and target are read at different moments. A row that is on its way is in the shard and not
yet in the target. So a row that looks different is only *in doubt*. It is looked at again:

1. the shard's row is read, and then the position of the source is noted;
2. the caller waits until the target has passed that position;
3. the target's row is read, then the shard's row again.

Then the target has applied everything that led to the shard's row of step 1. If the shard's row is
the same in steps 1 and 3, the target must have that row. If it does not, there is a difference, or
the row was changed and changed back meanwhile. So a difference must be seen ``LOOKS`` times, each
time behind a new position. If the shard's row has changed between steps 1 and 3, it is looked at
again.

This module compares rows. It does not read them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeAlias

from shardmerge.schemas.model.names import ShardId

from .compared_table import ComparedTable
from .value_texts import ValueText

LOOKS = 3
"""A difference is reported when it was seen this often, each time behind a new position."""
ROUNDS = 10
"""A row that changes each time is looked at this often."""
Key: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SeenRow:
    """A row as one look saw it.

    Attributes:
        shard: None for a row of the target.
        values: A value for each of ``ComparedTable.columns``; None is NULL. Of a shard's row only
            the values that are judged count.
    """

    shard: ShardId | None
    values: tuple[bytes | None, ...]


class DifferenceKind(StrEnum):
    """How a row of the target is not what it must be."""

    MISSING = "missing"
    """A shard has it, the target does not."""
    EXTRA = "extra"
    """The target has it, no shard does."""
    DIFFERS = "differs"
    """Both have it, with other values."""
    COUNT = "count"
    """Without a primary key: the target has another number of such rows."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A row of the target that is not what it must be.

    Attributes:
        key: The row's key; without a primary key its digest.
        shard: The shard that has the row; None when no shard has it.
        columns: For ``DIFFERS``: the target's columns that differ.
        counts: For ``COUNT``: how many such rows the shards and the target have.
        owners: For ``COUNT``: the shards that have such rows, each with their number.
    """

    kind: DifferenceKind
    key: Key
    shard: ShardId | None = None
    columns: tuple[str, ...] = ()
    counts: tuple[int, int] | None = None
    owners: tuple[tuple[ShardId, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Doubt:
    """A row that looked different.

    Attributes:
        looks: How often it looked different without interruption, each time behind a new position.
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
        key: The key of all these rows.
        shards: The rows that shards have. When several shards have the key, the target must have
            one of their rows.
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
        differs: Whether the target's row differs from ``before``, and whether from ``after``.
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
    return tuple(table.columns[n] for n in differing(side.texts, shard.values, target.values))


def differing(
    texts: Sequence[ValueText | None],
    shard: Sequence[bytes | None],
    target: Sequence[bytes | None],
) -> list[int]:
    """The places of the values that differ.

    Args:
        texts: Of the shard; None where a value is not judged.
        shard: The shard's values.
        target: The target's values.
    """
    return [
        n
        for n, (text, a, b) in enumerate(zip(texts, shard, target, strict=True))
        if text is not None and a != b and not (text.is_json and _same_json(a, b))
    ]


def _same_json(a: bytes | None, b: bytes | None) -> bool:
    """Whether two JSON texts mean the same; numbers that are equal are the same."""
    if a is None or b is None:
        return False
    try:
        return _plain(json.loads(a)) == _plain(json.loads(b))
    except ValueError:
        return False


def _plain(value: object) -> object:
    """A value in a form in which true does not equal 1, as it does in Python."""
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return value


def doubtful_keys(
    shards: Mapping[Key, Sequence[object]], target: Mapping[Key, object]
) -> list[Key]:
    """The keys whose digests differ, or that only one side has.

    Args:
        shards: Key → the digests that shards have under it; None is an unknown digest.
        target: Key → the digest that the target has.
    """
    found = [
        key
        for key, digests in shards.items()
        if None in digests or len(digests) > 1 or target.get(key) != digests[0]
    ]
    return sorted({*found, *(target.keys() - shards.keys())})
