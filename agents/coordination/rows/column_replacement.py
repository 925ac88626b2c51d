"""Columns that shards dropped and added again while the target has the old values. Pure.

A shard can drop a column and add one of the same name, or arrive with a column of that name. When
every shard has done so, no shard has the target's values any more, and they may not be convertible.
Then the target drops its column and adds it again, too.

The same is done for a column that a shard converted while its rows waited at a gate: the shard
also converted values of rows that the target does not have yet. A shard that only converted its
column is read again then; if it cannot be read again, the target converts its column instead.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from shardmerge.agents.coordination.state.shard_state import ShardState
from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.schemas.effects.row_effect import RowEffect
from shardmerge.schemas.effects.row_effects import unknown_effects
from shardmerge.schemas.effects.value_changes import keeps_values
from shardmerge.schemas.lattice.join_index import JoinIndex
from shardmerge.schemas.lattice.joined import ShardSchema
from shardmerge.schemas.model.coded_text import CodedText
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.policies import ExistingRows
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import Column
from shardmerge.schemas.records.decisions import Decision
from shardmerge.schemas.records.schema_changes import SchemaChange

from .rereads import is_read_again

_MADE_ANEW = CodedText(
    "the target's column was made anew, since its values may not be convertible", "SM-1808"
)


@dataclass(frozen=True, slots=True)
class Renewals:
    """Which columns shards have dropped and added again (are *anew*) when a target moves.

    Attributes:
        before: The shards before the change; the hold of a shard tells what its changes did.
        now: The shard that changes → identities of the columns that are anew with this change.
        held: Those of ``before`` that were held.
        anew: Identities of the columns that are anew with some change of a held shard.
    """

    before: Mapping[ShardId, ShardState] = field(default_factory=dict)
    now: Mapping[ShardId, Set[str]] = field(default_factory=dict)
    held: Collection[ShardId] = ()
    anew: Collection[str] = ()

    @classmethod
    def of(cls, state: TargetState, now: Mapping[ShardId, Set[str]] | None = None) -> Renewals:
        """The renewals behind a state.

        Args:
            state: Before the change.
            now: See ``Renewals``; None when no shard changes.
        """
        return cls(state.shards, now or {}, state.held, state.anew)

    def concern(self, key: Iterable[str]) -> bool:
        """Whether one of these columns is anew on some shard."""
        changed = (column_id for ids in self.now.values() for column_id in ids)
        return not {*self.anew, *changed}.isdisjoint(key)

    def makes_anew(self, column_id: str, state: TargetState, index: JoinIndex) -> bool:
        """Whether the target's column is to be dropped and added again.

        It is when some shard has given its values up, and no other shard has values that could
        not be read again.

        Args:
            column_id: Its identity.
            state: With the shards as they will be.
            index: Of the schemas that are joined. Looks at all shards.
        """
        anew = False
        for name, shard in state.shards.items():
            schema = shard.final if index is state.final else shard.effective
            if schema is None:
                continue
            if column_id not in schema.ids:
                # Its rows in the target may hold values from before it gave the column up, which
                # the target's server may refuse to convert.
                anew |= column_id not in state.fills
                continue
            if self._is_anew(column_id, shard, schema is shard.final):
                anew = True
                continue
            real = shard.table
            if not is_read_again(state.policies.existing_rows, name, real):
                return False
        return anew

    def _is_anew(self, column_id: str, shard: ShardState, with_all: bool) -> bool:
        if column_id in self.now.get(shard.shard, ()):
            return True
        known = self.before.get(shard.shard)
        if known is None or known.hold is None or not with_all:
            return False
        return any(effect.anew and effect.id == column_id for effect in known.hold.effects)


NO_RENEWALS = Renewals()


def renewals(state: TargetState, change: SchemaChange, tracked: ShardSchema) -> Renewals:
    """The renewals behind a change.

    Args:
        state: Before it.
        change: Of one shard.
        tracked: Its schema afterwards, with identities.
    """
    known = state.shards.get(change.shard)
    if known is None:
        return Renewals.of(state, {change.shard: set(tracked.ids)})
    added = zip(tracked.ids, change.lineage, strict=False)
    now = {column_id for column_id, lineage in added if not lineage.before}
    if is_late(known, state.policies.existing_rows, change) and known.real is not None:
        now |= _converted(known.real.columns, tracked.columns)
    return Renewals.of(state, {change.shard: now})


def made_anew(decision: Decision, columns: Sequence[ShardColumn]) -> set[str]:
    """The target's columns that a decision drops and adds again.

    Args:
        decision: With its statements.
        columns: The target's after it.
    """
    dropped: set[str] = set()
    found: set[str] = set()
    for binding in (binding for statement in decision.statements for binding in statement.binds):
        if not binding.name:
            dropped.add(binding.column_id)
        elif binding.column_id in dropped:
            found.add(binding.column_id)
    return found.intersection(c.id for c in columns if c.column.generated is None)


def values_to_read_again(
    new: TargetState, known: Mapping[ShardId, tuple[RowEffect, ...]], renewed: Set[str]
) -> dict[ShardId, tuple[RowEffect, ...]]:
    """The effects on shards that still have values in a column that the target makes anew.

    The rows of a held shard lose these values too; they are read again when it is released.

    Args:
        new: After the decision.
        known: The effects of changes.
        renewed: See ``made_anew``.
    """
    found = {}
    for name, shard in new.shards.items() if renewed else ():
        effects = known.get(name, shard.hold.effects if shard.hold else ())
        anew = {effect.id for effect in effects if effect.anew}
        columns = shard.real.own_columns if shard.real else ()
        without = anew | shard.left_out
        kept = [c for c in columns if c.id in renewed and c.id not in without]
        if kept:
            found[name] = (*effects, *unknown_effects(kept, _MADE_ANEW))
    return found


def is_late(known: ShardState | None, existing_rows: ExistingRows, change: SchemaChange) -> bool:
    """Whether a change converts values that the target cannot convert itself.

    That is so when the shard was held before the change: the values can be in rows that the target
    does not have yet. It must also be possible to read the shard again.
    """
    held = known is not None and known.hold is not None
    return held and is_read_again(existing_rows, change.shard, change.after)


def with_converted(
    effects: Iterable[RowEffect], before: Sequence[ShardColumn], after: Sequence[ShardColumn]
) -> list[RowEffect]:
    """The effects of a late change (``is_late``), with the converted columns marked as anew.

    Args:
        effects: Of the change.
        before: The shard's columns.
        after: Those after the change.
    """
    converted = _converted(before, after)
    return [replace(e, anew=e.anew or e.id in converted) for e in effects]


def _converted(before: Sequence[ShardColumn], after: Sequence[ShardColumn]) -> set[str]:
    """Columns that after the change cannot hold every value that they could hold before."""
    known = {item.id: item.column for item in before}
    return {item.id for item in after if item.id in known and _loses(known[item.id], item.column)}


def _loses(before: Column, after: Column) -> bool:
    return (before.nullable and not after.nullable) or not keeps_values(before.type, after.type)


def renewed_behind_gate(known: ShardState | None, now: Iterable[RowEffect]) -> tuple[str, ...]:
    """The columns of a held shard whose values in the waiting rows are obsolete.

    Args:
        known: The shard before a change; None when it is new.
        now: The effects of the change.
    """
    if known is None or known.hold is None or known.real is None:
        return ()
    key, by_name = known.real.schema.primary_key, known.real.by_name
    # Without its key a row cannot be told from others.
    keys = {by_name[name.lower()] for name in key.columns} if key else set[str]()
    had = set(known.real.ids) - keys
    return tuple(dict.fromkeys(e.id for e in now if e.anew and e.id in had))
