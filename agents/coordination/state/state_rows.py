"""A target's state ⇄ rows of the coordinator's table: the only place that knows their form.

=============================================  ==================================================
row key                                        what it holds
=============================================  ==================================================
``target/<target>``                            the header: version, counts, names, generations
``state/["<database>","<table>","target"]``    the target's schema with identities
``state/[…,"source","<source>"]``              the latest schema change of that source decided
``state/[…,"shard","<source>","<db>","<t>"]``  one live shard; its schemas by fingerprint
``state/[…,"schema","<fingerprint>"]``         one schema that some shard refers to
=============================================  ==================================================

A decision changes the header, the row of its source and the row of its shard (of more shards when
it ends a conflict), a schema's row when the first shard comes to it or the last one leaves it, and
the target's when its schema changes. So what is written does not grow with the number of shards.
The header changes with every decision: an equal header means that every other row is equal too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b

from immutables import Map

from shardmerge.schemas.effects.row_effect import RowEffect
from shardmerge.schemas.lattice.change_effect import ChangeEffect
from shardmerge.schemas.lattice.copied_columns import Copy
from shardmerge.schemas.lattice.joined import ShardSchema
from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.policies import EARLIEST_POLICIES, RoutePolicies
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.records.earlier_codes import EARLIER
from shardmerge.schemas.records.plain import dump, from_plain, load
from shardmerge.schemas.records.plain_fields import FLAT

from .restated_texts import NO_SERVERS, Servers, restated
from .shard_state import Hold, Made, Pending, ShardState
from .target_state import TargetState, assembled

FORMAT = 13
"""Version of the rows; a change of it needs a reader of the older ones."""
_READABLE = (2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)
"""Each format lacks what later ones added; its default is in ``_StoredHeader``. Format 3 added
changes that wait for a DDL lock, and what operators said; 4 origin columns; 5 renames by copying; 6
policies that an operator set; 7 the effects of changes that wait; 8 which types go together; 9
tables that are to be read as a whole, and whether rows of shards that left stay; 10 what happens to
a dropped shard's rows; 11 the codes of the reasons of holds; 12 those of the effects of changes
that wait; 13 what the route says of policies that an operator set."""

_PREFIX = b"state/"
_RESTORE = (
    "stop this worker and delete its data directory: its tables are read again from their changelog"
)


def header_key(target: TargetTable) -> bytes:
    """The row key of a target's header."""
    return f"target/{target}".encode()


def parsed_key(key: bytes) -> tuple[TargetTable, str, tuple[str, ...]] | None:
    """Target, kind and names of a row; None for a header, and for what is no part of a state."""
    if not key.startswith(_PREFIX):
        return None
    database, table, kind, *names = json.loads(key[len(_PREFIX) :])
    return TargetTable(database, table), kind, tuple(names)


def changed_rows(
    old: TargetState, new: TargetState, shards: Iterable[ShardId], sources: Iterable[str]
) -> dict[bytes, bytes | None]:
    """The rows that make the stored old state the new one; None deletes a row.

    After ``old`` was read with other texts than those that are stored, the rows of all schemas are
    written, but not of all shards. The other shards' rows still refer to the earlier schemas.

    Args:
        old: What is stored; the initial state when nothing is.
        new: Made from it.
        shards: All that changed, or more; to compare every shard would cost time for each.
        sources: Likewise.
    """
    target = new.target
    rows: dict[bytes, bytes | None] = {header_key(target): dump(_header(new))}
    schema_changed = (new.schema, new.columns) != (old.schema, old.columns)
    if new.schema is not None and (schema_changed or old.restated):
        ids = tuple(column.id for column in new.columns)
        rows[_key(target, "target")] = _schema_bytes(ShardSchema(new.schema, ids))
    for source in sources:
        rows[_key(target, "source", source)] = dump(new.seen[source])
    if old.restated:
        for schema in new.pool.counts():
            rows[_key(target, "schema", _fingerprint(schema))] = _schema_bytes(schema)
    for fingerprint in old.unused:
        rows.setdefault(_key(target, "schema", fingerprint), None)
    for name in shards:
        before, after = old.shards.get(name), new.shards.get(name)
        for schema in before.schemas if before and not old.restated else ():
            if schema not in new.pool:
                rows[_key(target, "schema", _fingerprint(schema))] = None
        for schema in after.schemas if after else ():
            if schema not in old.pool:
                rows[_key(target, "schema", _fingerprint(schema))] = _schema_bytes(schema)
        key = _key(target, "shard", name.source, name.database, name.table)
        rows[key] = dump(_stored(after)) if after else None
    return rows


