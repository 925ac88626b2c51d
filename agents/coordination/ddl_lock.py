"""Counts the shards that made a change which waits for a target's DDL lock. Pure.

Two changes are the same when their canonical statements are equal, or when their effects on the
schema are equal. So neither the wording of a statement nor the schema before it matters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shardmerge.agents.coordination.state.shard_state import Made
from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.schemas.lattice.joined import ShardSchema


@dataclass(frozen=True, slots=True)
class Head:
    """A change that is the first one in the queues of held shards.

    Attributes:
        ways: The different ways in which shards made it; messages show the first one.
        shards: How many held shards have it first in their queue.
    """

    ways: tuple[Made, ...]
    shards: int

    def is_in(self, schema: ShardSchema) -> bool:
        """Whether a shard that counts with this schema has the change already."""
        return any(way.effect is not None and way.effect.is_in(schema) for way in self.ways)


def heads(state: TargetState) -> tuple[Head, ...]:
    """The different first changes in the held shards' queues, those of most shards first."""
    return tuple(_grouped(state.heads))


def head_of(state: TargetState, made: Made) -> Head:
    """The head that includes ``made``, the first change in a held shard's queue."""
    return next(head for head in heads(state) if made in head.ways)


def complete(state: TargetState) -> Head | None:
    """A head that every shard has made; None when each head still lacks a shard."""
    return next((h for h in heads(state) if having_made(state, h) == state.effective.shards), None)


def having_made(state: TargetState, head: Head) -> int:
    """How many shards have made a change: those that wait with it, and those that already have it.

    A shard already has it when an operator executed its change, or when it arrived with the change.
    The cost is one look at each different schema. Shards that wait with other changes are looked at
    one by one, but only when they could complete the count.
    """
    standing = sum(n for schema, n in state.standing.items() if head.is_in(schema))
    others = sum(state.heads.values()) - head.shards
    found = head.shards + standing
    if not others or found + others < state.effective.shards:
        return found
    waiting = (state.shards[name] for name in state.held)
    return found + sum(
        shard.effective is not None and head.is_in(shard.effective)
        for shard in waiting
        if shard.head is not None and shard.head not in head.ways
    )


def _grouped(counts: Mapping[Made, int]) -> list[Head]:
    groups: list[list[Made]] = []
    for made in sorted(counts, key=lambda way: (-counts[way], _order(way))):
        alike = [group for group in groups if any(map(made.is_like, group))]
        groups = [group for group in groups if group not in alike]
        groups.append([*(way for group in alike for way in group), made])
    found = [Head(tuple(group), sum(counts[way] for way in group)) for group in groups]
    return sorted(found, key=lambda head: (-head.shards, _order(head.ways[0])))


def _order(made: Made) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return made.actions, made.effect.texts if made.effect else ()
