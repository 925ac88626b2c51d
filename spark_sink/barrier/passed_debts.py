"""What becomes of NOT NULL when statements pass a debt that the target refuses for NULLs. Pure.

A coordinator's statement supposes that all before it are executed. Where a debt to NOT NULL is
refused, for rows whose values come later, later statements about the column pass it
(``statements``); and the rows that the debt needs may wait for these. So

* one that defines the column anew, with NOT NULL, is executed without that;
* the debt stays, with the definition that the column has by then: what the statements made of it.

It is void where a statement has taken its NOT NULL back, or the column is gone or renamed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import lru_cache

from shardmerge.schemas.ddl.changes import (
    AlterDefault,
    AlterTable,
    ChangeColumn,
)
from shardmerge.schemas.ddl.grammar import (
    ServerContext,
    parse,
)
from shardmerge.schemas.model import mysql_text as mysql
from shardmerge.schemas.model.errors import SourceError
from shardmerge.schemas.model.tables import Column
from shardmerge.schemas.records.decisions import StatementKind, TargetStatement

from .decisions import StatementKey

_MODIFY = " MODIFY COLUMN "


def without_not_null(statement: TargetStatement) -> TargetStatement:
    """The statement, without the NOT NULL that it gives a column with its definition."""
    column = _defined(statement)
    if column is None or column.nullable:
        return statement
    return _with_definition(statement, replace(column, nullable=True))


def carried_debts(
    statements: Mapping[StatementKey, TargetStatement], executed: Collection[StatementKey]
) -> dict[StatementKey, TargetStatement]:
    """The debts to NOT NULL that executed statements have passed, as they are by then.

    Args:
        statements: Of a target, in execution order.
        executed: Those that are in the target.
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
    match _action(statement.sql):
        case ChangeColumn(column=later) if _defined(statement) is not None:
            return None if later.nullable else replace(debt, sql=statement.sql)
        case AlterDefault(default=default):
            return _with_definition(debt, replace(column, default=default))
        case _:
            return None


def _defined(statement: TargetStatement) -> Column | None:
    """The column that a statement defines anew under its name; None for any other statement."""
    if _MODIFY not in statement.sql:
        return None
    action = _action(statement.sql)
    if not isinstance(action, ChangeColumn) or action.column.generated is not None:
        return None
    # What is not written as the coordinator writes it is left as it is.
    return action.column if _with_definition(statement, action.column) == statement else None


def _with_definition(statement: TargetStatement, column: Column) -> TargetStatement:
    head, modify, _ = statement.sql.partition(_MODIFY)
    return replace(statement, sql=f"{head}{modify}{mysql.column_definition(column)}")


@lru_cache(maxsize=4096)
def _action(sql: str) -> object:
    """The only action of an ALTER TABLE; None for what is none in MySQL's words."""
    try:
        statement = parse(sql, ServerContext())
    except SourceError:
        return None
    if not isinstance(statement, AlterTable) or len(statement.actions) != 1:
        return None
    return statement.actions[0]
