"""What a schema change did to the rows that its shard had already, and whether the target shows it.

DDL changes rows without row events: ADD COLUMN fills them, dropping and adding a column again
resets it, MODIFY converts them. The target learns nothing of it from the rows. Theory of operation:

1. ``row_effects``: per column that a change filled or may have changed, what all rows hold now
   (a *fill*, see ``added_column_values``), or that nobody can tell.
2. The target's rows of shards that lack a column hold one value as long as the column's default
   stayed what it was when it was added and no shard gave the column up: ``next_fills`` keeps that
   value per column of the target. A column that is not in it holds mixed values.
3. ``differing``: the effects whose rows are not what the target holds, or perhaps not. Where the
   target got the column by the same decision, it holds what its own ADD COLUMN filled in.

An effect is only left out where both values are known and equal.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from shardmerge.schemas.ddl.volatile_defaults import volatile_default
from shardmerge.schemas.model.shard_columns import Lineage, ShardColumn

from .added_column_values import UNKNOWN, fill_text
from .value_changes import value_change

_NONE: Mapping[str, str] = MappingProxyType({})
AGAIN = "it was dropped and added again"
_RENAMED_FROM = "RENAME FROM "
_COPIED = re.compile(r"_(?P<table>.+)_(gho|new)")
"""Tables that gh-ost and pt-online-schema-change fill with a shard's rows, and swap with it."""
_MOVES_ROWS = re.compile(
    r"(DROP|TRUNCATE|EXCHANGE|CONVERT|DISCARD|IMPORT) PARTITION\b.*|CONVERT TABLE\b.*"
    r"|(DISCARD|IMPORT) TABLESPACE\b.*"
)


@dataclass(frozen=True, slots=True)
class RowEffect:
    """What a change did to one column of the rows that were there.

    Attributes:
        id: The column's identity; ``name``: its name on the shard after the change.
        fill: What every row holds now, as ``fill_text``; "" when it cannot be told.
        reason: What happened, a clause for people.
        anew: Whether the column was added, so that no row has a value of before.
        passed: Whether rows that were written behind the change may be in the target already: then
            no statement may write ``fill`` there, which would undo them.
    """

    id: str
    name: str
    fill: str
    reason: str
    anew: bool = False
    passed: bool = False


def row_effects(
    before: Sequence[ShardColumn],
    after: Sequence[ShardColumn],
    lineage: Sequence[Lineage],
    moved: Mapping[str, str] = _NONE,
) -> tuple[RowEffect, ...]:
    """The effects of a change on the shard's existing rows, in the order of its columns.

    Args:
        before: The shard's columns before it, with identities.
        after: Its columns after it.
        lineage: Where those of ``after`` come from, one entry for each.
        moved: Identity before → after a rename whose values the target moves itself.
    """
    by_name = {item.column.name.lower(): item for item in before}
    known = {item.id for item in before}
    found = []
    for item, line in zip(after, lineage, strict=True):
        if line.before:
            was = by_name[line.before.lower()]
            effect = _changed(was, item)
            if effect is None and moved.get(was.id, was.id) != item.id:
                effect = _unknown(item, "it got the name of a column that other shards have")
        else:
            effect = _added(item)
            if item.id in known:
                # Its rows do not hold what the target has of them, whatever that is.
                found.append(_unknown(item, AGAIN))
                effect = replace(effect, reason=AGAIN)
        if effect is not None:
            found.append(effect)
    return tuple(found)


def arrival_effects(after: Sequence[ShardColumn], actions: Sequence[str]) -> tuple[RowEffect, ...]:
    """The effects of a RENAME that put another table, with its rows, under the shard's name.

    The copies that gh-ost and pt-online-schema-change swap with a shard hold its own rows, changed
    as an ALTER TABLE would have changed them: they have no effects beyond ``row_effects``.

    Args:
        after: The shard's columns after the change.
        actions: Of the schema change, see ``SchemaChange``.
    """
    origins = [text.removeprefix(_RENAMED_FROM) for text in actions if _RENAMED_FROM in text]
    origin = next((o for o in origins if not _COPIED.fullmatch(o.rpartition(".")[2])), "")
    if not origin:
        return ()
    return unknown_effects(after, f"the table came with its rows from {origin}")


def unknown_effects(columns: Iterable[ShardColumn], reason: str) -> tuple[RowEffect, ...]:
    """The effects of a change of which nobody can tell what it did.

    Args:
        columns: Of the shard.
        reason: A clause for people.
    """
    return tuple(_unknown(item, reason) for item in columns)


def moved_rows(actions: Iterable[str]) -> tuple[str, ...]:
    """The actions that take rows out of the table, or bring some, without a row event.

    No snapshot helps: it does not tell of rows that are gone.

    Args:
        actions: Of the schema change, see ``SchemaChange``.
    """
    return tuple(action for action in actions if _MOVES_ROWS.fullmatch(action))


