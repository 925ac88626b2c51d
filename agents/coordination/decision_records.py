"""The records that answer a schema change, and the state after it. Pure."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from shardmerge.agents.coordination.state.shard_state import Hold, Pending, ShardState
from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.schemas.lattice.joined import ShardSchema
from shardmerge.schemas.model.coded_text import CodedText
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.position import BEGINNING
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.records.decisions import (
    Decision,
    JoinedSchema,
    Outcome,
    Release,
    TargetStatement,
)
from shardmerge.schemas.records.operator_commands import OperatorCommand
from shardmerge.schemas.records.reloads import Reload
from shardmerge.schemas.records.schema_changes import SchemaChange

from .target_moves import Joined, Refusal, Settled, unmoved


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
    warnings: Iterable[CodedText] = (),
) -> Step:
    """Answer a change that is not held: EMIT with statements for the target, NOOP without.

    There are no statements when the target already has the joined schema, or when an operator
    disabled propagation.

    Args:
        state: With the shards as they count from now on.
        change: What is answered.
        answer: Where the target moves to.
        tracked: The shard's schema after the change; None when the shard is gone.
        releases: The gates that open; at most one entry per shard.
        warnings: For the operator.
    """
    decision = _decision(state, change, tracked)
    known = state.shards.get(change.shard)
    if known and (left_out := known.left_out):
        decision = replace(decision, columns=_without(decision.columns, left_out))
    return _moved(state, warned(decision, warnings), answer, releases)


def obeyed(
    state: TargetState,
    command: OperatorCommand,
    settled: Settled,
    *,
    pauses: tuple[ShardId, ...] = (),
    resumes: tuple[ShardId, ...] = (),
    leaves: tuple[ShardId, ...] = (),
) -> Step:
    """Answer a command that is carried out.

    Args:
        state: Before it; ``settled`` has the one after.
        command: What is answered.
        settled: Where the target moves to.
        pauses: See ``Decision``.
        resumes: Likewise.
        leaves: Likewise.
    """
    decision = replace(_answer(state, command), pauses=pauses, resumes=resumes, leaves=leaves)
    releases = [Release(shard, through) for shard, through in settled.releases.items()]
    return _moved(settled.state, decision, settled.answer, releases)


def refuse(state: TargetState, command: OperatorCommand, why: Refusal) -> Step:
    """Answer a command that cannot be carried out; nothing changes but the version."""
    decision = replace(
        _answer(state, command),
        outcome=Outcome.REFUSED,
        reason=why.reason,
        hint=why.hint,
        code=why.code,
    )
    return Step(state, decision, _joined_record(state))


def _moved(
    state: TargetState, decision: Decision, answer: Joined, releases: Iterable[Release]
) -> Step:
    warnings = answer.notes
    if not state.propagates and state.schema is not None:
        if answer.statements:
            texts = "; ".join(statement.sql for statement in answer.statements)
            text = f"propagation is disabled, so this is not done: {texts}"
            warnings += (CodedText(text, "SM-1704"),)
        answer = unmoved(state, answer.names)
    state = replace(
        state,
        schema=answer.schema,
        columns=answer.columns,
        joined=answer.joined,
        told=answer.told,
        names=_outside_target(state, answer.columns, answer.names),
    )
    releases = tuple(sorted(_with_left_out(state, release) for release in releases))
    if answer.statements:
        reason = "; ".join(dict.fromkeys(s.reason for s in answer.statements))
    elif not state.propagates:
        reason = "propagation is disabled: the target's schema stays as it is"
    else:
        reason = "the target's schema already is the join of its shards' schemas"
    if releases:
        reason += f"; released: {', '.join(str(release.shard) for release in releases)}"
    decision = replace(
        warned(decision, warnings),
        outcome=Outcome.EMIT if answer.statements else Outcome.NOOP,
        statements=answer.statements,
        reason=reason,
        releases=releases,
        reloads=tuple(Reload(name, state.shards[name].position) for name in answer.reloads),
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
    like: ShardState | None = None,
    conflict: bool = True,
) -> Step:
    """Hold the shard at the gate of its change; the target stays as it is.

    Args:
        state: With the shard as it was.
        change: What is answered.
        post: The shard's schema after the change; None when it is unknown.
        names: Identity → name in the target.
        why: What people are told.
        queue: See ``Hold``.
        like: A shard whose schema counts for the held shard from now on; None: it counts as before.
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
        code=why.code,
    )
    shard = state.after(change.shard, change.position, None, stands)
    if like is not None:
        shard = replace(shard, effective=like.effective, actual=like.actual)
    state = state.with_shard(shard)
    state = replace(state, names=_outside_target(state, state.columns, names))
    decision = replace(
        _decision(state, change, post),
        outcome=Outcome.HOLD,
        reason=why.reason,
        hint=why.hint,
        code=why.code,
        conflict=why.reason if conflict and not change.error else "",
    )
    return Step(state, decision, _joined_record(state))


