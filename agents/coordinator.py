"""The coordinator: one schema change in, exactly one decision out.

Pure: no clock, no randomness, no I/O; equal input gives equal decisions. Optimistic mode.

Theory of operation, for a change that brings one shard from one schema to another:

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

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from shardmerge.schemas.diff import CannotRender, diff
from shardmerge.schemas.events import (
    Decision,
    JoinedSchema,
    Outcome,
    SchemaChange,
    ShardColumn,
    TargetStatement,
)
from shardmerge.schemas.join_index import JoinIndex
from shardmerge.schemas.joined import Conflict, JoinedTable, ShardSchema
from shardmerge.schemas.model import TableSchema
from shardmerge.schemas.names import ShardId, TargetTable
from shardmerge.schemas.render.dialect import Dialect
from shardmerge.schemas.render.mysql_dialect import MYSQL_8
from shardmerge.schemas.target_table import changed_comments, target_schema
from shardmerge.schemas.volatile_defaults import volatile_additions

from .identities import assign, known_names
from .state import Hold, ShardState, TargetState


@dataclass(frozen=True, slots=True)
class Step:
    """What one record does.

    Attributes:
        decision, joined: What to send; both None when the change was decided before.
    """

    state: TargetState
    decision: Decision | None
    joined: JoinedSchema | None


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
        return _hold(state, change, None, known_names(state), why)
    if change.after is None:
        return _leave(state, change, dialect)
    return _move(state, change, dialect)


def _move(state: TargetState, change: SchemaChange, dialect: Dialect) -> Step:
    assigned = assign(state, change)
    tracked, names, warnings = assigned.tracked, assigned.names, assigned.warnings
    if assigned.generations is not state.generations:
        state = replace(state, generations=assigned.generations)
    if not change.snapshot:
        added = volatile_additions(tracked.schema, change.lineage)
        warnings = (*warnings, *(v.reason for v in added))
    known = state.shards.get(change.shard)
    before = known.final.columns if known and known.final else ()
    comments = changed_comments(before, tracked.columns)
    to = partial(_join, names=names, dialect=dialect, first=tracked.ids, comments=comments)
    moved = state.with_shard(ShardState(change.shard, tracked, change.position, state.version))
    answer = to(moved, moved.final)
    if not isinstance(answer, Refusal):
        opened = {shard.shard for shard in state.opened()}
        if known and known.hold:
            opened.add(change.shard)
        moved = moved.with_all_released()
        return _emit(moved, change, answer, tracked, releases=sorted(opened), warnings=warnings)
    refusal = answer
    if not (known and known.hold) and moved.effective is not moved.final:
        answer = to(moved, moved.effective)
        if not isinstance(answer, Refusal):
            return _emit(moved, change, answer, tracked, warnings=warnings)
    return _hold(state, change, tracked, names, refusal)


def _leave(state: TargetState, change: SchemaChange, dialect: Dialect) -> Step:
    """The shard is gone: the join is that of the others."""
    remaining = state.without_shard(change.shard)
    names = known_names(state)
    opened = [shard.shard for shard in remaining.opened()]
    answer = _join(remaining, remaining.final, names, dialect=dialect)
    if not isinstance(answer, Refusal):
        remaining = remaining.with_all_released()
    else:
        opened = []
        answer = _join(remaining, remaining.effective, names, dialect=dialect)
    if isinstance(answer, Refusal):
        # The others were joined together with the shard that left, so this says that the target
        # itself cannot be brought there; it stays as it is, and accepts what it accepted.
        answer = _Joined(state.schema, state.columns, (), state.joined, names)
    warnings = [f"rows of {change.shard} stay in the target"]
    left = state.shards.get(change.shard)
    if left and left.hold:
        # Its table is gone, and with it the schema that its rows waited for.
        opened = sorted([*opened, change.shard])
        warnings.append(
            f"{change.shard} was held at {left.hold.position}: its rows after that are passed over"
        )
    step = _emit(remaining, change, answer, None, releases=opened, warnings=tuple(warnings))
    assert step.decision is not None
    return replace(step, decision=replace(step.decision, live=False))


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a change cannot be brought onto the target, and what ends the hold."""

    reason: str
    hint: str


@dataclass(frozen=True, slots=True)
class _Joined:
    """Where a target moves to, and the statements that bring it there."""

    schema: TableSchema | None
    columns: tuple[ShardColumn, ...]
    statements: tuple[TargetStatement, ...]
    joined: JoinedTable | None
    names: Mapping[str, str]


