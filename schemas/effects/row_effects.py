"""What a schema change did to its shard's existing rows, and whether the target's rows match.

DDL changes rows without row events: ADD COLUMN fills them, dropping and adding a column again
resets it, MODIFY converts them. No row tells the target about it. Theory of operation:

1. ``row_effects`` says, for each column that a change filled or may have changed, which value all
   rows hold now (a *fill*, see ``added_column_values``), or that the value is not known.
2. ``next_fills`` keeps one value per column of the target: the value that the column has in the
   rows of shards that lack it. There is one value as long as the column's default is the one that
   it was added with, and no shard gave the column up. A column without an entry holds mixed values.
3. ``differing`` gives the effects that the target's rows do not show, or may not show. If the
   target got the column by the same decision, its rows hold the fill of its own ADD COLUMN.

An effect is left out only when both values are known and equal.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType

from shardmerge.schemas.ddl.expressions import column_names
from shardmerge.schemas.ddl.volatile_defaults import volatile_default
from shardmerge.schemas.lattice.type_join import reads_alike
from shardmerge.schemas.model.coded_text import CodedText
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.shard_columns import Lineage, ShardColumn
from shardmerge.schemas.model.tables import Column

from .added_column_values import UNKNOWN, fill_text
from .row_effect import RowEffect
from .value_changes import keeps_values, value_change

_NONE: Mapping[str, str] = MappingProxyType({})
AGAIN = CodedText("it was dropped and added again", "SM-1802")
_NAMED_LIKE = CodedText("it got the name of a column that other shards have", "SM-1804")
_RENAMED_FROM = "RENAME FROM "
_COPIED = re.compile(r"_(?P<table>.+)_(gho|new)")
"""Names of tables that gh-ost and pt-online-schema-change fill with a shard's rows and then swap
with the shard."""
_MOVES_ROWS = re.compile(
    r"(DROP|TRUNCATE|EXCHANGE|CONVERT|DISCARD|IMPORT) PARTITION\b.*|CONVERT TABLE\b.*"
    r"|(DISCARD|IMPORT) TABLESPACE\b.*|IGNORE .*",
    re.DOTALL,
)


def row_effects(
    before: Sequence[ShardColumn],
    after: Sequence[ShardColumn],
    lineage: Sequence[Lineage],
    moved: Mapping[str, str] = _NONE,
) -> tuple[RowEffect, ...]:
    """The effects of a change on the shard's existing rows, in the order of its columns.

    Args:
        before: The shard's columns before the change, with identities.
        after: Its columns after the change.
        lineage: One entry for each column of ``after``.
        moved: Identity before → identity after, for a rename whose values the target moves itself.
    """
    by_name = {item.column.name.lower(): item for item in before}
    known = {item.id for item in before}
    found = []
    converted = _converted(by_name, after, lineage)
    for item, line in zip(after, lineage, strict=True):
        if line.before:
            was = by_name[line.before.lower()]
            effect = _changed(was, item) or _recomputed(item, converted)
            if effect is None and moved.get(was.id, was.id) != item.id:
                effect = _unknown(item, _NAMED_LIKE)
        else:
            effect = _added(item)
            if item.id in known:
                # The target still has the values from before the drop, whatever they are.
                found.append(_unknown(item, AGAIN))
                effect = replace(effect, reason=AGAIN.text, code=AGAIN.code)
        if effect is not None:
            found.append(effect)
    return tuple(found)


def arrival_effects(after: Sequence[ShardColumn], actions: Sequence[str]) -> tuple[RowEffect, ...]:
    """The effects of a RENAME that gave another table, with its rows, the shard's name.

    gh-ost and pt-online-schema-change swap a copy with the shard. The copy holds the shard's own
    rows, changed as by an ALTER TABLE, so it has no effects beyond ``row_effects``.

    Args:
        after: The shard's columns after the change.
        actions: The actions of the schema change, see ``SchemaChange``.
    """
    origins = [text.removeprefix(_RENAMED_FROM) for text in actions if _RENAMED_FROM in text]
    origin = next((o for o in origins if not _COPIED.fullmatch(o.rpartition(".")[2])), "")
    if not origin:
        return ()
    why = CodedText(f"the table came with its rows from {origin}", "SM-1806")
    return unknown_effects(after, why)


def unknown_effects(columns: Iterable[ShardColumn], why: CodedText) -> tuple[RowEffect, ...]:
    """The effects of a change whose results are not known.

    Args:
        columns: The shard's columns.
        why: What happened, a clause for people.
    """
    return tuple(_unknown(item, why) for item in columns)


def moved_rows(actions: Iterable[str]) -> tuple[str, ...]:
    """The actions that remove rows from the table, or add some, without row events.

    A snapshot does not repair the target: it does not report rows that are gone.

    Args:
        actions: The actions of the schema change, see ``SchemaChange``.
    """
    return tuple(action for action in actions if _moves_rows(action))


@lru_cache(maxsize=1_024)
def _moves_rows(action: str) -> bool:
    return _MOVES_ROWS.fullmatch(action) is not None


def held_effects(
    earlier: Sequence[RowEffect],
    now: Sequence[RowEffect],
    before: Sequence[ShardColumn],
    after: Sequence[ShardColumn],
    moved: Mapping[str, str] = _NONE,
) -> tuple[RowEffect, ...]:
    """The effects of a held shard's changes so far, for the decision that releases it.

    Args:
        earlier: The effects of the shard's held changes before this one.
        now: The effects of this change.
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
    """The effects, without those that precede the last adding of their column.

    Such an effect changed values that are gone: the column was dropped and added again after it.

    Args:
        effects: The effects of one shard, in their order.
        ids: Identities of the columns for which effects are left out. The target must have lost
            the values from before the drop, too.
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
    """The effects that the target's rows do not show, or may not show; the last one per column.

    Args:
        effects: The effects of one change of a shard, or of all its held changes in their order.
        columns: The shard's columns after these changes.
        before: The target's columns before the decision that lets the shard's changed rows in.
        after: Its columns after that decision.
        fills: The result of ``next_fills`` before that decision: the values that shards without a
            column have in it.
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
    """The value that a column has, after a decision, in the target's rows of shards that lack it.

    Args:
        fills: The same before the decision.
        before: The target's columns before the decision.
        after: Its columns after it.
        given_up: Identities of columns that a shard no longer has. That shard's rows keep their
            values in the target.

    Returns:
        Identity → fill. A column without an entry does not have the same known value in all rows.
    """
    gone = set(given_up)
    found = {}
    if before is after:  # no column came, went or changed
        for column_id in (item.id for item in after if item.id in fills):
            if column_id not in gone and (fill := fills[column_id]):
                found[column_id] = fill
        return found
    old = {item.id: item.column for item in before}
    for item in after:
        was = old.get(item.id)
        if was is None:
            fill = fill_text(item.column)
        elif item.id in gone or not _fills_alike(was, item.column):
            fill = UNKNOWN
        else:
            fill = fills.get(item.id, UNKNOWN)
        if fill:
            found[item.id] = fill
    return found


