"""What is done when a shard's rows differ from the target's: record, statement and warnings."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from shardmerge.agents.coordination.state.shard_state import ShardState
from shardmerge.agents.coordination.state.target_state import TargetState
from shardmerge.schemas.effects.row_effect import RowEffect
from shardmerge.schemas.effects.row_effects import moved_rows
from shardmerge.schemas.lattice.joined import ShardSchema
from shardmerge.schemas.model.coded_text import CodedText
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.policies import ExistingRows
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.records.decisions import Fixup, FixupKind, TargetStatement
from shardmerge.schemas.records.earlier_codes import EARLIER
from shardmerge.schemas.records.schema_changes import SchemaChange
from shardmerge.schemas.target.dialects.dialect import Dialect
from shardmerge.schemas.target.row_statements import filling

from .rereads import is_read_as_whole, why_not_read_again

_KINDS = {
    ExistingRows.REREAD: FixupKind.SNAPSHOT,
    ExistingRows.ACCEPT: FixupKind.ACCEPT,
    ExistingRows.HOLD: FixupKind.HOLD,
}
_OUTCOMES = {
    FixupKind.SNAPSHOT: "they are read again",
    FixupKind.RELOAD: "they are taken out of the target, and read again",
    FixupKind.WHOLE: "the table is read again as a whole (by the watchdog), its rows wait for that",
    FixupKind.LOAD: "they are taken out of the target, and the sink reads the table",
    FixupKind.UPDATE: "they get the same values",
    FixupKind.ACCEPT: "they stay different until they are written again",
    FixupKind.HOLD: "the shard is paused: look at them, then resume it",
}


def fixup_of(new: TargetState, name: ShardId, found: Sequence[RowEffect], *, mended: bool) -> Fixup:
    """The fix-up for effects that a shard's own rows had, and its rows in the target did not.

    Args:
        new: The state after the change.
        name: The shard whose rows differ.
        found: The effects.
        mended: Whether statements of the decision give all of the rows their values.
    """
    columns = tuple(effect.name for effect in found)
    reason = "; ".join(f"{effect.name}: {effect.reason}" for effect in found)
    code = found[0].code or EARLIER
    kind = FixupKind.UPDATE if mended else _KINDS[new.policies.existing_rows]
    if kind is not FixupKind.SNAPSHOT:
        return Fixup(name, kind, columns, reason, code)
    schema = new.shards[name].table
    if is_read_as_whole(name, schema):
        return Fixup(name, FixupKind.WHOLE, columns, reason, code)
    if why_not := why_not_read_again(name, schema):
        kind = FixupKind.ACCEPT
        reason += f"; {why_not}"
    return Fixup(name, kind, columns, reason, code)


def reloading_fixup(shard: ShardState) -> Fixup:
    """The fix-up of a shard whose rows the target's new primary key does not tell apart."""
    assert shard.table is not None
    key = shard.table.primary_key
    reason = "the primary key is another one, and no row event told its values"
    columns = key.columns if key else ()
    return Fixup(shard.shard, FixupKind.RELOAD, columns, reason, "SM-1810")


def filling_statement(
    new: TargetState,
    name: ShardId,
    found: Sequence[RowEffect],
    dialect: Dialect,
    copied: Container[str],
) -> TargetStatement | None:
    """The statement that gives the target's rows of a shard the values of the shard's rows.

    None in these cases: there are no effects; propagation is disabled; origin columns do not tell
    the shard's rows from others; a value is not known; a column takes part in a rename by copying
    (``copied``); the target may have rows that the shard wrote after the change.
    """
    if not found or any(effect.id in copied or effect.passed for effect in found):
        return None
    if not new.policies.origin.tells_shards_apart or not new.propagates:
        return None
    columns = {item.id: item.column for item in new.columns}
    values = []
    for effect in found:
        column = columns[effect.id]
        literal = None
        if column.generated is None:
            literal = dialect.row_value(effect.fill, column)
        if literal is None:
            return None
        values.append((column, literal))
    why = CodedText(f"rows that {name} had before hold other values than the target's", "SM-1921")
    return filling(
        new.target,
        name,
        new.policies.origin,
        values,
        why,
        dialect=dialect,
        columns=list(columns.values()),
    )


def fixup_warning(fixup: Fixup) -> CodedText:
    """What the operator is told of a fix-up."""
    rows = str(fixup.shard)
    if fixup.columns:
        rows = f"rows that {rows} had before may differ in {', '.join(fixup.columns)}"
    between = ", " if fixup.columns else ": "
    text = f"{rows}{between}{_OUTCOMES[fixup.kind]}: {fixup.reason}"
    return CodedText(text, code=fixup.code)


def held_warnings(
    new: TargetState, lost: Iterable[ShardId], renewed: Container[str]
) -> list[CodedText]:
    """Warnings about held shards that lose values with columns that are made anew."""
    found = []
    for name in sorted(lost):
        if new.shards[name].hold:
            columns = columns_of(new.shards[name].real)
            names = ", ".join(item.column.name for item in columns if item.id in renewed)
            text = (
                f"rows that {name} had before lack {names}, until the shard is held no longer: "
                "then they are read again"
            )
            found.append(CodedText(text, "SM-1710"))
    return found


def moved_warnings(change: SchemaChange) -> list[CodedText]:
    """What the operator is told of rows that the change moved without row events."""
    return [
        CodedText(
            f"{action} on {change.shard} moves rows without row events: the target keeps those "
            "that went, and lacks those that came until they are written again",
            "SM-1712",
        )
        for action in moved_rows(change.actions)
    ]


def columns_of(schema: ShardSchema | None) -> tuple[ShardColumn, ...]:
    """The columns of a schema; none without one."""
    return schema.own_columns if schema else ()