def _join(
    state: TargetState,
    index: JoinIndex,
    names: Mapping[str, str],
    *,
    dialect: Dialect,
    first: Sequence[str] = (),
    comments: Mapping[str, str] | None = None,
) -> _Joined | Refusal:
    """The move from the target as it is to the join of some of its shards' schemas.

    Args:
        state: With the shards as they would be.
        index: Of the schemas that are joined: the effective or the final ones.
        names: Identity → name in the target.
        dialect: The target's kind and version.
        first: Identities whose columns come first among those that are new in the target.
        comments: Comments of columns that the change set, by identity.
    """
    if not index.shards:
        return _Joined(state.schema, state.columns, (), state.joined, names)
    ids = (*index.ids, *state.final.ids)
    if clash := _clash({i: names[i] for i in ids}):
        names = _as_shards_call_them(state, names)
        if _clash({i: names[i] for i in ids}):
            return clash
    joined = index.join(names, first)
    if isinstance(joined, Conflict):
        return Refusal(str(joined), joined.resolve)
    if (
        not comments
        and joined == state.joined
        and _default_charset(joined) == _default_charset(state.joined)
    ):
        return _Joined(state.schema, state.columns, (), state.joined, names)
    to = target_schema(
        joined, state.columns, table=state.target.table, dialect=dialect, comments=comments
    )
    statements = diff(state.schema, state.columns, to, state.target, dialect)
    if isinstance(statements, CannotRender):
        return Refusal(statements.reason, statements.hint)
    return _Joined(to.schema, to.columns, statements, joined, names)


def _default_charset(joined: JoinedTable) -> tuple[str, str]:
    return joined.charset, joined.collation


def _as_shards_call_them(state: TargetState, names: Mapping[str, str]) -> dict[str, str]:
    """``names``, but for columns that no shard calls by the name that the target has for them.

    The shard whose name the target kept has left, or calls the column otherwise by now. Looks at
    all shards; needed only where two columns would have one name.
    """
    called: dict[str, set[str]] = {}
    for shard in state.shards.values():
        for item in shard.final.columns if shard.final else ():
            called.setdefault(item.id, set()).add(item.column.name)
    return {
        column_id: name
        if name.lower() in {n.lower() for n in called.get(column_id, {name})}
        else min(called[column_id])
        for column_id, name in names.items()
    }


def _clash(names: Mapping[str, str]) -> Refusal | None:
    """Two columns of different origin that would have one name in the target."""
    taken: dict[str, str] = {}
    for column_id, name in sorted(names.items()):
        if taken.setdefault(name.lower(), column_id) != column_id:
            other = taken[name.lower()]
            return Refusal(
                f"the target would have two columns {name!r}: {other} and {column_id}",
                "rename or drop the column on the shard that added it last",
            )
    return None


def _emit(
    state: TargetState,
    change: SchemaChange,
    answer: _Joined,
    tracked: ShardSchema | None,
    *,
    releases: Iterable[ShardId] = (),
    warnings: tuple[str, ...] = (),
) -> Step:
    state = replace(
        state,
        schema=answer.schema,
        columns=answer.columns,
        joined=answer.joined,
        names=_outside_target(state, answer.columns, answer.names),
    )
    releases = tuple(releases)
    if answer.statements:
        reason = "; ".join(dict.fromkeys(s.reason for s in answer.statements))
    else:
        reason = "the target's schema already is the join of its shards' schemas"
    if releases:
        reason += f"; the conflict is over, released: {', '.join(map(str, releases))}"
    decision = replace(
        _decision(state, change, tracked),
        outcome=Outcome.EMIT if answer.statements else Outcome.NOOP,
        statements=answer.statements,
        reason=reason,
        releases=releases,
        warnings=warnings,
    )
    return Step(state, decision, _joined_record(state))


def _hold(
    state: TargetState,
    change: SchemaChange,
    post: ShardSchema | None,
    names: Mapping[str, str],
    why: Refusal,
) -> Step:
    """The shard stands at its gate; its effective schema and the target stay as they are."""
    known = state.shards.get(change.shard)
    first = known.hold if known else None
    hold = Hold(
        version=first.version if first else state.version,
        position=first.position if first else change.position,
        reason=why.reason,
        hint=why.hint,
        post=post,
    )
    effective = known.effective if known else None
    state = state.with_shard(
        ShardState(change.shard, effective, change.position, state.version, hold)
    )
    state = replace(state, names=_outside_target(state, state.columns, names))
    decision = replace(
        _decision(state, change, post),
        outcome=Outcome.HOLD,
        reason=why.reason,
        hint=why.hint,
        conflict="" if change.error else why.reason,
    )
    return Step(state, decision, _joined_record(state))


def _outside_target(
    state: TargetState, columns: Iterable[ShardColumn], names: Mapping[str, str]
) -> dict[str, str]:
    """The names of the columns that shards have and the target, with ``columns``, has not."""
    ids = {*state.effective.ids, *state.final.ids}.difference(c.id for c in columns)
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
