"""The coordinator: one schema change in, exactly one decision out.

Pure: no clock, no randomness, no I/O; equal input gives equal decisions.

Theory of operation in optimistic mode (``pessimistic`` has the other one), for a change that brings
one shard from one schema to another:

1. A change that was decided before (its identity is not beyond ``seen``) decides nothing.
2. The columns after the change get their identities (``identities``).
3. If the *final* schemas have a join (after the change: post of every held shard, the effective
   schema of the others), the target moves to it, and every shard held by a conflict is released.
4. Otherwise, if the *effective* schemas have one (held shards count as before their conflicting
   change) and this shard is not held, the target moves there; held shards stay held.
5. Otherwise this shard is held at its gate: its rows wait there, its later changes are seen and
   tried by step 3, all other shards go on.

Both joins are kept by indexes (``state``), so a change costs what it touches. Columns that are new
in the target come in the order of the shard that changed, then by identity.

No state is a dead end: undoing the conflicting change makes the final schemas equal to the
effective ones, whose join exists by construction.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from shardmerge.schemas.events import Release, SchemaChange
from shardmerge.schemas.names import TargetTable
from shardmerge.schemas.render.dialect import Dialect
from shardmerge.schemas.render.mysql_dialect import MYSQL_8
from shardmerge.schemas.routing import Mode
from shardmerge.schemas.target_table import changed_comments
from shardmerge.schemas.volatile_defaults import volatile_additions

from . import pessimistic
from .answers import Step, emit, hold, left
from .identities import Assigned, assign, known_names
from .moves import Refusal, join_target, unmoved
from .state import ShardState, TargetState


def initial(target: TargetTable) -> TargetState:
    """The state of a target before its first schema change."""
    return TargetState(target)


def decide(state: TargetState, change: SchemaChange, dialect: Dialect = MYSQL_8) -> Step:
    """Fold one schema change into a target's state and answer it.

    Args:
        state: Of ``change.target``.
        change: Any change of one of the target's shards. Changes of one source come in the
            order of their identities; a repeated one is recognised.
        dialect: The target's kind and version.
    """
    place = (change.id.offset, change.id.ordinal)
    if place <= state.seen.get(change.id.source, (-1, -1)):
        return Step(state, None, None)
    seen = state.seen.set(change.id.source, place)
    state = replace(state, version=state.version + 1, seen=seen)
    if change.error:
        why = Refusal(change.error, change.hint)
        queue = pessimistic.queue_of_unknown(state, change)
        return hold(state, change, None, known_names(state), why, queue=queue)
    if change.after is None:
        if change.mode is Mode.PESSIMISTIC:
            return pessimistic.leave(state, change, dialect)
        return _leave(state, change, dialect)
    assigned = assign(state, change)
    if assigned.generations is not state.generations:
        state = replace(state, generations=assigned.generations)
    warnings = assigned.warnings
    if not change.snapshot:
        added = volatile_additions(assigned.tracked.schema, change.lineage)
        warnings = (*warnings, *(v.reason for v in added))
    assigned = replace(assigned, warnings=warnings)
    if change.mode is Mode.PESSIMISTIC:
        return pessimistic.move(state, change, assigned, dialect)
    return _move(state, change, assigned, dialect)


def _move(state: TargetState, change: SchemaChange, assigned: Assigned, dialect: Dialect) -> Step:
    tracked, names = assigned.tracked, assigned.names
    known = state.shards.get(change.shard)
    before = known.final.columns if known and known.final else ()
    comments = changed_comments(before, tracked.columns)
    to = partial(join_target, names=names, dialect=dialect, first=tracked.ids, comments=comments)
    moved = state.with_shard(ShardState(change.shard, tracked, change.position, state.version))
    answer = to(moved, moved.final)
    if not isinstance(answer, Refusal):
        opened = {shard.shard for shard in state.opened()}
        if known and known.hold:
            opened.add(change.shard)
        releases = [Release(shard, state.version) for shard in opened]
        moved = moved.with_all_released()
        return emit(moved, change, answer, tracked, releases=releases, warnings=assigned.warnings)
    refusal = answer
    if not (known and known.hold) and moved.effective is not moved.final:
        answer = to(moved, moved.effective)
        if not isinstance(answer, Refusal):
            return emit(moved, change, answer, tracked, warnings=assigned.warnings)
    return hold(state, change, tracked, names, refusal)


def _leave(state: TargetState, change: SchemaChange, dialect: Dialect) -> Step:
    """The shard is gone: the join is that of the others."""
    remaining = state.without_shard(change.shard)
    names = known_names(state)
    releases = [Release(shard.shard, state.version) for shard in remaining.opened()]
    answer = join_target(remaining, remaining.final, names, dialect=dialect)
    if not isinstance(answer, Refusal):
        remaining = remaining.with_all_released()
    else:
        releases = []
        answer = join_target(remaining, remaining.effective, names, dialect=dialect)
    if isinstance(answer, Refusal):
        answer = unmoved(state, names)
    return left(state, remaining, change, answer, releases)
