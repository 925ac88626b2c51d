"""What the coordinator knows of one target, as a frozen value.

Nothing here decides; ``coordinator`` does. A changed state shares its structure with the one before
it, and what is computed from the shards (the indexes of the two joins, the pool of schemas) is
changed along with them. So the cost of a change does not grow with the number of shards.
``state_rows`` has the stored form.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from immutables import Map

from shardmerge.schemas.lattice.copied_columns import Copy, still_known
from shardmerge.schemas.lattice.counts import Counts, recounted
from shardmerge.schemas.lattice.join_index import JoinIndex
from shardmerge.schemas.lattice.joined import JoinedTable, ShardSchema
from shardmerge.schemas.lattice.schema_pool import SchemaPool
from shardmerge.schemas.lattice.type_join import TypeRules
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.policies import (
    CHOICES,
    DEFAULT_POLICIES,
    SETTABLE,
    RoutePolicies,
)
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import TableSchema

from .shard_state import Hold, Made, ShardState


@dataclass(frozen=True, slots=True)
class TargetState:
    """One target.

    Attributes:
        version: Of the latest decision; 0 before the first.
        shards: Live shards by identity, in no order.
        columns: The target's columns with identities, as of the latest decision; the column
            definitions are the target's, with the target's names.
        schema: The target's schema as of the latest decision; None before it exists.
        names: Identity → name in the target, of the columns that only shards have: those of a held
            change, and generated columns that another shard lacks.
        generations: Highest generation given so far, by folded name at birth.
        copies: Renames by copying, as long as both identities are known, sorted.
        fills: Identity → what the target holds in rows of shards that lack the column, see
            ``row_effects.next_fills``.
        seen: Per source the (offset, ordinal) of the latest schema change decided.
        held: The held shards, as the keys of a mapping.
        effective, final: The join indexes of the shards' effective and final schemas; one object
            when no shard is held with a schema of its own.
        heads: First change that waits for the DDL lock → how many held shards wait with it.
        finals: Final schema → how many shards have it.
        standing: Effective schema → how many shards that do not wait for the lock count with it.
        skipping: How many shards count with a schema that is not their own.
        anew: Identity → how many held shards have dropped and added that column again.
        pool: The schemas that the shards refer to.
        policies: The policies that count: those of the latest schema change's route, replaced where
            an operator set one. The origin columns are those of the target's first schema change.
        mode_is_set: Whether an operator set the mode.
        set_policies: What an operator set instead of the routes' policies: name → value, see
            ``policies.SETTABLE``.
        route_says: What the latest schema change's route says of the policies that an operator set,
            the mode included: name → value. It lacks those that are not known, because an earlier
            version did not keep them and no schema change has come since.
        propagates: Whether the target's schema follows the join.
        awaited: Shards whose tables are to be read as a whole and are not reported as read, sorted.
        departed_rows: Whether rows of shards that left stay in the target.
        told: What the target does without, as its decisions told it; ``TargetSchema.sentences``.
        defaults: The default collations of utf8mb4 on the sources' servers; not stored.
        restated: Whether the stored schemas have earlier texts than these; see ``restated_texts``.
        unused: Fingerprints of stored schemas to which no shard refers any more.
        joined: The join from which the target's schema was made, to see that nothing changed; None
            when it is not known, as after a restart.
    """

    target: TargetTable
    version: int = 0
    shards: Map[ShardId, ShardState] = field(default_factory=Map)
    columns: tuple[ShardColumn, ...] = ()
    schema: TableSchema | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    generations: Mapping[str, int] = field(default_factory=dict)
    copies: tuple[Copy, ...] = ()
    fills: Mapping[str, str] = field(default_factory=dict)
    seen: Map[str, tuple[int, int]] = field(default_factory=Map)
    held: Map[ShardId, None] = field(default_factory=Map, compare=False)
    effective: JoinIndex = field(default_factory=JoinIndex, compare=False)
    final: JoinIndex = field(default_factory=JoinIndex, compare=False)
    heads: Counts[Made] = field(default_factory=Map, compare=False)
    finals: Counts[ShardSchema] = field(default_factory=Map, compare=False)
    standing: Counts[ShardSchema] = field(default_factory=Map, compare=False)
    skipping: int = field(default=0, compare=False)
    anew: Counts[str] = field(default_factory=Map, compare=False)
    pool: SchemaPool = field(default_factory=SchemaPool, compare=False)
    joined: JoinedTable | None = field(default=None, compare=False)
    policies: RoutePolicies = DEFAULT_POLICIES
    mode_is_set: bool = False
    set_policies: Mapping[str, str] = field(default_factory=dict)
    route_says: Mapping[str, str] = field(default_factory=dict)
    propagates: bool = True
    awaited: tuple[ShardId, ...] = ()
    departed_rows: bool = False
    told: tuple[str, ...] = ()
    defaults: frozenset[str] = field(default=frozenset(), compare=False)
    restated: bool = field(default=False, compare=False)
    unused: frozenset[str] = field(default=frozenset(), compare=False)

    @property
    def type_rules(self) -> TypeRules:
        """How the types of one column are joined."""
        return _type_rules(self.policies.types, self.defaults)

    def policies_of_route(self, route: RoutePolicies) -> RoutePolicies:
        """A route's policies, replaced where an operator set one for the target."""
        chosen: dict[str, Any] = {n: SETTABLE[n](value) for n, value in self.set_policies.items()}
        if self.mode_is_set:
            chosen["mode"] = self.policies.mode
        return replace(route, **chosen) if chosen else route

    def has_set(self, name: str) -> bool:
        """Whether an operator set the policy of that name; see ``policies.CHOICES``."""
        return self.mode_is_set if name == "mode" else name in self.set_policies

    def with_policy(self, name: str, value: str) -> TargetState:
        """The state with a policy as an operator sets it.

        Args:
            name: Of ``policies.CHOICES``.
            value: With "" it is what the route says; while that is not known, it stays as it is.
        """
        says = {n: v for n, v in self.route_says.items() if n != name}
        counts = getattr(self.policies, name).value
        if value and name in self.route_says:
            says[name] = self.route_says[name]
        elif value and not self.has_set(name):
            says[name] = counts
        elif not value:
            counts = self.route_says.get(name, counts)
        chosen: dict[str, Any] = {name: CHOICES[name](value or counts)}
        state = replace(self, policies=replace(self.policies, **chosen), route_says=says)
        if name == "mode":
            return replace(state, mode_is_set=bool(value))
        others = {n: v for n, v in self.set_policies.items() if n != name}
        return replace(state, set_policies={**others, name: value} if value else others)

    def following(self, policies: RoutePolicies, route: RoutePolicies) -> TargetState:
        """The state with these policies; a target that exists keeps its origin columns.

        Args:
            policies: What ``policies_of_route`` gives for the route.
            route: What the route says.
        """
        kept = self.policies.origin
        if policies.origin is not kept and (self.shards or self.schema is not None):
            policies = replace(policies, origin=kept)
        says = {name: getattr(route, name).value for name in CHOICES if self.has_set(name)}
        same = policies is self.policies or policies == self.policies
        if same and says == self.route_says:
            return self
        return replace(self, policies=policies, route_says=says)

    def after(
        self,
        shard: ShardId,
        position: SourcePosition,
        schema: ShardSchema | None,
        hold: Hold | None = None,
    ) -> ShardState:
        """A shard after the change that this state's version answers.

        Args:
            shard: It may be new.
            position: Of the change. If the binlog went back, the shard keeps the later one.
            schema: What the shard has; None when it counts as before, because it is held.
            hold: Why it stands, if it does.
        """
        known = self.shards.get(shard)
        if known is None:
            known = ShardState(shard, None, position, self.version)
        effective, actual = known.effective, known.actual
        if schema is not None:
            effective, actual = known.counting(schema)
        return replace(
            known,
            position=max(known.position, position),
            version=self.version,
            effective=effective,
            actual=actual,
            hold=hold,
        )

    def with_shard(self, shard: ShardState) -> TargetState:
        """The state with that shard as given."""
        return self._with(shard.shard, shard)

    def without_shard(self, shard: ShardId) -> TargetState:
        """The state after that shard left."""
        return self._with(shard, None)

    def opened(self) -> list[ShardState]:
        """The held shards whose schema is known: the end of the conflict releases them."""
        if not self.held:
            return []
        held = (self.shards[shard] for shard in sorted(self.held))
        return [shard for shard in held if shard.hold and shard.hold.post]

    def with_all_released(self) -> TargetState:
        """The state in which every held shard with a known schema counts with it."""
        state = self
        for shard in self.opened():
            state = state.with_shard(shard.released)
        if state.effective is state.final:
            return state
        return replace(state, effective=state.final)

    def with_known_copies(self) -> TargetState:
        """The state without copies of columns that nobody has any more."""
        if not self.copies:
            return self
        there = {c.id for c in self.columns}
        there.update(column_id for schema in self.pool.counts() for column_id in schema.ids)
        return replace(self, copies=still_known(self.copies, there.__contains__))

    def _with(self, name: ShardId, new: ShardState | None) -> TargetState:
        old = self.shards.get(name)
        pool = self.pool.exchanged(old.schemas if old else (), new.schemas if new else ())
        if new is not None:
            new = _pooled(new, pool)
        effective = self.effective.with_shard(
            old.effective if old else None, new.effective if new else None
        )
        both = self.effective is self.final and not (old and old.hold) and not (new and new.hold)
        final = (
            effective
            if both
            else self.final.with_shard(old.final if old else None, new.final if new else None)
        )
        heads = recounted(self.heads, _heads(old), _heads(new))
        finals = recounted(self.finals, _finals(old), _finals(new))
        standing = recounted(self.standing, _standing(old), _standing(new))
        shards = self.shards.delete(name) if new is None and old is not None else self.shards
        held = self.held.delete(name) if name in self.held else self.held
        if new is not None:
            shards = shards.set(name, new)
            held = held.set(name, None) if new.hold else held
        return replace(
            self,
            shards=shards,
            held=held,
            effective=effective,
            final=final,
            heads=heads,
            finals=finals,
            standing=standing,
            skipping=self.skipping + _skips(new) - _skips(old),
            anew=recounted(self.anew, _anew(old), _anew(new)),
            pool=pool,
        )


