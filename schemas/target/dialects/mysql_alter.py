"""The clauses of MySQL's and MariaDB's ALTER TABLE: an action as text. Pure.

Source: MySQL and MariaDB reference manuals, "ALTER TABLE".
"""

from __future__ import annotations

from shardmerge.schemas.model import mysql_text as mysql
from shardmerge.schemas.model.actions import (
    Action,
    CharsetChange,
    CheckAddition,
    CheckRemoval,
    ColumnAddition,
    ColumnChange,
    ColumnRemoval,
    ColumnRename,
    DefaultChange,
    IndexAddition,
    IndexRemoval,
)
from shardmerge.schemas.model.names import quote_identifier
from shardmerge.schemas.model.types import ColumnType

_PRIMARY = "PRIMARY"


def alter_clause(
    action: Action, kind: ColumnType | None = None, *, old_utf8: bool = False, mariadb: bool = False
) -> str:
    """The clause of ALTER TABLE for an action.

    Args:
        action: An action that a MySQL target can get and that does not change rows.
        kind: For a new default, the type of its column.
        old_utf8: See ``mysql_text``.
        mariadb: Whether the server is a MariaDB, which drops a check with another keyword.
    """
    match action:
        case ColumnAddition():
            return f"ADD COLUMN {mysql.column_definition(action.column, old_utf8=old_utf8)}"
        case ColumnRemoval():
            return f"DROP COLUMN {quote_identifier(action.name)}"
        case ColumnChange():
            definition = mysql.column_definition(action.column, old_utf8=old_utf8)
            if action.name == action.column.name:
                return f"MODIFY COLUMN {definition}"
            return f"CHANGE COLUMN {quote_identifier(action.name)} {definition}"
        case ColumnRename():
            names = f"{quote_identifier(action.name)} TO {quote_identifier(action.to)}"
            return f"RENAME COLUMN {names}"
        case DefaultChange(default=None):
            return f"ALTER COLUMN {quote_identifier(action.name)} DROP DEFAULT"
        case DefaultChange(default=default) if default is not None and kind is not None:
            value = mysql.default_value(default, kind)
            return f"ALTER COLUMN {quote_identifier(action.name)} SET DEFAULT {value}"
        case CharsetChange():
            return mysql.default_charset(action.charset, action.collation, old_utf8=old_utf8)
        case _:
            return _key_clause(action, mariadb=mariadb)


def _key_clause(action: Action, *, mariadb: bool) -> str:
    match action:
        case IndexAddition():
            return f"ADD {mysql.index_clause(action.index)}"
        case IndexRemoval(name=name) if name == _PRIMARY:
            return "DROP PRIMARY KEY"
        case IndexRemoval():
            return f"DROP INDEX {quote_identifier(action.name)}"
        case CheckAddition():
            return f"ADD {mysql.check_clause(action.check)}"
        case CheckRemoval():
            word = "CONSTRAINT" if mariadb else "CHECK"
            return f"DROP {word} {quote_identifier(action.name)}"
        case _:
            raise TypeError(f"a MySQL target gets no {type(action).__name__}")