def leave(state: TargetState, change: SchemaChange, settled: Settled) -> Step:
    """Answer the change by which a shard leaves; the target moves to the join of the others.

    Args:
        state: With the shard.
        change: What is answered.
        settled: Where the target moves to, and which gates of the others open.
    """
    releases = [Release(shard, through) for shard, through in settled.releases.items()]
    warnings = []
    gone = state.shards.get(change.shard)
    if gone and gone.hold:
        # Its table is gone, and with it the schema that its rows waited for.
        releases.append(Release(change.shard, state.version))
        text = (
            f"{change.shard} was held at {gone.hold.position}: its rows after that are passed over"
        )
        warnings.append(CodedText(text, "SM-1705"))
    step = emit(settled.state, change, settled.answer, None, releases=releases, warnings=warnings)
    assert step.decision is not None
    return replace(step, decision=replace(step.decision, live=False))


def with_statement(step: Step, statement: TargetStatement) -> Step:
    """The same step with one more statement, executed last."""
    decision = step.decision
    assert decision is not None
    reason = statement.reason
    if decision.outcome is Outcome.EMIT:
        reason = f"{decision.reason}; {reason}"
    decision = replace(
        decision,
        outcome=Outcome.EMIT,
        statements=(*decision.statements, statement),
        reason=reason,
    )
    return replace(step, decision=decision)


def with_warning(step: Step, warning: CodedText) -> Step:
    """The same step, with this warning before the others."""
    decision = step.decision
    assert decision is not None
    others = replace(decision, warnings=(), warning_codes=())
    return replace(step, decision=warned(others, (warning, *decision.notices)))


def warned(decision: Decision, warnings: Iterable[CodedText]) -> Decision:
    """The decision with more warnings, after the others."""
    more = tuple(warnings)
    if not more:
        return decision
    found = (*decision.notices, *more)
    return replace(
        decision,
        warnings=tuple(warning.text for warning in found),
        warning_codes=tuple(warning.code for warning in found),
    )


def _with_left_out(state: TargetState, release: Release) -> Release:
    """The release of a shard's gates, with the columns left out of the rows behind them."""
    known = state.shards.get(release.shard)
    return replace(release, left_out=tuple(sorted(known.left_out))) if known else release


def _without(columns: tuple[ShardColumn, ...], left_out: Container[str]) -> tuple[ShardColumn, ...]:
    """A shard's columns; those that are left out have no identity in the target."""
    return tuple(ShardColumn("", c.column) if c.id in left_out else c for c in columns)


def _outside_target(
    state: TargetState, columns: Iterable[ShardColumn], names: Mapping[str, str]
) -> dict[str, str]:
    """Identity → name of each column that a shard has and the target (``columns``) lacks."""
    ids = {*state.effective.ids, *state.final.ids}
    if state.heads or state.skipping:
        # One change that waits for the DDL lock can add a column and a later one drop it. A change
        # that was skipped can have added a column, too.
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


def _answer(state: TargetState, command: OperatorCommand) -> Decision:
    return Decision(
        id=command.id,
        target=state.target,
        version=state.version,
        shard=None,
        position=BEGINNING,
        outcome=Outcome.NOOP,
        ddl=str(command),
        ts_ms=command.ts_ms,
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