def assembled(state: TargetState, shards: Iterable[ShardState]) -> TargetState:
    """A state with these shards, and everything that is computed from them.

    Args:
        state: Without shards.
        shards: All of them. The cost is one look at each, and one at each column of each
            different schema.
    """
    pool = SchemaPool()
    found: dict[ShardId, ShardState] = {}
    for shard in shards:
        pool = pool.exchanged((), shard.schemas)
        found[shard.shard] = _pooled(shard, pool)
    held = {name: None for name, shard in found.items() if shard.hold}
    opened = [shard for name in held if (shard := found[name]).final is not shard.effective]
    effective = JoinIndex()
    for schema, times in Counter(s.effective for s in found.values() if s.effective).items():
        effective = effective.with_shard(None, schema, times)
    final = effective
    for shard in opened:
        final = final.with_shard(shard.effective, shard.final)
    heads = Counter(head for name in held for head in _heads(found[name]))
    finals = Counter(schema for shard in found.values() for schema in _finals(shard))
    standing = Counter(schema for shard in found.values() for schema in _standing(shard))
    return replace(
        state,
        shards=Map(found),
        held=Map(held),
        effective=effective,
        final=final,
        heads=Map(heads),
        finals=Map(finals),
        standing=Map(standing),
        skipping=sum(map(_skips, found.values())),
        anew=Map(Counter(column_id for name in held for column_id in _anew(found[name]))),
        pool=pool,
    )