def stored_state(
    target: TargetTable,
    get: Callable[[bytes], bytes | None],
    keys: Iterable[bytes],
    servers: Servers = NO_SERVERS,
) -> TargetState:
    """Read the state of a target whose header is stored.

    Args:
        target: Any.
        get: Gives a row by its key.
        keys: Of the target's other rows.
        servers: Those that wrote the texts, to restate what an earlier version stored.

    Raises:
        ContractError: The rows have another format, or do not belong together.
    """
    header = _read_header(target, get(header_key(target)) or b"")
    seen: dict[str, tuple[int, int]] = {}
    stored: dict[ShardId, _StoredShard] = {}
    fingerprints: set[str] = set()
    for key in keys:
        parsed, data = parsed_key(key), get(key)
        if parsed is None or data is None:
            continue
        _, kind, names = parsed
        if kind == "source":
            offset, ordinal = json.loads(data)
            seen[names[0]] = (offset, ordinal)
        elif kind == "shard":
            stored[ShardId(*names)] = load(_StoredShard, data)
        elif kind == "schema":
            fingerprints.add(names[0])
    if len(stored) != header.shards:
        raise ContractError(
            f"the stored state of {target} has {header.shards} shards, but there are rows of "
            f"{len(stored)}",
            hint=_RESTORE,
            code="SM-2202",
        )

    schemas: dict[str, ShardSchema] = {}

    def schema(fingerprint: str) -> ShardSchema | None:
        if fingerprint and fingerprint not in schemas:
            data = get(_key(target, "schema", fingerprint))
            if data is None:
                raise ContractError(
                    f"the stored state of {target} lacks the schema {fingerprint} that a shard "
                    "refers to",
                    hint=_RESTORE,
                    code="SM-2202",
                )
            schemas[fingerprint] = _read_schema(data)
        return schemas.get(fingerprint)

    shards = []
    for name in sorted(stored):
        row = stored[name]
        held, hold = row.hold, None
        if held is not None:
            queue = tuple(
                Pending(Made(p.actions, p.effect), schema(p.post), p.version, p.position)
                for p in held.queue
            )
            post = schema(held.post)
            hold = Hold(
                held.version,
                held.position,
                held.reason,
                held.hint,
                post,
                queue,
                held.effects,
                held.code or EARLIER,
            )
        shards.append(
            ShardState(
                name,
                schema(row.effective),
                row.position,
                row.version,
                hold,
                schema(row.actual),
                row.paused,
            )
        )
    table = get(_key(target, "target"))
    was = None if table is None else _read_schema(table)
    now = restated(shards, was, servers)
    merged = now.target
    state = TargetState(
        target=target,
        version=header.version,
        columns=merged.columns if merged else (),
        schema=merged.schema if merged else None,
        names=header.names,
        generations=header.generations,
        copies=header.copies,
        fills=header.fills,
        seen=Map(seen),
        policies=header.route_policies,
        mode_is_set=header.mode_is_set,
        set_policies=header.policies,
        propagates=header.propagates,
        awaited=header.awaited,
        departed_rows=header.departed_rows,
        told=header.told,
        route_says=header.route_says,
    )
    state = assembled(state, now.shards)
    if now.shards is shards and merged is was and fingerprints == schemas.keys():
        return state
    # Where an earlier decision has restated the schemas, their rows are there already.
    own = {_fingerprint(schema) for schema in state.pool.counts()}
    return replace(
        state,
        restated=merged != was or not own <= fingerprints,
        unused=frozenset(fingerprints - schemas.keys() - own),
    )


