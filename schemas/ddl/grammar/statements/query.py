"""The query of CREATE TABLE … SELECT, and the columns that it gives.

The text does not contain the types of a query's columns, but mostly their names. Columns that the
statement also defines have the type in the definition. sqlglot reads the query.
"""

from __future__ import annotations

import sqlglot
from sqlglot import expressions
from sqlglot.errors import SqlglotError

from shardmerge.schemas.ddl.grammar.tokens.lexer import END, Cursor

_FIRST_WORDS = ("SELECT", "WITH", "TABLE", "VALUES")


def in_parentheses(cursor: Cursor) -> bool:
    """Whether the parenthesis here begins a query, and not definitions."""
    count = 0
    while cursor.ahead(count) == "(":
        count += 1
    return count > 0 and cursor.ahead(count) in _FIRST_WORDS


def query_columns(cursor: Cursor) -> tuple[str, ...] | None:
    """Step over ``[IGNORE | REPLACE] [AS] query`` at the end of a statement.

    Returns:
        The names of its columns, with "" and ``*`` for columns whose names are not in the text;
        None when there is no query here.
    """
    start = cursor.index
    cursor.accept_any(("IGNORE", "REPLACE"))
    cursor.accept("AS")
    if cursor.word not in _FIRST_WORDS and not in_parentheses(cursor):
        cursor.seek(start)
        return None
    first = cursor.index
    while cursor.word not in (END, ";"):
        cursor.advance()
    text = cursor.between(first, cursor.index)
    if cursor.context.ansi_quotes or "/*!" in text or "/*M!" in text:
        return ("*",)
    try:
        query = sqlglot.parse_one(text, dialect="mysql")
    except SqlglotError:
        return ("*",)  # sqlglot does not know all of MySQL's syntax; the columns stay unknown.
    if isinstance(query, expressions.Query):
        return tuple("*" if each.is_star else each.output_name for each in query.selects)
    return ("*",)
