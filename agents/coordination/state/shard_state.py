"""One shard of a target as the coordinator knows it, as a frozen value."""

from __future__ import annotations

from dataclasses import dataclass

from shardmerge.schemas.effects.row_effect import RowEffect
from shardmerge.schemas.lattice.change_effect import ChangeEffect
from shardmerge.schemas.lattice.joined import ShardSchema
from shardmerge.schemas.lattice.origin_columns import own_schema
from shardmerge.schemas.model.frozen import made_at_once, replace
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.model.tables import TableSchema

from .effective_schema import effective_when, left_out


@dataclass(frozen=True, slots=True)
class Made:
    """A change as a shard made it.

    Attributes:
        actions: What the shard did, as canonical texts; people are told these.
        effect: What it changed in the schema; None when that is not known.
    """

    actions: tuple[str, ...]
    effect: ChangeEffect | None = None

    def is_like(self, other: Made) -> bool:
        """Whether both are the same change."""
        known = self.effect is not None
        return self.actions == other.actions or (known and self.effect == other.effect)


@dataclass(frozen=True, slots=True)
class Pending:
    """A change of a held shard that waits for the target's DDL lock.

    Attributes:
        made: What the shard did.
        post: The shard's schema after it; None when it is unknown.
        version: Of the last decision whose gate opens when the change is executed; 0 when it
            opens none.
        position: Of the first such gate; without one, where the shard stands.
    """

    made: Made
    post: ShardSchema | None
    version: int
    position: SourcePosition


@made_at_once
@dataclass(frozen=True, slots=True)
class Hold:
    """Why a shard stands at its gate.

    Attributes:
        version: Of the decision that held it; the gate stands where that decision does.
        post: The shard's schema after its conflicting changes so far; None when it is unknown.
        queue: Its changes that wait for the DDL lock, in their order, the last one with ``post``.
            Empty in optimistic mode, and for a shard that has no effective schema yet.
        effects: What its held changes did to rows that it had already.
        code: The reason's code in ``schemas.codes``.
    """

    version: int
    position: SourcePosition
    reason: str
    hint: str
    post: ShardSchema | None
    queue: tuple[Pending, ...] = ()
    effects: tuple[RowEffect, ...] = ()
    code: str = ""


@made_at_once
@dataclass(frozen=True, slots=True)
class ShardState:
    """One live shard.

    Attributes:
        effective: The schema that counts in the join: before the conflicting change while the
            shard is held. None when it has none yet (it arrived in conflict or unreadable).
        position: Gate of its last change, and if the binlog went back, the latest of its gates.
        version: Of the decision about its last change.
        actual: The shard's own schema; while the shard is held, its own schema before the hold.
            None when it equals ``effective``; they differ after a change that was skipped.
        paused: Whether its rows wait because an operator, or its route, said so.
    """

    shard: ShardId
    effective: ShardSchema | None
    position: SourcePosition
    version: int
    hold: Hold | None = None
    actual: ShardSchema | None = None
    paused: bool = False

    @property
    def real(self) -> ShardSchema | None:
        """What the shard really has, as far as it is known."""
        if self.hold:
            if self.hold.post:
                return self.hold.post
            for pending in reversed(self.hold.queue):
                if pending.post is not None:
                    return pending.post
        return self.actual or self.effective

    @property
    def table(self) -> TableSchema | None:
        """Its table as its server has it, without origin columns; None while that is not known."""
        return own_schema(self.real) if self.real else None

    @property
    def final(self) -> ShardSchema | None:
        """The schema with which it counts after all its changes; if unknown, ``effective``."""
        post = self.hold.post if self.hold else None
        return self.effective if post is None else self.effective_when(post)

    def effective_when(self, schema: ShardSchema) -> ShardSchema:
        """The schema with which it counts when it has this one."""
        if self.actual is None or self.effective is None:
            return schema
        return effective_when(schema, self.actual, self.effective)

    def counting(self, schema: ShardSchema) -> tuple[ShardSchema, ShardSchema | None]:
        """``effective`` and ``actual`` when it has this schema."""
        counts = self.effective_when(schema)
        return counts, None if counts is schema or counts == schema else schema

    def having(self, schema: ShardSchema, hold: Hold | None = None) -> ShardState:
        """The shard after a change that leads to this schema was executed on the target."""
        effective, actual = self.counting(schema)
        return replace(self, effective=effective, actual=actual, hold=hold)

    @property
    def left_out(self) -> frozenset[str]:
        """Columns that are left out of its rows; for a held shard, of the rows before its gate."""
        if self.actual is None or self.effective is None:
            return frozenset()
        return left_out(self.actual, self.effective)

    @property
    def schemas(self) -> tuple[ShardSchema, ...]:
        """The schemas that it refers to."""
        found = [self.effective, self.actual]
        if self.hold:
            # The schema of the last pending change is the hold's.
            found += [pending.post for pending in self.hold.queue[:-1]]
            found.append(self.hold.post)
        return tuple(schema for schema in found if schema is not None)

    @property
    def head(self) -> Made | None:
        """Its first change that waits for the DDL lock; None without one."""
        return self.hold.queue[0].made if self.hold and self.hold.queue else None

    @property
    def rest(self) -> Hold | None:
        """Its hold when its first waiting change is done; None when nothing else waits."""
        hold = self.hold
        if hold is None or len(hold.queue) < 2:
            return None
        done, *rest = hold.queue
        # Behind a change that opens no gate the shard stands where it stood.
        stands = rest[0] if done.version else hold
        return replace(
            hold,
            version=stands.version,
            position=stands.position,
            reason=f"waits for the DDL lock: {', '.join(rest[0].made.actions)}",
            queue=tuple(rest),
            code="SM-1213",
        )

    @property
    def popped(self) -> ShardState:
        """The same shard when its first change that waits for the lock is executed."""
        assert self.hold is not None
        first = self.hold.queue[0].post
        assert first is not None
        return self.having(first, self.rest)

    @property
    def released(self) -> ShardState:
        """The same shard, counting with its schema after all its changes."""
        assert self.hold is not None
        assert self.hold.post is not None
        return self.having(self.hold.post)
