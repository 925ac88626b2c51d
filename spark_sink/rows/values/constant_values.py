"""Values that all rows of a segment have in common. Pure.

They belong to the origin columns, and to columns that the shard added after these rows. Rows behind
a held gate come to the target after the shard has changed its schema again. In an added column they
get the value that ADD COLUMN gave the shard's own rows (``schemas.effects.added_column_values``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shardmerge.schemas.effects.added_column_values import added_default
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import DefaultKind
from shardmerge.schemas.model.types import ColumnType

from .forms import Form, form_of
from .times import day_of, moment_of, time_of


@dataclass(frozen=True, slots=True)
class ConstantValue:
    """The neutral value of every row in one column; None is NULL."""

    form: Form
    value: Any


def added_value(added: ShardColumn) -> ConstantValue | None:
    """The value that ADD COLUMN put into the rows; None when it is not known."""
    default, form = added_default(added.column), form_of(added.column.type)
    if default is None or default.kind is DefaultKind.EXPRESSION or form is None:
        return None
    if default.kind is DefaultKind.NULL:
        return ConstantValue(form, None)
    try:
        return ConstantValue(form, _READ.get(form, str)(default.text))
    except ValueError:
        return None


def group_constant(kind: ColumnType, text: str) -> ConstantValue:
    """The value of an origin column of a group, whose type is an integer type or varchar."""
    return ConstantValue(*(Form.INTEGER, int(text)) if kind.is_integer else (Form.TEXT, text))


def _bits(text: str) -> int:
    return int(text.removeprefix("b").strip("'"), 2)


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))


def _timestamp(text: str) -> str:
    return f"{text.replace(' ', 'T')}Z"


_READ: dict[Form, Callable[[str], Any]] = {
    Form.INTEGER: int,
    Form.YEAR: int,
    Form.FLOAT: float,
    Form.DATE: day_of,
    Form.TIME: time_of,
    Form.DATETIME_MS: lambda text: moment_of(text) // 1_000,
    Form.DATETIME_US: moment_of,
    Form.TIMESTAMP: _timestamp,
    Form.BYTES: _bytes,
    Form.BITS: _bits,
}
"""How the literal of a default is read; the other forms are texts."""
