"""What becomes of NOT NULL when statements pass a debt that the target refuses for NULLs. Pure.

The coordinator writes each statement for a target on which all earlier ones are executed. The
target can refuse a debt to NOT NULL, because the values for its NULLs come with later rows. Then
later statements about the column pass the debt (``statements``), since the rows that the debt needs
may wait for these statements. Therefore:

* a later statement that defines the column anew, as NOT NULL, is executed without NOT NULL;
* the debt stays open, with the column definition that the later statements have made.

The debt is void when a later statement takes the NOT NULL back, or drops or renames the column.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from shardmerge.schemas.model import mysql_text as mysql
from shardmerge.schemas.model.actions import ColumnChange, DefaultChange
from shardmerge.schemas.model.tables import Column, Default, DefaultKind
from shardmerge.schemas.records.decisions import StatementKind, TargetStatement

from .decisions import StatementKey

_NULL_DEFAULT = Default(DefaultKind.NULL)


def without_not_null(statement: TargetStatement) -> TargetStatement:
    """The statement without the NOT NULL of its column definition, if it has one."""
    column = _defined(statement)
    if column is None or column.nullable:
        return statement
    default = _NULL_DEFAULT if column.default is None else column.default
    relaxed = replace(column, nullable=True, default=default)
    return _with_definition(statement, column, relaxed)


def carried_debts(
    statements: Mapping[StatementKey, TargetStatement], executed: Collection[StatementKey]
) -> dict[StatementKey, TargetStatement]:
    """The debts to NOT NULL that executed statements have passed, with their present text.

    Args:
        statements: Of a target, in execution order.
        executed: The statements that are in the target.
    """
    open_debts: dict[str, StatementKey] = {}
    found: dict[StatementKey, TargetStatement] = {}
    for key, statement in statements.items():
        subject = statement.subjects[0] if statement.subjects else ""
        if key not in executed:
            if forbids_null(statement):
                open_debts[subject] = key
            continue
        for binding in statement.binds:
            open_debts.pop(f"column:{binding.name.lower()}", None)
        debt = open_debts.get(subject)
        if debt is None:
            continue
        now = _after(found.get(debt, statements[debt]), statement)
        if now is None:
            del open_debts[subject]
            found.pop(debt, None)
        else:
            found[debt] = now
    return {key: debt for key, debt in found.items() if open_debts.get(debt.subjects[0]) == key}


def forbids_null(statement: TargetStatement) -> bool:
    """Whether a statement is a debt that makes a column NOT NULL."""
    if statement.kind is not StatementKind.CONTRACTING:
        return False
    column = _defined(statement)
    return column is not None and not column.nullable


def _after(debt: TargetStatement, statement: TargetStatement) -> TargetStatement | None:
    """The debt after a later statement about its column; None when it is void."""
    column = _defined(debt)
    assert column is not None
    match statement.actions:
        case [ColumnChange(column=later)] if _defined(statement) is not None:
            if later.nullable:
                return None
            return replace(debt, sql=statement.sql, actions=statement.actions)
        case [DefaultChange() as change]:
            default = change.default_of(column.type)
            return _with_definition(debt, column, replace(column, default=default))
        case _:
            return None


def _defined(statement: TargetStatement) -> Column | None:
    """The column that a statement defines anew under its name; None for any other statement."""
    match statement.actions:
        case [ColumnChange(name=name, column=column)] if name == column.name:
            # A definition that the coordinator would write otherwise is left as it is.
            is_ours = column.generated is None and _spelling(statement, column) is not None
            return column if is_ours else None
        case _:
            return None


def _with_definition(statement: TargetStatement, old: Column, new: Column) -> TargetStatement:
    """The statement, with its column definition ``old`` replaced by ``new``."""
    old_utf8 = _spelling(statement, old)
    assert old_utf8 is not None
    head = statement.sql.removesuffix(mysql.column_definition(old, old_utf8=old_utf8))
    sql = head + mysql.column_definition(new, old_utf8=old_utf8)
    return replace(statement, sql=sql, actions=(ColumnChange(new.name, new),))


def _spelling(statement: TargetStatement, column: Column) -> bool | None:
    """Whether the SQL text has the column's definition with the old name of utf8mb3 (``utf8``).

    None: the text ends with the definition in neither spelling.
    """
    for old_utf8 in (False, True):
        definition = mysql.column_definition(column, old_utf8=old_utf8)
        if statement.sql.endswith(f" MODIFY COLUMN {definition}"):
            return old_utf8
    return None