@dataclass(frozen=True, slots=True)
class _StoredHeader:
    """What the header's row holds.

    Attributes:
        route_policies: ``TargetState.policies``; each of them is a key of the row.
        policies: ``TargetState.set_policies``.
    """

    format: int
    version: int
    shards: int
    names: Mapping[str, str]
    generations: Mapping[str, int]
    route_policies: RoutePolicies = field(default=EARLIEST_POLICIES, metadata=FLAT)
    mode_is_set: bool = False
    propagates: bool = True
    fills: Mapping[str, str] = field(default_factory=dict)
    told: tuple[str, ...] = ()
    copies: tuple[Copy, ...] = ()
    policies: Mapping[str, str] = field(default_factory=dict)
    awaited: tuple[ShardId, ...] = ()
    departed_rows: bool = True
    route_says: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _StoredPending:
    actions: tuple[str, ...]
    post: str
    version: int
    position: SourcePosition
    effect: ChangeEffect | None = None


@dataclass(frozen=True, slots=True)
class _StoredHold:
    version: int
    position: SourcePosition
    reason: str
    hint: str
    post: str
    queue: tuple[_StoredPending, ...] = ()
    effects: tuple[RowEffect, ...] = ()
    code: str = ""


@dataclass(frozen=True, slots=True)
class _StoredShard:
    """A ``ShardState`` with fingerprints for schemas, "" for none."""

    effective: str
    position: SourcePosition
    version: int
    hold: _StoredHold | None
    actual: str = ""
    paused: bool = False


def _header(state: TargetState) -> _StoredHeader:
    return _StoredHeader(
        FORMAT,
        state.version,
        len(state.shards),
        state.names,
        state.generations,
        state.policies,
        state.mode_is_set,
        state.propagates,
        state.fills,
        state.told,
        state.copies,
        state.set_policies,
        state.awaited,
        state.departed_rows,
        state.route_says,
    )


def _stored(shard: ShardState) -> _StoredShard:
    held, hold = shard.hold, None
    if held is not None:
        queue = tuple(
            _StoredPending(p.made.actions, _reference(p.post), p.version, p.position, p.made.effect)
            for p in held.queue
        )
        post = _reference(held.post)
        hold = _StoredHold(
            held.version,
            held.position,
            held.reason,
            held.hint,
            post,
            queue,
            held.effects,
            held.code,
        )
    return _StoredShard(
        _reference(shard.effective),
        shard.position,
        shard.version,
        hold,
        _reference(shard.actual),
        shard.paused,
    )


def _reference(schema: ShardSchema | None) -> str:
    return _fingerprint(schema) if schema else ""


@lru_cache(maxsize=4096)
def _fingerprint(schema: ShardSchema) -> str:
    """Equal schemas have equal fingerprints; of 128 bits, so that different ones differ."""
    return blake2b(_schema_bytes(schema), digest_size=16).hexdigest()


@lru_cache(maxsize=16)
def _schema_bytes(schema: ShardSchema) -> bytes:
    return dump({"ids": schema.ids, "schema": schema.schema})


def _read_schema(data: bytes) -> ShardSchema:
    plain = json.loads(data)
    return ShardSchema(from_plain(TableSchema, plain["schema"]), tuple(plain["ids"]))


def _read_header(target: TargetTable, data: bytes) -> _StoredHeader:
    plain = json.loads(data)
    found = plain.get("format") if isinstance(plain, dict) else None
    if found not in _READABLE:
        raise ContractError(
            f"the stored state of {target} has format {found!r}, not {FORMAT}",
            hint="it was written by another version of shardmerge: run that version",
            code="SM-2201",
        )
    return from_plain(_StoredHeader, plain)


@lru_cache(maxsize=4096)
def _key(target: TargetTable, *names: str) -> bytes:
    """A row key; JSON, since names may hold any character."""
    parts = [target.database, target.table, *names]
    return _PREFIX + json.dumps(parts, ensure_ascii=False, separators=(",", ":")).encode()
