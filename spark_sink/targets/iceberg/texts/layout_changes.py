"""Computes an Iceberg table's layout after the actions of a target statement. Pure.

The sink does not run the statements in Spark, whose ALTER TABLE commits by itself. It commits the
new layout together with the journal's entry, see ``journal``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from shardmerge.schemas.model.actions import (
    Action,
    Adoption,
    ColumnAddition,
    ColumnRemoval,
    ColumnRename,
    CommentChange,
    NullPermission,
    TableCreation,
    TypeChange,
)
from shardmerge.schemas.model.errors import UnsupportedDDL
from shardmerge.schemas.model.tables import Column, TableSchema
from shardmerge.schemas.target.dialects.spark_types import can_widen, spark_type

from .layout import Field, Layout, iceberg_type, misfit


def created(actions: Sequence[Action]) -> TableSchema | None:
    """The table that a statement makes; None when it makes none."""
    match actions:
        case [TableCreation(schema=schema)]:
            return schema
        case _:
            return None


def new_layout(schema: TableSchema) -> Layout:
    """The layout of a table that is made."""
    fields = tuple(field_of(column, number) for number, column in enumerate(schema.columns, 1))
    return Layout(fields, len(fields))


def with_ids(layout: Layout, there: Layout) -> Layout:
    """A decided layout with the ids that an existing table gives to its columns."""
    fields = []
    for each in layout.fields:
        found = there.field(each.name)
        fields.append(each if found is None else replace(each, id=found.id))
    return replace(layout, fields=tuple(fields), last_id=there.last_id)


def layout_after(layout: Layout, actions: Sequence[Action]) -> Layout:
    """The layout after a statement.

    Raises:
        UnsupportedDDL: The statement does not apply to the layout, or is of no kind that is used
            for Iceberg tables.
    """
    if not actions:
        raise UnsupportedDDL("what the statement does is not known", code="SM-3109")
    if len(actions) > 1:
        raise UnsupportedDDL("an Iceberg table changes by one action at a time", code="SM-3109")
    return _after(layout, actions[0])


def there_already(
    layout: Layout, actions: Sequence[Action], *, executed: bool = False
) -> str | None:
    """Whether the column that a statement adds exists already, or what it drops is gone already.

    Args:
        layout: Of the table.
        actions: Of the statement.
        executed: Whether the statement was executed before, and the table was then not as
            expected. So a column with the new name of a rename is the renamed one.

    Returns:
        None when neither is so: the statement must be executed. "" when the table is as good as
        after it. Otherwise why the existing column does not fit.
    """
    match actions:
        case [Adoption()]:
            return ""
        case [ColumnRemoval(name=name)]:
            return "" if layout.field(name) is None else None
        case [ColumnAddition(column=column)]:
            found = layout.field(column.name)
            if found is None:
                return None
            wanted = replace(layout, fields=(field_of(column, 0),))
            reason = misfit(wanted, replace(layout, fields=(found,)))
            there = f"column {found.name} is there already and does not fit"
            return f"{there}: {reason}" if reason else ""
        case [ColumnRename(name=name, to=to)] if executed:
            return "" if layout.field(name) is None and layout.field(to) is not None else None
        case _:
            return None


def _after(layout: Layout, action: Action) -> Layout:
    match action:
        case ColumnAddition():
            return _add(layout, action.column)
        case ColumnRemoval():
            return _drop(layout, action.name)
        case ColumnRename():
            return _rename(layout, action.name, action.to)
        case TypeChange():
            return _widen(layout, action.name, iceberg_type(spark_type(action.type)))
        case NullPermission():
            return _replace(layout, replace(_known(layout, action.name), required=False))
        case CommentChange():
            return _replace(layout, replace(_known(layout, action.name), doc=action.comment))
        case _:
            raise UnsupportedDDL(
                f"an Iceberg table gets no {type(action).__name__}", code="SM-3109"
            )


def _add(layout: Layout, column: Column) -> Layout:
    field = field_of(column, layout.last_id + 1)
    if layout.field(field.name) is not None:
        raise UnsupportedDDL(f"there is a column {field.name} already", code="SM-3109")
    if field.required:
        raise UnsupportedDDL(
            f"{field.name} cannot be added NOT NULL to a table that is there", code="SM-3109"
        )
    return replace(layout, fields=(*layout.fields, field), last_id=field.id)


def _drop(layout: Layout, name: str) -> Layout:
    field = _known(layout, name)
    if field.id in layout.identifiers:
        raise UnsupportedDDL(f"{name} is an identifier field of the table", code="SM-3109")
    return replace(layout, fields=tuple(f for f in layout.fields if f.id != field.id))


def _rename(layout: Layout, name: str, to: str) -> Layout:
    field, other = _known(layout, name), layout.field(to)
    if other is not None and other.id != field.id:
        raise UnsupportedDDL(f"there is a column {to} already", code="SM-3109")
    return _replace(layout, replace(field, name=to))


def _widen(layout: Layout, name: str, kind: str) -> Layout:
    field = _known(layout, name)
    if field.type != kind and not can_widen(field.type, kind):
        raise UnsupportedDDL(
            f"Iceberg does not change {name} from {field.type} to {kind}", code="SM-3109"
        )
    return _replace(layout, replace(field, type=kind))


def _known(layout: Layout, name: str) -> Field:
    field = layout.field(name)
    if field is None:
        raise UnsupportedDDL(f"there is no column {name}", code="SM-3109")
    return field


def _replace(layout: Layout, field: Field) -> Layout:
    return replace(layout, fields=tuple(field if f.id == field.id else f for f in layout.fields))


def field_of(column: Column, number: int) -> Field:
    """The column of a layout for a decided column.

    Args:
        column: As the dialect decides it.
        number: Its id.
    """
    kind = iceberg_type(spark_type(column.type))
    return Field(number, column.name, kind, not column.nullable, column.comment)
