"""The changes of a shard that wait for the target's DDL lock, in their order."""

from __future__ import annotations

import re
from functools import lru_cache

from shardmerge.agents.coordination.state.shard_state import Made, Pending, ShardState
from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.schemas.lattice.change_effect import change_effect
from shardmerge.schemas.lattice.join_index import have_one_value
from shardmerge.schemas.lattice.joined import ShardSchema
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.policies import Mode
from shardmerge.schemas.records.schema_changes import SchemaChange

_OPTION = re.compile(r"[A-Z_]+( [A-Z_]+)* = .*|FORCE|(EN|DIS)ABLE KEYS", re.DOTALL)
"""Texts of actions (``schemas.ddl.describe``) that change no column, key or check."""
_ORIGIN = re.compile(r"CREATE TABLE|RENAME (FROM|TO) .*", re.DOTALL)
"""Texts of actions that tell where a table came from, but not what changed in its schema."""

_MOST_PAIRS = 1_024
"""Pairs of schemas that are remembered as the same or not: shards have few different ones."""


def with_queues(state: TargetState) -> TargetState:
    """The state in which shards that are held by a conflict wait for the lock instead."""
    for name in sorted(state.held):
        shard = state.shards[name]
        hold = shard.hold
        if hold and hold.post and shard.effective is not None and not hold.queue:
            text = f"what {name} did before the mode changed"
            pending = Pending(Made((text,)), hold.post, shard.version, hold.position)
            state = state.with_shard(replace(shard, hold=replace(hold, queue=(pending,))))
    return state


def queue_of_unknown(state: TargetState, change: SchemaChange) -> tuple[Pending, ...]:
    """The shard's queue after a change whose effect is unknown; empty where there is no lock."""
    known = state.shards.get(change.shard)
    if known is None or known.effective is None:
        return ()
    queue = known.hold.queue if known.hold else ()
    if not queue and state.policies.mode is not Mode.PESSIMISTIC:
        return ()
    made = Made((f"unreadable: {change.id}",))
    return (*queue, Pending(made, None, state.version, change.position))


def queue_after(
    known: ShardState, change: SchemaChange, tracked: ShardSchema, version: int
) -> tuple[Pending, ...]:
    """The shard's queue after the change.

    The change takes the place of those before it whose effect is unknown.
    """
    assert known.effective is not None
    if is_same_table(known.effective, known.effective_when(tracked)):
        return ()
    queue, unknown = _without_unknown(known.hold.queue if known.hold else ())
    for index, pending in enumerate(queue):
        if pending.post is not None and is_same_table(pending.post, tracked):
            return (*queue[:index], replace(pending, post=tracked, version=version))
    last = pending_change(known, change, tracked, version)
    if unknown is not None:
        # Its own actions are not all that led to this schema.
        texts = last.made.effect.texts if last.made.effect else (_described_anew(change),)
        last = replace(last, made=Made(texts, last.made.effect), position=unknown.position)
    return (*queue, last)


def _without_unknown(queue: tuple[Pending, ...]) -> tuple[tuple[Pending, ...], Pending | None]:
    """A queue's changes of which the schema is known, and the first unknown one behind them.

    Up to version 0.1.0 an unknown change stayed in the queue when a known one came behind it. Such
    a known change tells what both did; both open their gates with it.
    """
    found: list[Pending] = []
    first: Pending | None = None
    for pending in queue:
        if pending.post is None:
            first = first or pending
        else:
            found.append(replace(pending, position=first.position) if first else pending)
            first = None
    return tuple(found), first


def pending_change(
    known: ShardState, change: SchemaChange, post: ShardSchema, version: int
) -> Pending:
    """A change of a live shard that takes the lock; ``post`` is the shard's schema after it."""
    effect = None
    if change.before is not None and known.real is not None:
        effect = change_effect(known.real.schema, post.schema, change.lineage)
    # Table options, and clauses on how to execute a statement, do not make changes different.
    actions = tuple(a for a in change.actions if not _OPTION.fullmatch(a)) or change.actions
    if not actions or any(map(_ORIGIN.fullmatch, actions)):
        actions = effect.texts if effect else (_described_anew(change),)
    return Pending(Made(actions, effect), post, version, change.position)


def _described_anew(change: SchemaChange) -> str:
    return f"described anew: {change.id}"


@lru_cache(maxsize=_MOST_PAIRS)
def is_same_table(one: ShardSchema, other: ShardSchema) -> bool:
    """Whether two schemas are the same in a join, and call their columns by the same names."""
    return _names_by_id(one) == _names_by_id(other) and have_one_value(one, other)


def _names_by_id(schema: ShardSchema) -> dict[str, str]:
    return {column_id: name for name, column_id in schema.by_name.items()}
