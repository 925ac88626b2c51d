"""Expressions that an earlier version wrote, in the texts that this version writes. Pure.

A version of the grammar may write an expression otherwise than the ones before. Then a shard's
schema from before an upgrade has the earlier text, and the same column of a shard that adds it
afterwards has the new one. So the texts of a state are restated when it is read, and those of a
change when it comes. Texts that are up to date stay as they are, so no format tells which are.

A text that the servers of a target's shards store differently stays as it is everywhere. Restating
it would make shards contradict each other that have the same text now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from shardmerge.schemas.ddl.apply.stored_texts import (
    stored_schema,
    stored_text,
    texts_of,
    with_texts,
)
from shardmerge.schemas.lattice.change_effect import ChangeEffect, change_effect
from shardmerge.schemas.lattice.joined import ShardSchema
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.server_context import ServerContext
from shardmerge.schemas.model.shard_columns import Lineage
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.records.schema_changes import SchemaChange

from .shard_state import Hold, Made, Pending, ShardState
from .target_state import TargetState


@dataclass(frozen=True, slots=True)
class Servers:
    """The servers whose texts a state holds.

    Attributes:
        sources: Source → how its server reads a statement. What a source that is not among them
            wrote stays as it is.
        target: The target's; None for a target of another kind, which has the sources' texts.
    """

    sources: Mapping[str, ServerContext] = field(default_factory=dict)
    target: ServerContext | None = None


NO_SERVERS = Servers()
"""None is known: a state is read with the texts that are stored."""


@dataclass(frozen=True, slots=True)
class Restated:
    """The shards and the target's schema with this version's texts.

    Attributes:
        shards: In the given order.
        target: None when there is none.
    """

    shards: list[ShardState]
    target: ShardSchema | None


def restated(shards: list[ShardState], target: ShardSchema | None, servers: Servers) -> Restated:
    """Restate the texts of a target's state.

    Args:
        shards: Its shards, as they were stored.
        target: Its schema.
        servers: Those that wrote the texts.
    """
    contexts = servers.sources
    texts = _texts(shards, contexts)
    if target is not None:
        # A column that only the target has, or that it calls otherwise than the shards.
        used = {contexts[s.shard.source] for s in shards if s.shard.source in contexts}
        for text in texts_of(target.schema):
            texts.setdefault(text, used)
    forms = {text: {stored_text(text, each) for each in found} for text, found in texts.items()}
    now = {text: form for text, found in forms.items() if len(found) == 1 for form in found}
    if all(text == form for text, form in now.items()):
        return Restated(shards, _of_target(target, servers.target))
    known: dict[ShardSchema, ShardSchema] = {}

    def restate(schema: ShardSchema) -> ShardSchema:
        if schema not in known:
            table = with_texts(schema.schema, lambda text: now.get(text, text))
            same = table is schema.schema
            known[schema] = schema if same else ShardSchema(table, schema.ids)
        return known[schema]

    own = _of_target(restate(target) if target else None, servers.target)
    return Restated([_shard(s, restate) for s in shards], own)


def restated_change(
    state: TargetState, change: SchemaChange, context: ServerContext | None
) -> SchemaChange:
    """A change with this version's texts, whatever version of the tracker wrote it.

    A text that the state has of this shard stays as it is, see above.

    Args:
        state: Of the change's target, before it.
        change: Any.
        context: How the shard's server reads a statement; None when no source has its name.
    """
    if context is None:
        return change
    tables = [table for table in (change.before, change.after) if table is not None]
    texts = {text for table in tables for text in texts_of(table)}
    now = {text: form for text in texts if (form := stored_text(text, context)) != text}
    if not now:
        return change
    shard = state.shards.get(change.shard)
    for schema in shard.schemas if shard else ():
        for text in texts_of(schema.schema):
            now.pop(text, None)

    def restate(table: TableSchema | None) -> TableSchema | None:
        return table and with_texts(table, lambda text: now.get(text, text))

    return replace(change, before=restate(change.before), after=restate(change.after))


def _of_target(target: ShardSchema | None, server: ServerContext | None) -> ShardSchema | None:
    """The target's schema; columns and checks have the texts that its dialect writes."""
    if target is None or server is None:
        return target
    table, own = target.schema, stored_schema(target.schema, server)
    if (own.columns, own.checks) == (table.columns, table.checks):
        return target
    return ShardSchema(replace(table, columns=own.columns, checks=own.checks), target.ids)


def _texts(
    shards: Iterable[ShardState], contexts: Mapping[str, ServerContext]
) -> dict[str, set[ServerContext]]:
    """Each text of the shards' schemas, with the servers of the shards that have it."""
    sources: dict[ShardSchema, set[str]] = {}
    for shard in shards:
        for schema in shard.schemas:
            sources.setdefault(schema, set()).add(shard.shard.source)
    found: dict[str, set[ServerContext]] = {}
    for schema, names in sources.items():
        for text in texts_of(schema.schema):
            found.setdefault(text, set()).update(contexts[n] for n in names if n in contexts)
    return found


def _shard(shard: ShardState, restate: Callable[[ShardSchema], ShardSchema]) -> ShardState:
    def one(schema: ShardSchema | None) -> ShardSchema | None:
        return None if schema is None else restate(schema)

    effective, actual, hold = one(shard.effective), one(shard.actual), shard.hold
    if hold is not None:
        queue = _queue(hold, shard.actual or shard.effective, one)
        hold = replace(hold, post=one(hold.post), queue=queue)
    return replace(shard, effective=effective, actual=actual, hold=hold)


def _queue(
    hold: Hold,
    before: ShardSchema | None,
    one: Callable[[ShardSchema | None], ShardSchema | None],
) -> tuple[Pending, ...]:
    """The changes that wait for the DDL lock; ``before`` is the shard's schema before them."""
    found: list[Pending] = []
    for pending in hold.queue:
        after = pending.post
        made = pending.made
        if before is not None and after is not None:
            made = _made(made, (before, after), (one(before), one(after)))
        found.append(replace(pending, made=made, post=one(after)))
        before = after or before
    return tuple(found)


def _made(
    made: Made,
    pair: tuple[ShardSchema, ShardSchema],
    now: tuple[ShardSchema | None, ShardSchema | None],
) -> Made:
    """What a shard did, told by its schemas before and after in this version's texts."""
    before, after = now
    if before is None or after is None or (before, after) == pair:
        return made
    if made.effect is None or made.effect != _effect(*pair):
        return made
    return replace(made, effect=_effect(before, after))


def _effect(before: ShardSchema, after: ShardSchema) -> ChangeEffect | None:
    names = {column.id: column.column.name for column in before.columns}
    lineage = [Lineage(c.column.name, names.get(c.id, "")) for c in after.columns]
    return change_effect(before.schema, after.schema, lineage)
