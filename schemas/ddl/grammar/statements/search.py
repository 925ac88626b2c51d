"""Guess which tables a statement concerns when the grammar does not know it."""

from __future__ import annotations

from shardmerge.schemas.ddl.changes import TableName
from shardmerge.schemas.ddl.grammar.tokens.lexer import END, Cursor
from shardmerge.schemas.ddl.grammar.tokens.qualified import table_name
from shardmerge.schemas.model.errors import UnparsableDDL

_SKIPPED = (
    ("IF", "NOT", "EXISTS"),
    ("IF", "EXISTS"),
)
_LIST_STATEMENTS = ("DROP", "RENAME")


def search_tables(cursor: Cursor) -> tuple[TableName, ...]:
    """The names after TABLE (or ON, for CREATE and DROP INDEX), in order, without repeats."""
    first = cursor.word
    names: list[TableName] = []
    marker = "TABLE"
    if first in ("CREATE", "DROP") and _mentions_index(cursor):
        marker = "ON"
    if first == "TRUNCATE" and cursor.ahead() != "TABLE":
        marker = "TRUNCATE"
    while cursor.word not in (END, marker) and not (marker == "TABLE" and cursor.word == "TABLES"):
        cursor.advance()
    if cursor.word == END:
        return ()
    cursor.advance()
    for words in _SKIPPED:
        cursor.accept(*words)
    try:
        names.append(table_name(cursor))
        while first in _LIST_STATEMENTS and (cursor.accept(",") or cursor.accept("TO")):
            names.append(table_name(cursor))
    except UnparsableDDL:
        pass  # The names before the unreadable text are still the best guess.
    return tuple(dict.fromkeys(names))


def _mentions_index(cursor: Cursor) -> bool:
    return any(cursor.ahead(count) == "INDEX" for count in (1, 2, 3, 4)) and not any(
        cursor.ahead(count) == "TABLE" for count in (1, 2, 3)
    )
