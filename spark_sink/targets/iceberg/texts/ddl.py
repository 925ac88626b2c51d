"""The statements that decisions hold for Iceberg tables, and what they make of a layout. Pure.

They are the texts of ``schemas.target.dialects.spark`` and nothing else: what is not one of them is
refused, not guessed. They are not handed to Spark, whose ALTER TABLE commits by itself: the
sink commits the new schema together with the journal's entry, see ``journal``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from shardmerge.schemas.model.errors import (
    UnparsableDDL,
    UnsupportedDDL,
)
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.target.dialects.spark_types import can_widen

from .layout import (
    Field,
    Layout,
    iceberg_type,
    misfit,
)

_NAME = r"`((?:[^`]|``)+)`"
_TYPE = r"([a-z_]+(?:\(\d+,\d+\))?)"
_STRING = r"'((?:[^'\\]|\\.)*)'"
_COLUMN = re.compile(rf"{_NAME} {_TYPE}( NOT NULL)?(?: COMMENT {_STRING})?", re.DOTALL)
_CREATE = re.compile(rf"CREATE TABLE {_NAME}\.{_NAME} \(", re.DOTALL)
_USING = re.compile(rf"\) USING iceberg(?: COMMENT {_STRING})?\Z", re.DOTALL)
_ALTER = re.compile(rf"ALTER TABLE {_NAME}\.{_NAME} (.*)\Z", re.DOTALL)
_RENAME = re.compile(rf"RENAME COLUMN {_NAME} TO {_NAME}\Z")
_DROP = re.compile(rf"DROP COLUMN {_NAME}\Z")
_CHANGE = re.compile(rf"ALTER COLUMN {_NAME} (.*)\Z", re.DOTALL)
_CHANGE_TYPE = re.compile(rf"TYPE {_TYPE}\Z")
_CHANGE_COMMENT = re.compile(rf"COMMENT {_STRING}\Z", re.DOTALL)

Change: TypeAlias = Callable[[Layout], Layout]


@dataclass(frozen=True, slots=True)
class CreateTable:
    """``layout`` of a new table, and its comment."""

    table: TargetTable
    layout: Layout
    comment: str


@dataclass(frozen=True, slots=True)
class AlterTable:
    """A change of a table.

    Attributes:
        change: Gives the new layout; raises ``UnsupportedDDL`` when it does not apply.
        added: The column that it adds, without its id; None when it adds none.
        dropped: The name of the column that it drops, "" when it drops none.
    """

    table: TargetTable
    change: Change
    added: Field | None = None
    dropped: str = ""

    def there_already(self, layout: Layout) -> str | None:
        """Whether an ADD COLUMN finds its column, or a DROP COLUMN finds it gone.

        Returns:
            None when it does not, and must be executed; "" when the table is as good as after it;
            else why the column that is there does not fit.
        """
        if self.dropped:
            return "" if layout.field(self.dropped) is None else None
        found = layout.field(self.added.name) if self.added is not None else None
        if self.added is None or found is None:
            return None
        alone = replace(layout, fields=(found,))
        reason = misfit(replace(layout, fields=(self.added,)), alone)
        return f"column {found.name} is there already and does not fit: {reason}" if reason else ""


def parse_statement(sql: str) -> CreateTable | AlterTable:
    """Read a statement.

    Raises:
        UnparsableDDL: It is none that Iceberg targets get.
    """
    if found := _CREATE.match(sql):
        return _create(sql, found)
    if (found := _ALTER.match(sql)) and (change := _change(found[3])):
        added, dropped = _added(found[3]), _DROP.match(found[3])
        return AlterTable(
            _table(found),
            change,
            None if added is None else _field(added, 0),
            _name(dropped[1]) if dropped else "",
        )
    raise UnparsableDDL(
        "this is no statement that Iceberg targets get: CREATE TABLE … USING iceberg,"
        " ALTER TABLE … ADD, DROP, RENAME or ALTER COLUMN",
        sql,
        0,
    )


def _create(sql: str, head: re.Match[str]) -> CreateTable:
    fields: list[Field] = []
    place = head.end()
    while column := _COLUMN.match(sql, place):
        fields.append(_field(column, len(fields) + 1))
        place = column.end()
        if not sql.startswith(", ", place):
            break
        place += 2
    tail = _USING.match(sql, place)
    if not fields or tail is None:
        raise UnparsableDDL(f"{sql[place : place + 60]!r} is not understood", sql, place)
    return CreateTable(_table(head), Layout(tuple(fields), len(fields)), _text(tail[1]))


def _change(action: str) -> Change | None:
    if (column := _added(action)) is not None:
        return lambda layout: _add(layout, column)
    if dropped := _DROP.match(action):
        return lambda layout: _drop(layout, _name(dropped[1]))
    if renamed := _RENAME.match(action):
        return lambda layout: _rename(layout, _name(renamed[1]), _name(renamed[2]))
    if changed := _CHANGE.match(action):
        name, what = _name(changed[1]), changed[2]
        if what == "DROP NOT NULL":
            return lambda layout: _replace(layout, replace(_known(layout, name), required=False))
        if kind := _CHANGE_TYPE.match(what):
            return lambda layout: _widen(layout, name, iceberg_type(kind[1]))
        if text := _CHANGE_COMMENT.match(what):
            doc = _text(text[1])
            return lambda layout: _replace(layout, replace(_known(layout, name), doc=doc))
    return None


def _added(action: str) -> re.Match[str] | None:
    if not action.startswith("ADD COLUMN "):
        return None
    return _COLUMN.fullmatch(action.removeprefix("ADD COLUMN "))


def _add(layout: Layout, column: re.Match[str]) -> Layout:
    field = _field(column, layout.last_id + 1)
    if layout.field(field.name) is not None:
        raise UnsupportedDDL(f"there is a column {field.name} already")
    if field.required:
        raise UnsupportedDDL(f"{field.name} cannot be added NOT NULL to a table that is there")
    return replace(layout, fields=(*layout.fields, field), last_id=field.id)


def _drop(layout: Layout, name: str) -> Layout:
    field = _known(layout, name)
    if field.id in layout.identifiers:
        raise UnsupportedDDL(f"{name} is an identifier field of the table")
    return replace(layout, fields=tuple(f for f in layout.fields if f.id != field.id))


def _rename(layout: Layout, name: str, to: str) -> Layout:
    field, other = _known(layout, name), layout.field(to)
    if other is not None and other.id != field.id:
        raise UnsupportedDDL(f"there is a column {to} already")
    return _replace(layout, replace(field, name=to))


def _widen(layout: Layout, name: str, kind: str) -> Layout:
    field = _known(layout, name)
    if field.type != kind and not can_widen(field.type, kind):
        raise UnsupportedDDL(f"Iceberg does not change {name} from {field.type} to {kind}")
    return _replace(layout, replace(field, type=kind))


def _known(layout: Layout, name: str) -> Field:
    field = layout.field(name)
    if field is None:
        raise UnsupportedDDL(f"there is no column {name}")
    return field


def _replace(layout: Layout, field: Field) -> Layout:
    return replace(layout, fields=tuple(field if f.id == field.id else f for f in layout.fields))


def _field(found: re.Match[str], number: int) -> Field:
    return Field(
        number, _name(found[1]), iceberg_type(found[2]), found[3] is not None, _text(found[4])
    )


def _table(found: re.Match[str]) -> TargetTable:
    return TargetTable(_name(found[1]), _name(found[2]))


def _name(quoted: str) -> str:
    return quoted.replace("``", "`")


def _text(quoted: str | None) -> str:
    """The inverse of ``schemas.target.dialects.spark``'s way of writing a string."""
    return re.sub(r"\\(.)", lambda m: _ESCAPED.get(m[1], m[1]), quoted or "", flags=re.DOTALL)


_ESCAPED = {"n": "\n", "r": "\r"}