_type_rules = lru_cache(maxsize=64)(TypeRules)
"""Equal rules are one object, so that comparing them is cheap."""


def _heads(shard: ShardState | None) -> tuple[Made, ...]:
    head = shard.head if shard else None
    return () if head is None else (head,)


def _finals(shard: ShardState | None) -> tuple[ShardSchema, ...]:
    final = shard.final if shard else None
    return () if final is None else (final,)


def _standing(shard: ShardState | None) -> tuple[ShardSchema, ...]:
    counts = shard.effective if shard and shard.head is None else None
    return () if counts is None else (counts,)


def _skips(shard: ShardState | None) -> bool:
    return shard is not None and shard.actual is not None


def _anew(shard: ShardState | None) -> frozenset[str]:
    effects = shard.hold.effects if shard and shard.hold else ()
    return frozenset(effect.id for effect in effects if effect.anew) if effects else _NONE


_NONE: frozenset[str] = frozenset()


def _pooled(shard: ShardState, pool: SchemaPool) -> ShardState:
    """The shard with the pool's objects for its schemas."""
    if shard.hold is None and shard.actual is None:
        only = shard.effective
        pooled = None if only is None else pool.one(only)
        return shard if pooled is only else replace(shard, effective=pooled)

    def one(schema: ShardSchema | None) -> ShardSchema | None:
        return None if schema is None else pool.one(schema)

    effective, hold, actual = one(shard.effective), shard.hold, one(shard.actual)
    if hold is not None:
        post, posts = one(hold.post), [one(pending.post) for pending in hold.queue]
        pairs = list(zip(hold.queue, posts, strict=True))
        if post is not hold.post or any(pending.post is not has for pending, has in pairs):
            queue = tuple(replace(pending, post=has) for pending, has in pairs)
            hold = replace(hold, post=post, queue=queue)
    if effective is shard.effective and hold is shard.hold and actual is shard.actual:
        return shard
    return replace(shard, effective=effective, hold=hold, actual=actual)
