"""Cells that all rows of a segment have in common. Pure.

They belong to the origin columns, and to columns that the shard added after these rows. Rows behind
a held gate come to the target after the shard has changed its schema again. In an added column they
get the value that ADD COLUMN gave the shard's own rows (``schemas.effects.added_column_values``).
"""

from __future__ import annotations

from dataclasses import dataclass

from shardmerge.schemas.effects.added_column_values import added_default
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import DefaultKind

from .cells import UnfitValue
from .columns import Form, encoder


@dataclass(frozen=True, slots=True)
class ConstantCell:
    """The cell of every row in one column; None is NULL."""

    form: Form
    cell: str | None


def added_cell(added: ShardColumn) -> ConstantCell | None:
    """The cell that ADD COLUMN put into the rows; None when it is not known."""
    default = added_default(added.column)
    if default is None or default.kind is DefaultKind.EXPRESSION:
        return None
    try:
        form = encoder(added.column.type).form
    except UnfitValue:
        return None
    if default.kind is DefaultKind.NULL:
        return ConstantCell(form, None)
    text = default.text
    if form is Form.BITS:
        return ConstantCell(form, str(int(text.removeprefix("b").strip("'"), 2)))
    return ConstantCell(form, text.removeprefix("0x") if form is Form.HEX else text)