def _fills_alike(before: Column, after: Column) -> bool:
    return before is after or fill_text(before) == fill_text(after)


def _converted(
    before: Mapping[str, ShardColumn], after: Sequence[ShardColumn], lineage: Sequence[Lineage]
) -> set[str]:
    """The columns, in lower case, of whose values an expression may have another value now."""
    found = set()
    for item, line in zip(after, lineage, strict=True):
        was = before[line.before.lower()].column if line.before else item.column
        if was.type is not item.column.type and not (
            reads_alike(was.type, item.column.type) and keeps_values(was.type, item.column.type)
        ):
            found.add(item.column.name.lower())
    return found


def _recomputed(item: ShardColumn, converted: Collection[str]) -> RowEffect | None:
    """The effect on a computed column whose definition stays, of converting what it names."""
    column = item.column
    if not converted or column.generated is None:
        return None
    names = [n for n in column_names(column.generated.expression) if n.lower() in converted]
    if not names:
        return None
    reason = f"it is computed of {', '.join(names)}, whose values are converted to another type"
    return RowEffect(item.id, column.name, fill_text(column), reason, code="SM-1803")


def _changed(before: ShardColumn, after: ShardColumn) -> RowEffect | None:
    if before.column is after.column:
        return None
    reason = value_change(before.column, after.column)
    if not reason:
        return None
    fill = fill_text(after.column) if after.column.generated is not None else UNKNOWN
    return RowEffect(after.id, after.column.name, fill, reason, code="SM-1803")


def _added(item: ShardColumn) -> RowEffect:
    volatile = volatile_default(item.column)
    if volatile is not None:
        reason = f"it was added with DEFAULT {volatile.expression}"
    elif item.column.auto_increment:
        reason = "AUTO_INCREMENT numbered the rows"
    else:
        reason = "it was added"
    fill = fill_text(item.column)
    return RowEffect(item.id, item.column.name, fill, reason, anew=True, code="SM-1801")


def _unknown(item: ShardColumn, why: CodedText) -> RowEffect:
    return RowEffect(item.id, item.column.name, UNKNOWN, why.text, code=why.code)


def _against(effect: RowEffect, there: str) -> RowEffect:
    """The effect, with a reason that names the shard's value and the target's."""
    if not effect.fill:
        return effect
    other = there or "values that nobody can tell"
    return replace(
        effect, reason=f"{effect.reason}, its rows have {effect.fill}, the target's {other}"
    )