def held_effects(
    earlier: Sequence[RowEffect],
    now: Sequence[RowEffect],
    before: Sequence[ShardColumn],
    after: Sequence[ShardColumn],
    moved: Mapping[str, str] = _NONE,
) -> tuple[RowEffect, ...]:
    """The effects of a held shard's changes so far, for the decision that releases it.

    Args:
        earlier: Of its held changes before this one.
        now: Of this change.
        before: The shard's columns before this change.
        after: Its columns after this change.
        moved: As for ``row_effects``.
    """
    ids = {item.id for item in after}
    gone = [item for item in before if item.id not in ids and item.id not in moved]
    earlier = [replace(effect, id=moved.get(effect.id, effect.id)) for effect in earlier]
    lost = {item.id for item in gone}
    kept = [effect for effect in earlier if effect.id not in lost]
    again = [_unknown(item, AGAIN) for item in gone]
    return (*kept, *again, *now)


def since_added(effects: Sequence[RowEffect], ids: Container[str]) -> tuple[RowEffect, ...]:
    """The effects without those on values that went when a column was added again.

    Args:
        effects: Of one shard, in their order.
        ids: The columns that this is about: those whose former values the target has not either.
    """
    last = {e.id: place for place, e in enumerate(effects) if e.anew and e.id in ids}
    return tuple(e for place, e in enumerate(effects) if place >= last.get(e.id, 0))


def differing(
    effects: Iterable[RowEffect],
    columns: Sequence[ShardColumn],
    before: Sequence[ShardColumn],
    after: Sequence[ShardColumn],
    fills: Mapping[str, str],
) -> tuple[RowEffect, ...]:
    """The effects that the target does not show, or perhaps not; the last one of each column.

    Args:
        effects: Of one shard: of one change, or of all its held ones in their order.
        columns: The shard's columns after them.
        before: The target's columns before the decision that lets the shard's changed rows in.
        after: Its columns after that decision.
        fills: What shards without a column have in it, as of before the decision: ``next_fills``.
    """
    had = {item.id for item in before}
    has = {item.id: item.column for item in after}
    names = {item.id: item.column.name for item in columns}
    found: dict[str, RowEffect] = {}
    for effect in effects:
        column = has.get(effect.id)
        if column is None or effect.id not in names:
            continue  # one of the two has no such column
        there = fill_text(column)
        if not effect.fill.startswith("generated "):
            there = fills.get(effect.id, UNKNOWN) if effect.id in had else there
        if effect.id in found or not effect.fill or effect.fill != there:
            found[effect.id] = _against(replace(effect, name=names[effect.id]), there)
    return tuple(found.values())


def next_fills(
    fills: Mapping[str, str],
    before: Sequence[ShardColumn],
    after: Sequence[ShardColumn],
    given_up: Iterable[str] = (),
) -> dict[str, str]:
    """What the target holds, after a decision, in the rows of shards that lack a column.

    Args:
        fills: The same before the decision.
        before: The target's columns before the decision.
        after: Its columns after it.
        given_up: Identities that a shard has no longer: its rows keep their values in the target.

    Returns:
        Identity → fill; a column that is missing holds no one known value.
    """
    old = {item.id: fill_text(item.column) for item in before}
    gone = set(given_up)
    found = {}
    for item in after:
        fill = fill_text(item.column)
        if item.id in old:
            same = fill == old[item.id] and item.id not in gone
            fill = fills.get(item.id, UNKNOWN) if same else UNKNOWN
        if fill:
            found[item.id] = fill
    return found


def _changed(before: ShardColumn, after: ShardColumn) -> RowEffect | None:
    reason = value_change(before.column, after.column)
    if not reason:
        return None
    fill = fill_text(after.column) if after.column.generated is not None else UNKNOWN
    return RowEffect(after.id, after.column.name, fill, reason)


def _added(item: ShardColumn) -> RowEffect:
    volatile = volatile_default(item.column)
    if volatile is not None:
        reason = f"it was added with DEFAULT {volatile.expression}"
    elif item.column.auto_increment:
        reason = "AUTO_INCREMENT numbered the rows"
    else:
        reason = "it was added"
    return RowEffect(item.id, item.column.name, fill_text(item.column), reason, anew=True)


def _unknown(item: ShardColumn, reason: str) -> RowEffect:
    return RowEffect(item.id, item.column.name, UNKNOWN, reason)


def _against(effect: RowEffect, there: str) -> RowEffect:
    """The effect, with a reason that tells both sides."""
    if not effect.fill:
        return effect
    other = there or "values that nobody can tell"
    return replace(
        effect, reason=f"{effect.reason}, its rows have {effect.fill}, the target's {other}"
    )
