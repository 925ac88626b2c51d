"""Optimistic mode: every shard moves when it likes; a conflict holds the one that brought it. Pure.

Theory of operation, for a change that brings one shard from one schema to another:

1. A shard's *final* schema is its schema after all its changes, held ones included. If the final
   schemas have a join, the target moves to it, and every shard held by a conflict is released.
2. A shard's *effective* schema is the one before its conflicting change while the shard is held,
   else the same as the final one. If only the effective schemas have a join and this shard is not
   held, the target moves there; held shards stay held.
3. Otherwise this shard is held at its gate: its rows wait there, its later changes are seen and
   tried by step 1, all other shards go on.

Both joins are kept by indexes (``state``), so the cost of a change does not grow with the number of
shards. Columns that are new in the target come in the order of the shard that changed, then by
identity.

No state is a dead end: undoing the conflicting change makes the final schemas equal to the
effective ones, whose join exists by construction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial

from shardmerge.agents.coordination.rows.column_replacement import Renewals, renewals
from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.schemas.lattice.joined import ShardSchema
from shardmerge.schemas.model.policies import RenamePolicy
from shardmerge.schemas.records.decisions import Release
from shardmerge.schemas.records.schema_changes import SchemaChange
from shardmerge.schemas.target.dialects.dialect import Dialect
from shardmerge.schemas.target.target_table import changed_comments

from .decision_records import Step, emit, hold
from .identities import Assigned, known_names
from .target_moves import (
    Joined,
    Refusal,
    Settled,
    as_all_call_them,
    comments_between,
    join_target,
    names_on,
)


def move(state: TargetState, change: SchemaChange, assigned: Assigned, dialect: Dialect) -> Step:
    """Fold a change after which the shard's schema is known."""
    tracked, names = assigned.tracked, assigned.names
    known = state.shards.get(change.shard)
    before = known.real.columns if known and known.real else ()
    comments = changed_comments(before, tracked.columns)
    to = partial(
        join_target,
        dialect=dialect,
        first=tracked.ids,
        comments=comments,
        renewals=renewals(state, change, tracked),
    )
    moved = state.with_shard(state.after(change.shard, change.position, tracked))
    called = _called_alike(moved, names, tracked)

    def all_comments() -> Mapping[str, str]:
        return {**comments_between(state, moved.with_all_released(), state.held), **comments}

    answer: Joined | Refusal = (
        called
        if isinstance(called, Refusal)
        else to(moved, moved.final, called, comments=all_comments if state.held else comments)
    )
    if not isinstance(answer, Refusal):
        opened = {shard.shard for shard in state.opened()}
        if known and known.hold:
            opened.add(change.shard)
        releases = [Release(shard, state.version) for shard in opened]
        moved = moved.with_all_released()
        warnings = assigned.warnings(answer.names)
        return emit(moved, change, answer, tracked, releases=releases, warnings=warnings)
    refusal = answer
    if state.policies.renames is RenamePolicy.HOLD:
        names = {**names, **known_names(state)}
        renamed = _renamed(tracked, names)
    else:
        renamed = None
    if not ((known and known.hold) or renamed) and moved.effective is not moved.final:
        answer = to(moved, moved.effective, names)
        if not isinstance(answer, Refusal):
            return emit(moved, change, answer, tracked, warnings=assigned.warnings(answer.names))
    return hold(state, change, tracked, names, renamed or refusal)


def settle(
    state: TargetState,
    names: Mapping[str, str],
    dialect: Dialect,
    comments: Mapping[str, str],
) -> Settled | Refusal:
    """See ``settling.settle``."""
    released = state.with_all_released()
    called = _called_alike(state, names)
    answer: Joined | Refusal = (
        called
        if isinstance(called, Refusal)
        else join_target(
            state,
            state.final,
            called,
            dialect=dialect,
            comments={**comments, **comments_between(state, released, state.held)},
            renewals=Renewals.of(state),
        )
    )
    if not isinstance(answer, Refusal):
        releases = {shard.shard: state.version for shard in state.opened()}
        return Settled(released, answer, releases)
    answer = join_target(state, state.effective, names, dialect=dialect, comments=comments)
    return answer if isinstance(answer, Refusal) else Settled(state, answer, {})


def _called_alike(
    state: TargetState, names: Mapping[str, str], tracked: ShardSchema | None = None
) -> Mapping[str, str] | Refusal:
    """The columns' names when all shards are released: the names that all shards agree on.

    Under ``RenamePolicy.HOLD`` a disagreement is a refusal. Under the other policies the target's
    name stays where shards disagree. There the shards' schemas are compared only if a shard is
    held, or if the changed shard has a name of its own for a column.

    Args:
        state: With the shards as they would be.
        names: Identity → name in the target.
        tracked: The schema of the shard that changed.
    """
    if state.policies.renames is not RenamePolicy.HOLD:
        if state.held or (tracked and _renamed(tracked, names)):
            alike = as_all_call_them(state.finals, names)
            taken = Counter(name.lower() for name in alike.values())
            return {i: n if taken[n.lower()] == 1 else names[i] for i, n in alike.items()}
        return names
    found = dict(names)
    for column_id, called in sorted(names_on(state.finals).items()):
        if len({name.lower() for name in called}) > 1:
            return Refusal(
                f"shards call one column {' and '.join(map(repr, sorted(called)))}",
                "rename it on the other shards too, or back on this one",
                code="SM-1208",
            )
        found[column_id] = min(called)
    return found


def _renamed(tracked: ShardSchema, names: Mapping[str, str]) -> Refusal | None:
    """Why a shard waits, if it renamed a column before the target did; None if it did not."""
    for item in tracked.columns:
        known = names[item.id]
        if known.lower() != item.column.name.lower():
            return Refusal(
                f"this shard renames {known!r} to {item.column.name!r}, the target follows when "
                "all shards have",
                "rename it on the other shards too, or back on this one",
                code="SM-1208",
            )
    return None
