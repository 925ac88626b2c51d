"""ALTER TABLE's changes of checks and foreign keys; ``statements`` says in which order."""

from __future__ import annotations

from shardmerge.schemas.ddl.canonical.constraints import highest_number
from shardmerge.schemas.ddl.canonical.implicit_indexes import is_new
from shardmerge.schemas.ddl.changes import (
    AddCheck,
    AddColumn,
    AddForeignKey,
    AlterTable,
    ChangeColumn,
    DropConstraint,
    WrittenForeignKey,
)
from shardmerge.schemas.ddl.expressions import column_names, rename_columns
from shardmerge.schemas.model.errors import UnsupportedDDL
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.server_context import ServerContext
from shardmerge.schemas.model.tables import Check, ForeignKey, TableSchema

from .alter_columns import ColumnChanges

_HINT = "the tracked schema differs from the server's"


def change_checks(
    schema: TableSchema,
    alter: AlterTable,
    table_name: str,
    changes: ColumnChanges,
    context: ServerContext,
) -> tuple[Check, ...]:
    """The checks after the statement.

    A check is dropped when all columns that it names are dropped; a column's own check in MariaDB,
    when that column is dropped.

    Raises:
        UnsupportedDDL: An action names a constraint that the table does not have.
    """
    dropped = _dropped(schema, alter, table_name, context)
    redefined = _redefined(alter, changes) if context.is_mariadb else set()
    enforcement = {
        action.check.name.lower(): action.check.enforced
        for action in alter.actions
        if isinstance(action, AddCheck) and not action.check.expression
    }
    checks: list[Check] = []
    for check in schema.checks:
        folded = check.name.lower()
        if folded in dropped or folded in redefined:
            continue
        is_own = context.is_mariadb and schema.column(folded) is not None
        if is_own and folded in changes.dropped:
            continue  # A column's own check is dropped only with its column.
        named = column_names(check.expression)
        if not is_own and changes.dropped and changes.dropped.issuperset(map(str.lower, named)):
            continue  # A check without columns is dropped with any (MySQL 9.7, MariaDB 10.11).
        text = rename_columns(check.expression, changes.renamed)
        name = check.name
        if context.is_mariadb and named and folded in changes.renamed:
            # A column's own check, which is named after it.
            name = changes.renamed[folded]
        enforced = enforcement.get(folded, check.enforced)
        same = (name, text, enforced) == (check.name, check.expression, check.enforced)
        checks.append(check if same else Check(name, text, enforced))
    names = {check.name.lower() for check in checks if check.name}
    for place, action in enumerate(alter.actions):
        if place in changes.skipped or place in changes.replaced:
            continue
        if isinstance(action, (AddColumn, ChangeColumn)):
            checks += action.checks
        elif (
            isinstance(action, AddCheck)
            and action.check.expression
            and not (action.if_not_exists and action.check.name.lower() in names)
        ):
            checks.append(action.check)
    return tuple(checks)


def _redefined(alter: AlterTable, changes: ColumnChanges) -> set[str]:
    """Columns whose own check MariaDB replaces together with their definition."""
    return {
        action.name.lower()
        for place, action in enumerate(alter.actions)
        if isinstance(action, ChangeColumn) and place not in changes.skipped
    }


def _dropped(
    schema: TableSchema, alter: AlterTable, table_name: str, context: ServerContext
) -> set[str]:
    dropped: set[str] = set()
    checks = {check.name.lower() for check in schema.checks}
    others = {index.name.lower() for index in schema.indexes}
    others |= {key.name.lower() for key in schema.foreign_keys}
    for action in alter.actions:
        if not isinstance(action, DropConstraint) or action.kind == "foreign key":
            continue
        folded = action.name.lower()
        # MariaDB's DROP CONSTRAINT does not find a column's own check.
        own = context.is_mariadb and schema.column(folded) is not None
        if folded in checks and not (own and (folded in others or action.if_exists)):
            dropped.add(folded)
        elif action.kind == "any" and folded in others:
            continue
        elif not action.if_exists and context.stores_checks:
            raise UnsupportedDDL(
                f"table {table_name} has no constraint {action.name}", hint=_HINT, code="SM-1102"
            )
    return dropped


def change_foreign_keys(
    schema: TableSchema, alter: AlterTable, table_name: str, changes: ColumnChanges
) -> tuple[ForeignKey, ...]:
    """The foreign keys after the statement, new ones last and as written.

    Raises:
        UnsupportedDDL: DROP FOREIGN KEY names one that the table does not have.
    """
    names = {key.name.lower() for key in schema.foreign_keys}
    dropped: set[str] = set()
    for action in alter.actions:
        if isinstance(action, DropConstraint) and action.kind != "check":
            if action.name.lower() in names:
                dropped.add(action.name.lower())
            elif action.kind == "foreign key" and not action.if_exists:
                raise UnsupportedDDL(
                    f"table {table_name} has no foreign key {action.name}",
                    hint=_HINT,
                    code="SM-1102",
                )
    keys: list[ForeignKey] = []
    for key in schema.foreign_keys:
        if key.name.lower() in dropped:
            continue
        columns = tuple(changes.renamed.get(name.lower(), name) for name in key.columns)
        keys.append(key if columns == key.columns else replace(key, columns=columns))
    taken = highest_number([key.name for key in schema.foreign_keys], f"{table_name}_ibfk_")
    for action in alter.actions:
        if isinstance(action, AddForeignKey) and is_new(action, schema):
            key = action.foreign_key
            keys.append(replace(key, taken=taken) if isinstance(key, WrittenForeignKey) else key)
    return tuple(keys)
