"""The DDL lock of a target: a change waits until every live shard has made it. Pure.

Theory of operation, for a change that brings one shard from one schema to another:

1. A change that does not alter what the shard brings into the join (a comment, the place of a
   column) needs no lock.
2. Otherwise it is appended to the shard's queue, and the shard is held at the gate of its first
   change there. A change that brings the shard back to a schema in the queue removes
   the later changes from the queue: a shard that undoes its change leaves the lock.
3. When the first changes of all shards are the same (``ddl_lock``), the lock is complete: the
   change is executed once on the target, and its gates open; later changes of a queue stay. A
   shard that already has the change, because an operator executed it or because the shard arrived
   with it, has made it too.
4. When all shards' final schemas are equal, it does not matter how they got there: everything is
   executed at once. So shards that made the same changes in another order, or split into other
   statements, are not stuck; until then the difference is reported as a conflict.

A hold stops rows only: a shard's later changes are seen while it is held. A shard can
arrive while changes wait for the lock, and already have the schema after some of them. It counts as
having made these. A shard that leaves is not waited for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from shardmerge.agents.coordination.rows.column_replacement import Renewals, renewals
from shardmerge.agents.coordination.state.shard_state import Made, Pending, ShardState
from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.schemas.lattice.joined import Conflict, ShardSchema
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.records.decisions import Release
from shardmerge.schemas.records.schema_changes import SchemaChange
from shardmerge.schemas.target.dialects.dialect import Dialect
from shardmerge.schemas.target.target_table import changed_comments

from .ddl_lock import complete, having_made, heads
from .decision_records import Step, emit, hold
from .identities import Assigned, known_names
from .lock_queue import is_same_table, pending_change, queue_after
from .target_moves import (
    NO_COMMENTS,
    Refusal,
    Settled,
    as_all_call_them,
    comments_between,
    effective_schemas,
    join_target,
    unmoved,
)


def move(state: TargetState, change: SchemaChange, assigned: Assigned, dialect: Dialect) -> Step:
    """Fold a change after which the shard's schema is known."""
    known = state.shards.get(change.shard)
    if known is None or known.effective is None:
        return _arrive(state, change, assigned, dialect)
    tracked = assigned.tracked
    renewed = renewals(state, change, tracked)
    names = _not_renamed(state, assigned)
    queue = queue_after(known, change, tracked, state.version)
    if not queue and not known.hold:
        before = known.real.columns if known.real else ()
        moved = state.with_shard(state.after(change.shard, change.position, tracked))
        answer = join_target(
            moved,
            moved.effective,
            names,
            dialect=dialect,
            first=tracked.ids,
            comments=changed_comments(before, tracked.columns),
            renewals=renewed,
        )
        if isinstance(answer, Refusal):
            queue = (pending_change(known, change, tracked, state.version),)
            return hold(state, change, tracked, names, answer, queue=queue)
        return emit(moved, change, answer, tracked, warnings=assigned.warnings(answer.names))
    if queue:
        # The hold's reason is written when it is known that the shard stays held.
        held = hold(
            state, change, tracked, names, Refusal("", "", code="SM-1213"), queue=queue
        ).state
        done = _furthest(held, names, dialect, tracked, renewed)
        if isinstance(done, Refusal) or done is None or done.state.shards[change.shard].hold:
            refused = done if isinstance(done, Refusal) else None
            why, conflict = _why(held, change.shard, refused)
            return hold(state, change, tracked, names, why, queue=queue, conflict=conflict)
    else:
        moved = state.with_shard(state.after(change.shard, change.position, tracked))
        own = comments_between(state, moved, [change.shard])
        found = _furthest(moved, names, dialect, tracked, renewed, comments=own)
        done = found if isinstance(found, Settled) else Settled(moved, unmoved(moved, names), {})
    return _executed(known, change, assigned, done)


