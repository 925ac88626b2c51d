"""Which rows of which shards have to be read again after a decision. Pure.

A schema change can alter its shard's rows without row events (``row_effects``). The decision that
lets the changed rows in compares these effects with what the target holds. For a held shard, this
is the decision that releases it; until then its hold carries the effects.

Where the rows may differ, the decision updates them itself, if origin columns tell the shard's rows
from others, and if the values that the change put into all of them are known. Otherwise it does
what the shard's route says: it asks for a snapshot of the table (or says that none can help),
accepts the difference, or pauses the shard.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from shardmerge.agents.coordination.decision_records import Step, warned, with_statement
from shardmerge.agents.coordination.state.shard_state import ShardState
from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.schemas.effects.row_effect import RowEffect
from shardmerge.schemas.effects.row_effects import (
    arrival_effects,
    differing,
    held_effects,
    next_fills,
    row_effects,
    since_added,
    unknown_effects,
)
from shardmerge.schemas.lattice.copied_columns import are_kin, is_in_line
from shardmerge.schemas.model.coded_text import CodedText
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.records.decisions import FixupKind, Outcome
from shardmerge.schemas.records.schema_changes import SchemaChange
from shardmerge.schemas.target.dialects.dialect import Dialect

from .column_replacement import (
    is_late,
    made_anew,
    renewed_behind_gate,
    values_to_read_again,
    with_converted,
)
from .fixup_records import (
    columns_of,
    filling_statement,
    fixup_of,
    fixup_warning,
    held_warnings,
    moved_warnings,
    reloading_fixup,
)
from .leftovers import leftover_effects, with_cleared
from .rereads import lost_by_reading
from .whole_readings import with_awaited, with_mates


def with_fixups(
    old: TargetState, change: SchemaChange | None, step: Step, dialect: Dialect
) -> Step:
    """The step, with fix-ups for the existing rows that its change altered.

    Args:
        old: The state before the change.
        change: The change; None for an operator's command.
        step: Its answer, without fix-ups.
        dialect: The target's kind and version.
    """
    decision, new = step.decision, step.state
    if decision is None or decision.outcome is Outcome.REFUSED:
        return step
    effects = {name: _hold_effects(old, name) for name in decision.released}
    now: Sequence[RowEffect] = ()
    if change is not None and (change.after is not None or change.error):
        effects[change.shard], now = _effects(old, change, new)
    copied = {i for copy in (*old.copies, *new.copies) for i in (copy.before, copy.after)}
    if change is None or old.skipping:
        effects |= _late_columns(old, new, effects)
    renewed = made_anew(decision, new.columns)
    lost = values_to_read_again(new, effects, renewed)
    effects |= lost
    effects |= _counting_again(old, new, effects)
    effects |= _behind_a_passed_gate(new, decision.released, effects)
    new = _carried(new, effects)
    moved = [name for name in effects if name in new.shards and not new.shards[name].hold]
    had: Sequence[ShardColumn] = old.columns
    if renewed:
        had = [column for column in old.columns if column.id not in renewed]
    given_up = _given_up(old, new, moved)
    fills = next_fills(old.fills, had, new.columns, given_up)
    # A rename by copying has two columns: some rows have the values in one, some in the other.
    fills = {column_id: fill for column_id, fill in fills.items() if column_id not in copied}
    if fills != old.fills:
        new = replace(new, fills=fills)
    fixups = [*decision.fixups]  # an operator's
    reloaded = {reload.shard for reload in decision.reloads}
    loaded = {fixup.shard for fixup in fixups if fixup.kind is FixupKind.LOAD}
    # A table that was read as a whole (``began_ms``) has come already.
    asked = (r.shard for r in decision.reloads if not r.began_ms and r.shard not in loaded)
    fixups += [reloading_fixup(new.shards[name]) for name in asked]
    left = leftover_effects(old, new, given_up, decision.statements)
    has = _with_values_of_rows(new, dialect)
    for name in sorted({*moved, *left} - reloaded):
        columns = _that_count(new.shards[name])
        since = since_added(effects.get(name, ()), renewed)
        found = differing(since, columns, had, has, old.fills)
        early = left.get(name, [])
        if not (found or early):
            continue
        cleared = filling_statement(new, name, early, dialect, copied)
        filled = filling_statement(new, name, found, dialect, copied)
        mended = (not early or cleared is not None) and (not found or filled is not None)
        fixups.append(fixup_of(new, name, (*found, *early), mended=mended))
        if mended and cleared is not None:
            step = with_cleared(step, cleared, early)
        if mended and filled is not None:
            step = with_statement(step, filled)
    fixups = with_mates(new, fixups)
    new = with_awaited(new, fixups, reloaded)
    decision = step.decision
    assert decision is not None
    told = [*map(fixup_warning, fixups), *held_warnings(new, lost, renewed)]
    told += moved_warnings(change) if change else ()
    told += [w for f in fixups for w in lost_by_reading(f, columns_of(new.shards[f.shard].real))]
    for fixup in fixups:
        if fixup.kind is FixupKind.HOLD and not new.shards[fixup.shard].paused:
            new = new.with_shard(replace(new.shards[fixup.shard], paused=True))
            decision = replace(decision, pauses=tuple(sorted((*decision.pauses, fixup.shard))))
    behind = renewed_behind_gate(old.shards.get(change.shard) if change else None, now)
    if told or fixups or behind:
        decision = replace(warned(decision, told), fixups=tuple(fixups), renewed=behind)
    return Step(new, decision, step.joined)


def _hold_effects(old: TargetState, name: ShardId) -> tuple[RowEffect, ...]:
    known = old.shards.get(name)
    return known.hold.effects if known and known.hold else ()


def _effects(
    old: TargetState, change: SchemaChange, new: TargetState
) -> tuple[tuple[RowEffect, ...], Sequence[RowEffect]]:
    """The effects on a shard's rows of all changes that the target has not followed yet.

    Returns:
        All effects, and those of this change alone.
    """
    known, shard = old.shards.get(change.shard), new.shards.get(change.shard)
    earlier = _hold_effects(old, change.shard)
    before = columns_of(known.real if known else None)
    if shard is None or change.snapshot:
        return earlier, ()
    if change.error:
        why = CodedText("a statement that could not be read may have changed it", "SM-1805")
        unknown = unknown_effects(before, why)
        return held_effects(earlier, unknown, before, before), unknown
    after = columns_of(shard.real)
    moved = _moved(old, new, before, after, change)
    now = list(row_effects(before, after, change.lineage, moved)) if change.lineage else []
    if is_late(known, new.policies.existing_rows, change):
        now = with_converted(now, before, after)
    now += arrival_effects(after, change.actions)
    if known and known.hold and moved:
        why = CodedText("it was renamed while its rows waited", "SM-1804")
        now += unknown_effects([item for item in after if item.id in moved.values()], why)
    return held_effects(earlier, now, before, after, moved), now


def _moved(
    old: TargetState,
    new: TargetState,
    before: Sequence[ShardColumn],
    after: Sequence[ShardColumn],
    change: SchemaChange,
) -> dict[str, str]:
    """Old → new identity of renamed columns whose values the target moves or has moved.

    The values of a column of the target follow its renames. A column that only held changes had has
    no values in the target, so renames in any direction may connect it with the new identity.
    """
    by_name = {item.column.name.lower(): item for item in before}
    there = {item.id for item in old.columns}
    found = {}
    for item, line in zip(after, change.lineage, strict=False):
        was = by_name.get(line.before.lower()) if line.before else None
        if was is None or was.id == item.id:
            continue
        if was.column.generated is not None or item.column.generated is not None:
            continue
        kin = is_in_line if was.id in there else are_kin
        if kin(new.copies, was.id, item.id):
            found[was.id] = item.id
    return found


def _late_columns(
    old: TargetState, new: TargetState, effects: Mapping[ShardId, tuple[RowEffect, ...]]
) -> dict[ShardId, tuple[RowEffect, ...]]:
    """The effects on shards that had a column before the target, because an operator delayed it.

    Each result includes the shard's earlier effects, from ``effects`` or from its hold.
    """
    had = {item.id for item in old.columns}
    late = {c.id for c in new.columns if c.id not in had and c.column.generated is None}
    if not late:
        return {}
    found = {}
    for name, shard in new.shards.items():
        known = old.shards.get(name)
        if known is None:
            continue
        earlier = effects.get(name, shard.hold.effects if shard.hold else ())
        without = {effect.id for effect in earlier if effect.anew} | shard.left_out
        columns = [c for c in columns_of(known.real) if c.id in late and c.id not in without]
        if columns:
            why = CodedText("it had values already when the target got it", "SM-1807")
            found[name] = (*earlier, *unknown_effects(columns, why))
    return found


def _counting_again(
    old: TargetState, new: TargetState, effects: Mapping[ShardId, Sequence[RowEffect]]
) -> dict[ShardId, tuple[RowEffect, ...]]:
    """The effects on shards with columns that a command left out until now."""
    found = {}
    for name, known in effects.items():
        before, after = old.shards.get(name), new.shards.get(name)
        if before is None or after is None or after.hold or not before.left_out:
            continue
        anew = {effect.id for effect in known if effect.anew}
        again = before.left_out - after.left_out - anew
        columns = [item for item in _that_count(after) if item.id in again]
        why = CodedText("its values were left out until now", "SM-1807")
        found[name] = (*known, *unknown_effects(columns, why))
    return found


def _behind_a_passed_gate(
    new: TargetState,
    released: Iterable[ShardId],
    effects: Mapping[ShardId, Sequence[RowEffect]],
) -> dict[ShardId, tuple[RowEffect, ...]]:
    """The effects on shards that a decision lets past one gate, while a later change holds them.

    Their fix-ups wait for the decision that releases them altogether. By then the target has the
    rows between the two gates, with values of their own.
    """
    return {
        name: tuple(replace(effect, passed=True) for effect in effects[name])
        for name in released
        if name in effects and name in new.shards and new.shards[name].hold
    }


def _with_values_of_rows(new: TargetState, dialect: Dialect) -> Sequence[ShardColumn]:
    """The target's columns that get their values from rows, not from an expression."""
    if not dialect.computes:
        return new.columns
    return [column for column in new.columns if column.column.generated is None]


def _that_count(shard: ShardState) -> tuple[ShardColumn, ...]:
    """The columns of a shard that is not held, without those that are left out of its rows."""
    columns, left_out = columns_of(shard.real), shard.left_out
    return tuple(c for c in columns if c.id not in left_out) if left_out else columns


def _carried(state: TargetState, effects: dict[ShardId, tuple[RowEffect, ...]]) -> TargetState:
    """The state in which every shard that is still held carries its effects."""
    for name, found in effects.items():
        shard = state.shards.get(name)
        if shard and shard.hold and shard.hold.effects != found:
            state = state.with_shard(replace(shard, hold=replace(shard.hold, effects=found)))
    return state


def _given_up(old: TargetState, new: TargetState, moved: Iterable[ShardId]) -> set[str]:
    """Columns that shards no longer have or that are left out; the target's rows keep the values.

    For a shard that was held, these include columns that it had at any time while it was held.
    """
    found: set[str] = set()
    for name in moved:
        before, after = old.shards.get(name), new.shards[name]
        schemas = before.schemas if before else ()
        ids = {item.id for schema in schemas for item in columns_of(schema)}
        found.update(ids.difference(item.id for item in _that_count(after)))
    return found
