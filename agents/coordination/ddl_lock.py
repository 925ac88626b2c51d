"""Which shards made the change that others wait with at a target's DDL lock. Pure.

Changes are the same when their statements are (in canonical form), or when what came of them is: so
it matters neither how a change is written, nor from which schema a shard came to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shardmerge.agents.coordination.state.shard_state import Made
from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.schemas.lattice.joined import ShardSchema


@dataclass(frozen=True, slots=True)
class Head:
    """One change with which held shards begin to wait.

    Attributes:
        ways: How they made it; the first one is what people are told.
        shards: How many wait with it.
    """

    ways: tuple[Made, ...]
    shards: int

    def is_in(self, schema: ShardSchema) -> bool:
        """Whether a shard that counts with this schema has the change already."""
        return any(way.effect is not None and way.effect.is_in(schema) for way in self.ways)


def heads(state: TargetState) -> tuple[Head, ...]:
    """The different changes with which shards begin to wait, those of most shards first."""
    return tuple(_grouped(state.heads))


def head_of(state: TargetState, made: Made) -> Head:
    """The one of them that a held shard waits with."""
    return next(head for head in heads(state) if made in head.ways)


def complete(state: TargetState) -> Head | None:
    """A change that every shard has made; None when each is waited for."""
    return next((h for h in heads(state) if having_made(state, h) == state.effective.shards), None)


def having_made(state: TargetState, head: Head) -> int:
    """How many shards have made a change: those that wait with it, and those that have it already.

    That is one whose change an operator executed, or that came with it. The cost is a look at each
    different schema; only where all other shards wait with other changes, one at each of those.
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