def settle(
    state: TargetState,
    names: Mapping[str, str],
    dialect: Dialect,
    comments: Mapping[str, str],
) -> Settled | Refusal:
    """See ``settling.settle``."""
    renewed = Renewals.of(state)
    found = _furthest(state, names, dialect, None, renewed, comments=comments)
    if isinstance(found, Settled):
        return found
    admitted, releases = _admitted(state, {}, state.version)
    if releases:
        called = as_all_call_them(effective_schemas(admitted), names)
        answer = join_target(
            admitted, admitted.effective, called, dialect=dialect,
            comments={**comments, **comments_between(state, admitted, releases)},
            renewals=renewed,
        )  # fmt: skip
        if not isinstance(answer, Refusal):
            return Settled(admitted, answer, releases)
    answer = join_target(state, state.effective, names, dialect=dialect, comments=comments)
    return answer if isinstance(answer, Refusal) else Settled(state, answer, {})


def _arrive(state: TargetState, change: SchemaChange, assigned: Assigned, dialect: Dialect) -> Step:
    """A shard that does not count yet: it is new, or it came in conflict."""
    tracked = assigned.tracked
    names = _not_renamed(state, assigned)
    known = state.shards.get(change.shard)
    other = _ahead(state, change.shard, tracked)
    if other is not None:
        depth = next(
            i for i, p in enumerate(_queued(other)) if p.post and is_same_table(p.post, tracked)
        )
        # The other shard's gates are none of this one, and their positions are of another source.
        before = [replace(p, version=0, position=change.position) for p in _queued(other)[:depth]]
        last = replace(
            _queued(other)[depth], post=tracked, version=state.version, position=change.position
        )
        queue = (*before, last)
        held = hold(
            state, change, tracked, names, Refusal("", "", code="SM-1213"), queue=queue, like=other
        )
        done = _furthest(held.state, names, dialect, tracked, renewals(state, change, tracked))
        if isinstance(done, Settled) and not done.state.shards[change.shard].hold:
            return _executed(known, change, assigned, done)
        why, conflict = _why(held.state, change.shard, None)
        return hold(state, change, tracked, names, why, queue=queue, like=other, conflict=conflict)
    moved = state.with_shard(state.after(change.shard, change.position, tracked))
    if state.heads:
        # With this shard the lock may be complete, or all final schemas may be equal.
        own = comments_between(state, moved, [change.shard])
        renewed = renewals(state, change, tracked)
        done = _furthest(moved, names, dialect, tracked, renewed, comments=own)
        if isinstance(done, Settled):
            return _executed(known, change, assigned, done)
    answer = join_target(
        moved, moved.effective, names, dialect=dialect, first=tracked.ids,
        comments=comments_between(state, moved, [change.shard]),
    )  # fmt: skip
    if isinstance(answer, Refusal):
        return hold(state, change, tracked, names, answer)
    opened = [Release(change.shard, state.version)] if known and known.hold else []
    return emit(
        moved, change, answer, tracked, releases=opened, warnings=assigned.warnings(answer.names)
    )


def _executed(
    known: ShardState | None, change: SchemaChange, assigned: Assigned, done: Settled
) -> Step:
    """The answer to a change that leaves its shard not held; ``known`` is the shard before it."""
    opened = [
        Release(shard, through) for shard, through in done.releases.items() if shard != change.shard
    ]
    if known and known.hold:
        opened.append(Release(change.shard, done.state.version))
    return emit(
        done.state,
        change,
        done.answer,
        assigned.tracked,
        releases=opened,
        warnings=assigned.warnings(done.answer.names),
    )


def _ahead(state: TargetState, shard: ShardId, tracked: ShardSchema) -> ShardState | None:
    """Another shard that waits for the lock and has this schema in its queue; None without one.

    Also None when another shard counts with this schema, since no waiting change leads to it then.
    """
    if not state.heads:
        return None
    others = [state.shards[name] for name in sorted(state.shards) if name != shard]
    if any(s.effective is not None and is_same_table(s.effective, tracked) for s in others):
        return None
    for other in others:
        if any(p.post is not None and is_same_table(p.post, tracked) for p in _queued(other)):
            return other
    return None


def _queued(shard: ShardState) -> tuple[Pending, ...]:
    return shard.hold.queue if shard.hold else ()


