"""The records that answer a schema change, and the state after it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from shardmerge.schemas.events import (
    Decision,
    JoinedSchema,
    Outcome,
    Release,
    SchemaChange,
    ShardColumn,
)
from shardmerge.schemas.joined import ShardSchema

from .moves import Joined, Refusal
from .state import Hold, Pending, ShardState, TargetState


@dataclass(frozen=True, slots=True)
class Step:
    """What one record does.

    Attributes:
        decision, joined: What to send; both None when the change was decided before.
    """

    state: TargetState
    decision: Decision | None
    joined: JoinedSchema | None


def emit(
    state: TargetState,
    change: SchemaChange,
    answer: Joined,
    tracked: ShardSchema | None,
    *,
    releases: Iterable[Release] = (),
    warnings: tuple[str, ...] = (),
) -> Step:
    """The target moves, or already is where it moves to.

    Args:
        state: With the shards as they count from now on.
        change: What is answered.
        answer: Where the target moves to.
        tracked: The shard's schema after the change; None when the shard is gone.
        releases: What opens; at most one entry per shard.
        warnings: For the operator.
    """
    state = replace(
        state,
        schema=answer.schema,
        columns=answer.columns,
        joined=answer.joined,
        names=_outside_target(state, answer.columns, answer.names),
    )
    releases = tuple(sorted(releases))
    if answer.statements:
        reason = "; ".join(dict.fromkeys(s.reason for s in answer.statements))
    else:
        reason = "the target's schema already is the join of its shards' schemas"
    if releases:
        reason += f"; released: {', '.join(str(release.shard) for release in releases)}"
    decision = replace(
        _decision(state, change, tracked),
        outcome=Outcome.EMIT if answer.statements else Outcome.NOOP,
        statements=answer.statements,
        reason=reason,
        releases=releases,
        warnings=warnings,
    )
    return Step(state, decision, _joined_record(state))


def hold(
    state: TargetState,
    change: SchemaChange,
    post: ShardSchema | None,
    names: Mapping[str, str],
    why: Refusal,
    *,
    queue: tuple[Pending, ...] = (),
    effective: ShardSchema | None = None,
    conflict: bool = True,
) -> Step:
    """The shard stands at its gate; the target stays as it is.

    Args:
        state: With the shard as it was.
        change: What is answered.
        post: The shard's schema after the change; None when it is unknown.
        names: Identity → name in the target.
        why: What people are told.
        queue: See ``Hold``.
        effective: With which schema a new shard counts; a known one counts as before.
        conflict: Whether the shards contradict each other; else the shard waits for the others.
    """
    known = state.shards.get(change.shard)
    first = known.hold if known else None
    stands = Hold(
        version=first.version if first else state.version,
        position=first.position if first else change.position,
        reason=why.reason,
        hint=why.hint,
        post=post,
        queue=queue,
    )
    effective = known.effective if known else effective
    state = state.with_shard(
        ShardState(change.shard, effective, change.position, state.version, stands)
    )
    state = replace(state, names=_outside_target(state, state.columns, names))
    decision = replace(
        _decision(state, change, post),
        outcome=Outcome.HOLD,
        reason=why.reason,
        hint=why.hint,
        conflict=why.reason if conflict and not change.error else "",
    )
    return Step(state, decision, _joined_record(state))


def left(
    state: TargetState,
    remaining: TargetState,
    change: SchemaChange,
    answer: Joined,
    releases: Iterable[Release],
) -> Step:
    """The shard is gone, and the target moves to where the others bring it.

    Args:
        state: With the shard.
        remaining: Without it.
        change: What is answered.
        answer: Where the target moves to.
        releases: What opens of the others.
    """
    warnings = [f"rows of {change.shard} stay in the target"]
    gone = state.shards.get(change.shard)
    if gone and gone.hold:
        # Its table is gone, and with it the schema that its rows waited for.
        releases = [*releases, Release(change.shard, state.version)]
        warnings.append(
            f"{change.shard} was held at {gone.hold.position}: its rows after that are passed over"
        )
    step = emit(remaining, change, answer, None, releases=releases, warnings=tuple(warnings))
    assert step.decision is not None
    return replace(step, decision=replace(step.decision, live=False))


def _outside_target(
    state: TargetState, columns: Iterable[ShardColumn], names: Mapping[str, str]
) -> dict[str, str]:
    """The names of the columns that shards have and the target, with ``columns``, has not."""
    ids = {*state.effective.ids, *state.final.ids}
    if state.heads:
        # A column can come with one change that waits for the DDL lock and go with a later one.
        ids.update(*(schema.ids for schema in state.pool.counts()))
    ids.difference_update(c.id for c in columns)
    return {column_id: names[column_id] for column_id in sorted(ids)}


def _decision(state: TargetState, change: SchemaChange, tracked: ShardSchema | None) -> Decision:
    key = tracked.schema.primary_key if tracked else None
    return Decision(
        id=change.id,
        target=state.target,
        version=state.version,
        shard=change.shard,
        position=change.position,
        outcome=Outcome.NOOP,
        columns=tracked.columns if tracked else (),
        key=key.columns if key else (),
        snapshot=change.snapshot,
        ddl=change.ddl,
        ts_ms=change.ts_ms,
    )


def _joined_record(state: TargetState) -> JoinedSchema:
    return JoinedSchema(
        target=state.target,
        version=state.version,
        columns=state.columns,
        schema=state.schema,
        shards=len(state.shards),
        held=len(state.held),
    )
