"""Primary keys by which the target cannot tell its existing rows apart. Pure.

A shard can make a key of a column whose values existing rows got by the same DDL: AUTO_INCREMENT
numbers the rows, a default fills them, or the column was dropped and added again. No row event
carries these values. Reading the table again does not help by itself: its rows come under other
keys while the old rows stay, or all old rows have one value of the new key, which no server takes.

So the rows of such a shard are taken out of the target before it gets the new key, and then the
table is read again: the shard is *reloaded* (``Decision.reloads``). Where its route says that rows
changed by DDL are not read again, the change is held. The hold ends when the change is undone, when
the target is rebuilt, or when the difference is accepted, which is meant for a target that was
emptied.

None of this is needed when every row has the same value in the column, the target has that value
too, and the new key contains the old one.
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
    "when every shard has made the change, load the target anew while it serves (`shardmerge"
    " rebuild`); or undo it on the shard: add the column first, and make it the key when the target"
    " has its values; or empty the target's table, let the change through (`shardmerge command"
    " set-policy existing_rows=accept`), and have every shard read again (`shardmerge command"
    " reread`)"
)


@dataclass(frozen=True, slots=True)
class UnknownKey:
    """A key by which the target cannot tell its existing rows apart.

    Attributes:
        reason: Why, for people.
        shards: Whose rows these are, sorted.
    """

    reason: str
    shards: tuple[ShardId, ...]

    def reloads(self, state: TargetState) -> bool:
        """Whether the rows of all these shards may be read again, and can be.

        Rows of shards that left cannot be: nobody has their values of the new key. A target that
        does not follow its shards is not reloaded either: it would get the rows under its old key.
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
    """Why the target's rows cannot be told apart by a key; None if they can, or if it is accepted.

    Args:
        state: With the shards as they will be, and the target as it is.
        index: Of the schemas that are joined.
        key: Identities of the columns of the key that the target will have.
        before: The target's present columns, with their identities after the move.
        after: The target's columns after the move.
        renewals: What is known of the shards' rows. Looks at all shards when a column of the key
            is new in the target.
    """
    if state.schema is None or state.policies.existing_rows is ExistingRows.ACCEPT:
        return None
    parts = {item.id: item.column for item in after if item.id in key}
    new = parts.keys() - {item.id for item in before}
    if not new and not renewals.concern(parts):
        return None  # no shard's rows got values of the key by DDL; held shards need no look
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
            f"primary key {_text(parts)}: the target cannot know which values in {part} DDL gave "
            f"to rows that {name} had before",
            tuple(told),
        )
    old = state.schema.primary_key
    had = {name.lower() for name in old.columns} if old else set[str]()
    lost = [c.column.name for c in before if c.column.name.lower() in had and c.id not in parts]
    # In a column that is new in the target, rows of shards that have left have one value too.
    fresh |= new
    shards = tuple(shard.shard for shard, _ in known)
    if fresh and old is None and fresh == parts.keys():
        return UnknownKey(
            f"primary key {_text(parts)}: rows from before it have no key, and are alike in the "
            "new one",
            shards,
        )
    if fresh and lost:
        return UnknownKey(
            f"primary key {_text(parts)}: rows that differ only in {', '.join(lost)} have the "
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
    """What DDL put into a column of a shard's rows, as ``fill_text``; None if it put nothing there.

    ``UNKNOWN`` when it put a value there that is not known, or several values.
    """
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
