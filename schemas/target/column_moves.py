"""How each column that stays gets from its old definition to its new one. Pure.

A column takes steps (``diff_columns``), or it is dropped and added again. The second happens when a
computed column cannot be changed in place (*rebuild*), or when no shard has the values any more
that the target has in the column (*anew*).
"""

from __future__ import annotations

from shardmerge.schemas.ddl.expressions import column_names
from shardmerge.schemas.target.dialects.dialect import CannotRender

from .diff_columns import ColumnMove, column_steps, merged_steps, opened_steps, redefines
from .renamed_defaults import freed_steps, named_by_default
from .target_change import TargetChange

_STAYS = ColumnMove()


def column_moves(change: TargetChange) -> dict[str, ColumnMove] | CannotRender:
    """Identity → move, for every column that stays; or why one of them cannot be changed."""
    moves: dict[str, ColumnMove] = {}
    for column_id in change.stays:
        move = _STAYS if _is_untouched(change, column_id) else _move(change, column_id)
        if isinstance(move, CannotRender):
            return move
        moves[column_id] = move
    if change.dialect.fixes_named_columns:
        _rebuild_computed(change, moves)
    return _refusal(change, moves) or moves


def needs_no_index(change: TargetChange, move: ColumnMove) -> bool:
    """Whether one of a column's steps is possible only while no secondary index names it."""
    steps = (*move.first, *move.up, *move.down)
    return any(change.dialect.needs_no_index(s.before.type, s.after.type) for s in steps)


def _is_untouched(change: TargetChange, column_id: str) -> bool:
    """Whether it is cheap to see that a column takes no step."""
    before, after = change.before[column_id], change.after[column_id]
    is_copied = change.copies.renamed or change.copies.merges
    return before is after and before.generated is None and not is_copied


def _move(change: TargetChange, column_id: str) -> ColumnMove | CannotRender:
    move = _converting(change, column_id)
    if isinstance(move, ColumnMove) and not move.switches:
        return move
    if _can_be_made_anew(change, column_id) and change.renewed(column_id):
        return ColumnMove(anew=True)
    return move


def _converting(change: TargetChange, column_id: str) -> ColumnMove | CannotRender:
    before, after = change.before[column_id], change.after[column_id]
    if before.generated is not None and after.generated is not None:
        names = column_names(before.generated.expression)
        if any(change.renamed.get(n.lower(), n) != n for n in names):
            # MySQL refuses to rename a column that a computed one names.
            return ColumnMove(rebuild=True)
    if any(merge.kept == column_id for merge in change.copies.merges):
        return merged_steps(before, after, dialect=change.dialect, types=change.types)
    steps = column_steps
    if any(change.renamed.get(n.lower(), n) != n for n in named_by_default(before)):
        steps = freed_steps
    elif change.copies.renamed.get(column_id) in change.after:
        steps = opened_steps
    ours = column_id in change.to.ours
    return steps(before, after, ours=ours, dialect=change.dialect, types=change.types)


def _can_be_made_anew(change: TargetChange, column_id: str) -> bool:
    """Whether the column's type changes, and no key and no expression needs the column."""
    before, after = change.before[column_id], change.after[column_id]
    if after.generated is not None or (before.generated is None and before.type == after.type):
        return False
    standing = {*change.key, *change.new_key}
    for schema in (change.from_schema, change.to.schema):
        texts = [check.expression for check in schema.checks]
        texts += [c.generated.expression for c in schema.columns if c.generated is not None]
        standing.update(name.lower() for text in texts for name in column_names(text))
        standing.update(name.lower() for c in schema.columns for name in named_by_default(c))
    # A table keeps at least one column.
    others = (i for i in change.stays if i != column_id)
    stays = any(change.before[i].type == change.after[i].type for i in others)
    return stays and standing.isdisjoint((before.name.lower(), after.name.lower()))


def _rebuild_computed(change: TargetChange, moves: dict[str, ColumnMove]) -> None:
    """Rebuild the computed columns that change, or that name a column that changes."""
    changed = {
        name.lower()
        for i, move in moves.items()
        if any(map(redefines, (*move.first, *move.up, *move.down)))
        for name in (change.before[i].name, change.after[i].name)
    }
    for column_id, move in moves.items():
        before, after = change.before[column_id].generated, change.after[column_id].generated
        if before is None or after is None:
            continue
        names = {*column_names(before.expression), *column_names(after.expression)}
        if move != ColumnMove() or changed.intersection(map(str.lower, names)):
            moves[column_id] = ColumnMove(rebuild=True)


def _refusal(change: TargetChange, moves: dict[str, ColumnMove]) -> CannotRender | None:
    """Why a column that would have to be rebuilt cannot be dropped; None when all can."""
    for column_id, move in moves.items():
        name = change.before[column_id].name
        if move.rebuild and name.lower() in change.key:
            return CannotRender(
                f"the generated column {name} would be dropped and added again, "
                "and the primary key needs it",
                f"take {name} out of the primary key, or undo the change of its expression",
                code="SM-1230",
            )
    return None