def _furthest(
    state: TargetState,
    names: Mapping[str, str],
    dialect: Dialect,
    tracked: ShardSchema | None,
    renewed: Renewals,
    *,
    comments: Mapping[str, str] = NO_COMMENTS,
) -> Settled | Refusal | None:
    """The furthest state to which the lock lets the target move.

    Args:
        state: With the shards as they are before anything that waits is executed.
        names: Identity → name in the target.
        dialect: The target's kind and version.
        tracked: The schema of the shard that changed; its order of columns is taken over.
        renewed: Columns that shards dropped and added again.
        comments: Those that have been set already, by identity.

    Returns:
        None when nothing that waits can be executed; the reason when the lock is complete, but
        the target cannot be brought there.
    """
    first = tracked.ids if tracked else ()
    refusal: Refusal | None = None
    for candidate, releases in reversed(list(_candidates(state))):
        called = as_all_call_them(effective_schemas(candidate), names)
        answer = join_target(
            candidate,
            candidate.effective,
            called,
            dialect=dialect,
            first=first,
            comments={**comments, **comments_between(state, candidate, releases)},
            renewals=renewed,
        )
        if not isinstance(answer, Refusal):
            return Settled(candidate, answer, releases)
        refusal = refusal or answer
    return refusal


def _candidates(state: TargetState) -> Iterator[tuple[TargetState, dict[ShardId, int]]]:
    """The states after one complete change of all shards, after two, …; the furthest one last."""
    releases: dict[ShardId, int] = {}
    version = state.version
    while (head := complete(state)) is not None:
        # Only now: it costs a look at every held shard.
        waiting = [s for name in sorted(state.held) if (s := state.shards[name]).head in head.ways]
        if any(_queued(s)[0].post is None for s in waiting):
            break
        for shard in waiting:
            state = state.with_shard(shard.popped)
            if opens := _queued(shard)[0].version:
                releases[shard.shard] = opens
        yield _admitted(state, dict(releases), version)
    if state.heads and _all_same(state):
        for shard in state.opened():
            state = state.with_shard(shard.released)
            releases[shard.shard] = version
        yield state, dict(releases)


def _admitted(
    state: TargetState, releases: dict[ShardId, int], version: int
) -> tuple[TargetState, dict[ShardId, int]]:
    """The state in which shards that arrived in conflict count if they fit now."""
    for shard in state.opened():
        if shard.effective is None:
            with_it = state.with_shard(shard.released)
            names = {i: i for i in with_it.effective.ids}
            if not isinstance(with_it.effective.join(names, types=state.type_rules), Conflict):
                state = with_it
                releases[shard.shard] = version
    return state, releases


def _all_same(state: TargetState) -> bool:
    one, *rest = state.finals
    return all(is_same_table(one, other) for other in rest)


def _not_renamed(state: TargetState, assigned: Assigned) -> dict[str, str]:
    """Identity → name; a column of the target keeps its name until a change is executed."""
    return {**assigned.names, **known_names(state)}


def _why(state: TargetState, shard: ShardId, refusal: Refusal | None) -> tuple[Refusal, bool]:
    """Why a shard stays held, and whether the shards contradict each other."""
    if refusal is not None:
        return refusal, True
    held = state.shards[shard]
    head = held.head
    if head is None:
        return Refusal(
            "waits for the DDL lock", "make the same change on the other shards", code="SM-1213"
        ), False
    total = state.effective.shards
    others = heads(state)
    if len(others) > 1:
        texts = "; ".join(f"{_text(other.ways[0])} (shards: {other.shards})" for other in others)
        return (
            Refusal(
                f"the shards of {state.target} do not make the same changes in the same order: "
                f"{texts}",
                "make the same change on every shard, or undo it where it differs: when all "
                "shards have the same schema everything is executed",
                code="SM-1214",
            ),
            True,
        )
    behind = ""
    if held.hold and len(held.hold.queue) > 1:
        behind = f"; behind it here: {_text(held.hold.queue[-1].made)}"
    return (
        Refusal(
            f"waits for the DDL lock of {state.target}: {_text(head)} is made on "
            f"{having_made(state, others[0])} of {total} shards{behind}",
            "make the same change on the other shards",
            code="SM-1213",
        ),
        False,
    )


def _text(made: Made) -> str:
    return ", ".join(made.actions)
