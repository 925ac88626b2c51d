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
from .stored_texts import (
    stored_check,
    stored_column,
    stored_default,
    stored_index,
    stored_schema,
)


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
        created = stored_schema(actions[0].schema, context)
        return apply_create(changes.CreateTable(name, created), context)
    if before is None:
        raise UnsupportedDDL(f"{table} is missing", code="SM-3109")
    altered = tuple(_change(action, before, context) for action in actions)
    alter = changes.AlterTable(name, altered)
    return apply_alter(before, alter, table.table, context).schema


def _change(action: Action, before: TableSchema, context: ServerContext) -> changes.Action:
    """An action as a change of a table with the schema ``before``."""
    match action:
        case ColumnAddition():
            return changes.AddColumn(stored_column(action.column, context))
        case ColumnRemoval():
            return changes.DropColumn(action.name)
        case ColumnChange():
            return changes.ChangeColumn(action.name, stored_column(action.column, context))
        case ColumnRename():
            return changes.RenameColumn(action.name, action.to)
        case DefaultChange():
            kind = _column(before, action.name).type
            default = stored_default(action.default_of(kind), context)
            return changes.AlterDefault(action.name, default)
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
            return changes.AddIndex(stored_index(action.index, context))
        case IndexRemoval():
            return changes.DropIndex(action.name)
        case CheckAddition():
            return changes.AddCheck(stored_check(action.check, context))
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
