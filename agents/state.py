"""What the coordinator knows of one target, as a frozen value, and its bytes.

Nothing here decides; ``coordinator`` does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from shardmerge.schemas.errors import ContractError
from shardmerge.schemas.events import ShardColumn
from shardmerge.schemas.model import TableSchema
from shardmerge.schemas.names import ShardId, TargetTable
from shardmerge.schemas.plain import from_plain, to_plain
from shardmerge.schemas.position import SourcePosition

FORMAT = 1
"""Version of the bytes; a change of it needs a reader of the older ones."""


@dataclass(frozen=True, slots=True)
class TrackedSchema:
    """A shard's schema with the identity of each column, in column order."""

    schema: TableSchema
    ids: tuple[str, ...]

    @property
    def columns(self) -> tuple[ShardColumn, ...]:
        """The columns with their identities, in column order."""
        return tuple(
            ShardColumn(column_id, column)
            for column_id, column in zip(self.ids, self.schema.columns, strict=True)
        )

    def id_of(self, name: str) -> str | None:
        """The identity of the column of that name, without regard to case."""
        folded = name.lower()
        for column_id, column in zip(self.ids, self.schema.columns, strict=True):
            if column.name.lower() == folded:
                return column_id
        return None


@dataclass(frozen=True, slots=True)
class Hold:
    """Why a shard stands at its gate.

    Attributes:
        version: Of the decision that held it; the gate stands where that decision does.
        post: The shard's schema after its conflicting changes so far; None when it is unknown.
    """

    version: int
    position: SourcePosition
    reason: str
    hint: str
    post: TrackedSchema | None


@dataclass(frozen=True, slots=True)
class ShardState:
    """One live shard.

    Attributes:
        effective: The schema that counts in the join: before the conflicting change while the
            shard is held. None when it has none yet (it arrived in conflict or unreadable).
        position: Gate of its last change; ``version``: of that change's decision.
    """

    shard: ShardId
    effective: TrackedSchema | None
    position: SourcePosition
    version: int
    hold: Hold | None = None

    @property
    def final(self) -> TrackedSchema | None:
        """The schema after all its changes: post where there is one, else the effective one."""
        return self.hold.post if self.hold and self.hold.post else self.effective


@dataclass(frozen=True, slots=True)
class TargetState:
    """One target.

    Attributes:
        version: Of the latest decision; 0 before the first.
        shards: Live shards by identity.
        columns: The target's columns with identities, as of the latest decision; the column
            definitions are the target's, with the target's names.
        schema: The target's schema as of the latest decision; None before it exists.
        generations: Highest generation given so far, by folded name at birth.
        seen: Per source the (offset, ordinal) of the latest schema change decided.
    """

    target: TargetTable
    version: int = 0
    shards: Mapping[ShardId, ShardState] = field(default_factory=dict)
    columns: tuple[ShardColumn, ...] = ()
    schema: TableSchema | None = None
    generations: Mapping[str, int] = field(default_factory=dict)
    seen: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def with_shard(self, shard: ShardState) -> TargetState:
        """The state with that shard as given."""
        return replace(self, shards={**self.shards, shard.shard: shard})

    def without_shard(self, shard: ShardId) -> TargetState:
        """The state after that shard left."""
        return replace(self, shards={s: v for s, v in self.shards.items() if s != shard})


def to_bytes(state: TargetState) -> bytes:
    """Canonical bytes: equal states give equal bytes.

    Equal schemas are stored once: many shards share few.
    """
    pool: dict[TrackedSchema, int] = {}

    def number(tracked: TrackedSchema | None) -> int | None:
        return None if tracked is None else pool.setdefault(tracked, len(pool))

    shards = []
    for shard in sorted(state.shards.values(), key=lambda s: s.shard):
        hold = shard.hold
        shards.append(
            {
                "shard": to_plain(shard.shard),
                "effective": number(shard.effective),
                "position": to_plain(shard.position),
                "version": shard.version,
                "hold": None
                if hold is None
                else {
                    "version": hold.version,
                    "position": to_plain(hold.position),
                    "reason": hold.reason,
                    "hint": hold.hint,
                    "post": number(hold.post),
                },
            }
        )
    plain = {
        "format": FORMAT,
        "target": to_plain(state.target),
        "version": state.version,
        "columns": to_plain(state.columns),
        "schema": to_plain(state.schema),
        "generations": dict(state.generations),
        "seen": to_plain(state.seen),
        "shards": shards,
        "pool": [to_plain(tracked) for tracked in pool],
    }
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def from_bytes(data: bytes) -> TargetState:
    """Read what ``to_bytes`` wrote.

    Raises:
        ContractError: Another format version, or not a target's state.
    """
    plain: dict[str, Any] = json.loads(data)
    if plain.get("format") != FORMAT:
        raise ContractError(
            f"the stored state of a target has format {plain.get('format')!r}, not {FORMAT}",
            hint="it was written by another version of shardmerge: run that version or a newer one",
        )
    pool = [from_plain(TrackedSchema, entry) for entry in plain["pool"]]

    def numbered(number: int | None) -> TrackedSchema | None:
        return None if number is None else pool[number]

    shards = {}
    for entry in plain["shards"]:
        shard = from_plain(ShardId, entry["shard"])
        held = entry["hold"]
        hold = (
            None
            if held is None
            else Hold(
                held["version"],
                from_plain(SourcePosition, held["position"]),
                held["reason"],
                held["hint"],
                numbered(held["post"]),
            )
        )
        position = from_plain(SourcePosition, entry["position"])
        shards[shard] = ShardState(
            shard, numbered(entry["effective"]), position, entry["version"], hold
        )
    return TargetState(
        target=from_plain(TargetTable, plain["target"]),
        version=plain["version"],
        shards=shards,
        columns=tuple(from_plain(ShardColumn, c) for c in plain["columns"]),
        schema=None if plain["schema"] is None else from_plain(TableSchema, plain["schema"]),
        generations=plain["generations"],
        seen={source: (place[0], place[1]) for source, place in plain["seen"].items()},
    )
