"""Applies the actions of a target statement to the target's schema. Pure.

Each action is also a change that a shard's DDL can make, so ``statements`` applies both.
"""

from __future__ import annotations

from collections.abc import Sequence

from shardmerge.schemas.ddl import changes
from shardmerge.schemas.model.actions import (
    Action,
    Adoption,
    CharsetChange,
    CheckAddition,
    CheckRemoval,
    ColumnAddition,
    ColumnChange,
    ColumnRemoval,
    ColumnRename,
    CommentChange,
    DefaultChange,
    DefaultFill,
    IndexAddition,
    IndexRemoval,
    NullPermission,
    RowFill,
    RowRemoval,
    TableCreation,
    TypeChange,
    ValueMove,
)
from shardmerge.schemas.model.errors import UnsupportedDDL
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.server_context import ServerContext
from shardmerge.schemas.model.tables import Column, TableSchema

from .statements import apply_alter, apply_create


def schema_after(
    before: TableSchema | None,
    actions: Sequence[Action],
    table: TargetTable,
    context: ServerContext,
) -> TableSchema:
    """The target's schema after a statement.

    Args:
        before: The schema before, normalised; None when the table is missing.
        actions: The actions, in order, of one statement that does not change rows.
        table: The target.
        context: The target's server, with the defaults of the table's database.

    Raises:
        UnsupportedDDL: There are no actions, or they contradict the schema.
    """
    name = changes.TableName(table.database, table.table)
    if not actions:
        raise UnsupportedDDL("what the statement does is not known", code="SM-3109")
    if isinstance(actions[0], TableCreation):
        return apply_create(changes.CreateTable(name, actions[0].schema), context)
    if before is None:
        raise UnsupportedDDL(f"{table} is missing", code="SM-3109")
    alter = changes.AlterTable(name, tuple(_change(action, before) for action in actions))
    return apply_alter(before, alter, table.table, context).schema


def _change(action: Action, before: TableSchema) -> changes.Action:
    """An action as a change of a table with the schema ``before``."""
    match action:
        case ColumnAddition():
            return changes.AddColumn(action.column)
        case ColumnRemoval():
            return changes.DropColumn(action.name)
        case ColumnChange():
            return changes.ChangeColumn(action.name, action.column)
        case ColumnRename():
            return changes.RenameColumn(action.name, action.to)
        case DefaultChange():
            kind = _column(before, action.name).type
            return changes.AlterDefault(action.name, action.default_of(kind))
        case TypeChange():
            column = _column(before, action.name)
            return changes.ChangeColumn(action.name, replace(column, type=action.type))
        case NullPermission():
            column = _column(before, action.name)
            return changes.ChangeColumn(action.name, replace(column, nullable=True))
        case CommentChange():
            column = _column(before, action.name)
            return changes.ChangeColumn(action.name, replace(column, comment=action.comment))
        case IndexAddition():
            return changes.AddIndex(action.index)
        case IndexRemoval():
            return changes.DropIndex(action.name)
        case CheckAddition():
            return changes.AddCheck(action.check)
        case CheckRemoval():
            return changes.DropConstraint(action.name, "check")
        case CharsetChange():
            return changes.SetDefaultCharset(action.charset, action.collation)
        case TableCreation() | RowRemoval() | RowFill() | ValueMove() | DefaultFill() | Adoption():
            raise UnsupportedDDL(
                f"{type(action).__name__} is no change of a table that is there", code="SM-3109"
            )


def _column(schema: TableSchema, name: str) -> Column:
    found = schema.column(name)
    if found is None:
        raise UnsupportedDDL(f"there is no column {name}", code="SM-3109")
    return found
