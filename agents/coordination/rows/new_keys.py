"""Primary keys by which the target cannot tell the rows that it has. Pure.

A shard can make a key of a column whose values its existing rows get by the same DDL:
AUTO_INCREMENT numbers them, a default makes them up, or the column is dropped and added again. No
row event tells the values, and reading the table again does not help by itself: its rows come under
other keys, and those of before stay, or are all the same row by the new key, which no server takes.

So the rows of such a shard are taken out of the target before it gets the new key, and then its
table is read again: the shard is *reloaded* (``Decision.reloads``). Where its route says that rows
which DDL changed are not read again, the change is held, until it is undone or the difference is
accepted, which is for a target that was emptied. Nothing of it is needed where the rows hold one
value that the target's hold as well, and the key only grows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from shardmerge.agents.coordination.state.shard_state import ShardState
from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.schemas.effects.added_column_values import UNKNOWN, fill_text
from shardmerge.schemas.lattice.join_index import JoinIndex
from shardmerge.schemas.lattice.joined import ShardSchema
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.policies import ExistingRows
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import Column

from .column_replacement import Renewals
from .rereads import why_not_read_again

HINT = (
    "undo it on the shard: add the column first, and make it the key when the target has its"
    " values; or empty the target's table, let the change through (`shardmerge command set-policy"
    " existing_rows=accept`), and have every shard read again (`shardmerge command reread`)"
)


@dataclass(frozen=True, slots=True)
class UnknownKey:
    """A key by which the target cannot tell the rows that it has.

    Attributes:
        reason: Why, for people.
        shards: Whose rows these are, sorted.
    """

    reason: str
    shards: tuple[ShardId, ...]

    def reloads(self, state: TargetState) -> bool:
        """Whether the rows of all of them may and can be read again.

        Rows of shards that left cannot: nobody knows them by the new key. Nor those of a target
        that does not follow its shards: it would get them under the key that it keeps.
        """
        follows = state.propagates and state.policies.existing_rows is ExistingRows.REREAD
        if not follows or state.departed_rows:
            return False
        shards = (state.shards[name] for name in self.shards)
        return not any(why_not_read_again(shard.shard, shard.table) for shard in shards)


def unknown_key(
    state: TargetState,
    index: JoinIndex,
    key: Collection[str],
    before: Sequence[ShardColumn],
    after: Sequence[ShardColumn],
    *,
    renewals: Renewals,
) -> UnknownKey | None:
    """Why the target's rows cannot be told apart by a key; None when they can, or shall be.

    Args:
        state: With the shards as they will be, and the target as it is.
        index: Of the schemas that are joined.
        key: Identities of the columns of the key that the target will have.
        before: The target's columns as it is, with the identities that they have then.
        after: Its columns then.
        renewals: What is known of the shards' rows. Looks at all shards when a column of the key
            is new in the target.
    """
    if state.schema is None or state.policies.existing_rows is ExistingRows.ACCEPT:
        return None
    parts = {item.id: item.column for item in after if item.id in key}
    new = parts.keys() - {item.id for item in before}
    fresh: set[str] = set()
    known = [
        (shard, schema)
        for shard in _known(state, renewals, of_all=bool(new))
        if (schema := shard.final if index is state.final else shard.effective) is not None
    ]
    told: dict[ShardId, str] = {}
    for shard, schema in known:
        for column_id, column in parts.items():
            fill = _fill(column_id, shard, schema, renewals)
            if fill is None and column_id not in new:
                continue
            there = state.fills.get(column_id, UNKNOWN)
            if column_id in new:
                there = fill_text(column)
            if not fill or fill != there:
                told.setdefault(shard.shard, column.name)
            fresh.add(column_id)
    if told:
        name, part = next(iter(told.items()))
        return UnknownKey(
            f"primary key {_text(parts)}: what rows that {name} had before got in {part} by DDL "
            "the target cannot know",
            tuple(told),
        )
    old = state.schema.primary_key
    had = {name.lower() for name in old.columns} if old else set[str]()
    lost = [c.column.name for c in before if c.column.name.lower() in had and c.id not in parts]
    # Of those that are new in the target, also the rows of shards that have left have one value.
    fresh |= new
    shards = tuple(shard.shard for shard, _ in known)
    if fresh and old is None and fresh == parts.keys():
        return UnknownKey(
            f"primary key {_text(parts)}: rows of before, told apart by nothing, are alike in it",
            shards,
        )
    if fresh and lost:
        return UnknownKey(
            f"primary key {_text(parts)}: rows that differ in {', '.join(lost)} alone have the "
            f"same value in {', '.join(parts[i].name for i in sorted(fresh))}",
            shards,
        )
    return None


def _known(state: TargetState, renewals: Renewals, *, of_all: bool) -> Iterable[ShardState]:
    """The shards whose rows are in question; a new one has none in the target."""
    names = state.shards.keys() if of_all else {*renewals.now, *renewals.held}
    return (
        state.shards[name]
        for name in sorted(names)
        if name in state.shards and (name not in renewals.now or name in renewals.before)
    )


def _fill(
    column_id: str, shard: ShardState, schema: ShardSchema | None, renewals: Renewals
) -> str | None:
    """What a shard's rows got in a column by DDL, as ``fill_text``; None: nothing that is known."""
    known = renewals.before.get(shard.shard)
    hold = known.hold if known and schema is shard.final else None
    earlier = [effect for effect in hold.effects if effect.id == column_id] if hold else []
    if column_id not in renewals.now.get(shard.shard, ()):
        if not any(effect.anew for effect in earlier):
            return None
        return earlier[0].fill if len(earlier) == 1 else UNKNOWN
    had = known.real.ids if known and known.real else ()
    if earlier or schema is None or column_id in had:
        return UNKNOWN
    return next((fill_text(c.column) for c in schema.columns if c.id == column_id), UNKNOWN)


def _text(parts: dict[str, Column]) -> str:
    return f"({', '.join(column.name for column in parts.values())})"
