"""What a shard's server put into a column of the rows that were there when it was added. Pure.

Rows that stood behind a held gate come to the target when it is ahead of them: the shard has
changed its schema again since. They get what the shard's own rows got by that change.
"""

from __future__ import annotations

from dataclasses import dataclass

from shardmerge.schemas.model.mysql_facts import zero_value
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import (
    Column,
    Default,
    DefaultKind,
)
from shardmerge.schemas.model.types import (
    BLOB_NAMES,
    TEXT_NAMES,
)

from .columns import (
    Form,
    UnfitValue,
    encoder,
)


@dataclass(frozen=True, slots=True)
class Fill:
    """A value for every row, as a cell; see ``columns``."""

    form: Form
    cell: str | None


def fill_of(added: ShardColumn) -> Fill | None:
    """What ADD COLUMN fills in; None when it cannot be told, as for an expression.

    Source: MySQL Reference Manual, "ALTER TABLE" and "Data Type Default Values".
    """
    column = added.column
    if column.generated is not None or column.auto_increment:
        return None
    try:
        form = encoder(column.type).form
    except UnfitValue:
        return None
    default = column.default
    if default is None or default.kind is DefaultKind.NULL:
        if column.nullable:
            return Fill(form, None)
        return _zero(column, form)
    return _literal(default, form)


def _zero(column: Column, form: Form) -> Fill | None:
    name = column.type.name
    if name in TEXT_NAMES or name in BLOB_NAMES:
        return Fill(form, "")
    if name == "json":
        return Fill(form, "null")
    default = zero_value(column.type)
    return None if default is None else _literal(default, form)


def _literal(default: Default, form: Form) -> Fill | None:
    if default.kind is not DefaultKind.LITERAL:
        return None
    text = default.text
    if form is Form.BITS:
        return Fill(form, str(int(text.removeprefix("b").strip("'"), 2)))
    if form is Form.HEX:
        return Fill(form, text.removeprefix("0x"))
    return Fill(form, text)
