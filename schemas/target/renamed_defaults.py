"""Defaults that name a renamed column. Pure.

Source: MySQL 8.0 Reference Manual, "Data Type Default Values"; error 3766.
"""

from __future__ import annotations

from shardmerge.schemas.ddl.expressions import column_names
from shardmerge.schemas.lattice.type_join import WIDE, TypeRules
from shardmerge.schemas.model.coded_text import CodedText
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.mysql_facts import NULL_DEFAULT
from shardmerge.schemas.model.tables import Column, DefaultKind
from shardmerge.schemas.records.decisions import StatementKind
from shardmerge.schemas.target.dialects.dialect import CannotRender, Dialect

from .diff_columns import ColumnMove, Step, column_steps


def named_by_default(column: Column) -> tuple[str, ...]:
    """The columns that the column's default names."""
    default = column.default
    if default is None or default.kind is not DefaultKind.EXPRESSION:
        return ()
    return column_names(default.text)


def freed_steps(
    before: Column,
    after: Column,
    *,
    ours: bool,
    dialect: Dialect,
    types: TypeRules = WIDE,
) -> ColumnMove | CannotRender:
    """The steps of a column whose default names a column that is renamed.

    MySQL refuses the rename (error 3766), so the default goes before it, and comes after it. Both
    statements switch: rows from before them, which may count on the default, are applied before,
    and rows from after them when the column has its default again.

    Args:
        before: The target's definition now.
        after: The definition that it must have.
        ours: Whether the default of ``after`` is a zero value that no shard has.
        dialect: The target's dialect, for its zero values.
        types: As for ``column_steps``.
    """
    free = replace(before, default=NULL_DEFAULT if before.nullable else None)
    text = f"the default of {after.name} names a column that is renamed, so it goes before that"
    first = Step(
        replace(before, name=after.name),
        replace(free, name=after.name),
        StatementKind.SWITCHING,
        CodedText(text, "SM-1914"),
    )
    move = column_steps(free, after, ours=ours, dialect=dialect, types=types)
    if isinstance(move, CannotRender) or after.generated is not None:
        return move
    up, down = (tuple(map(_switching, steps)) for steps in (move.up, move.down))
    return replace(move, first=(first,), up=up, down=down)


def _switching(step: Step) -> Step:
    """The step, in which the column may get its default back, as one for which later rows wait."""
    if step.before.default == step.after.default:
        return step
    why = CodedText(f"{step.after.name} has a default again", "SM-1914")
    return replace(step, kind=StatementKind.SWITCHING, why=why)
