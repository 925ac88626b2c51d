"""Options that a MariaDB engine defines for tables, columns and indexes: ``name = value``.

The name may be any name, quoted or not, that is not a keyword of the grammar. The equals sign shows
that it is an option. MySQL has no such options.

Source: MariaDB's documentation, "Engine-defined New Table/Field/Index Attributes".
"""

from __future__ import annotations

from shardmerge.schemas.ddl.grammar.tokens.lexer import NUMBER, Cursor

_SWITCHES = ("DEFAULT", "YES", "NO", "ON", "OFF")


def engine_option(cursor: Cursor) -> tuple[str, str] | None:
    """Read one option: its name in upper case, and its value; None when none begins here."""
    if not (cursor.context.is_mariadb and cursor.ahead() == "=" and cursor.is_name()):
        return None
    name = cursor.identifier().upper()
    cursor.expect("=")
    if cursor.is_string():
        value = cursor.string()
    elif cursor.word == NUMBER:
        value = str(cursor.integer())
    else:
        value = cursor.accept_any(_SWITCHES) or cursor.identifier("a value")
    return name, value
