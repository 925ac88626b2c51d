"""Defaults: the values after DEFAULT and SET DEFAULT.

Source: MySQL Reference Manual, "Data Type Default Values"; MariaDB's "CREATE TABLE", DEFAULT.
"""

from __future__ import annotations

from shardmerge.schemas.ddl.changes import WrittenLiteral
from shardmerge.schemas.ddl.grammar.expressions.expression import expression, parenthesised
from shardmerge.schemas.ddl.grammar.expressions.literal_text import number
from shardmerge.schemas.ddl.grammar.tokens.lexer import BIT, HEX, NATIONAL, NUMBER, STRING, Cursor
from shardmerge.schemas.model.charsets import charset_name
from shardmerge.schemas.model.mysql_facts import NULL_DEFAULT
from shardmerge.schemas.model.tables import Default, DefaultKind

NOW = frozenset({"CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP"})
"""Words for the current time."""
_FOLDED = {"pi()": "3.141592653589793", "-(pi())": "-3.141592653589793"}
"""Expression → the number that MariaDB stores instead of it."""


def current_timestamp(fsp: int) -> str:
    """The canonical text of the current time as a default."""
    return f"CURRENT_TIMESTAMP({fsp})" if fsp else "CURRENT_TIMESTAMP"


def default_value(cursor: Cursor, *, alters: bool = False) -> Default:
    """Read the value after DEFAULT, or with ``alters`` after ALTER COLUMN … SET DEFAULT.

    In MySQL a constant in parentheses is an expression in a definition, but a literal in SET
    DEFAULT. (Measured on 8.0.15 and 9.7.)
    """
    word = cursor.word
    if word in NOW:
        return Default(DefaultKind.EXPRESSION, now(cursor))
    if word == "NULL":
        cursor.advance()
        return NULL_DEFAULT
    if word == "(":
        constant = None
        if alters or cursor.context.is_mariadb:
            constant = _constant_in_parentheses(cursor)
        if constant is not None:
            return constant
        found = parenthesised(cursor)
        text = found.text
        if cursor.context.is_mariadb:
            if (folded := _stored_number(text)) is not None:
                return folded
            if text.startswith("now("):
                text = _mariadb_now(text)
        return Default(DefaultKind.EXPRESSION, text)
    literal = _literal(cursor)
    if literal is not None:
        return literal
    if cursor.context.is_mariadb:
        # MariaDB takes a bare function call as an expression.
        text = expression(cursor).text
        folded = _stored_number(text)
        return Default(DefaultKind.EXPRESSION, text) if folded is None else folded
    return cursor.fail("a default value")


def _stored_number(text: str) -> WrittenLiteral | None:
    """The number that MariaDB stores for this expression; None when it stores the expression."""
    value = _FOLDED.get(text)
    return None if value is None else WrittenLiteral(DefaultKind.LITERAL, value, "number")


def _constant_in_parentheses(cursor: Cursor) -> Default | None:
    """Read a literal or NULL in any number of parentheses; None when it is something else.

    MariaDB stores ``DEFAULT (5)`` as ``DEFAULT 5``. In MySQL a minus is an operator here.
    """
    start = cursor.index
    depth = 0
    while cursor.accept("("):
        depth += 1
    found: Default | None = NULL_DEFAULT if cursor.accept("NULL") else None
    if found is None and (cursor.word != "-" or cursor.context.is_mariadb):
        found = _literal(cursor)
    if found is not None and all(cursor.accept(")") for _ in range(depth)):
        return found
    cursor.seek(start)
    return None


def _mariadb_now(text: str) -> str:
    """In MariaDB ``DEFAULT (NOW())`` is the same as ``DEFAULT CURRENT_TIMESTAMP``."""
    digits = text[len("now(") : -1]
    return current_timestamp(int(digits or 0)) if not digits or digits.isdigit() else text


def now(cursor: Cursor) -> str:
    """Read a word of ``NOW`` and its number of digits; return the canonical text."""
    cursor.advance()
    fsp = 0
    if cursor.accept("("):
        fsp = cursor.integer("a number of digits") if cursor.word != ")" else 0
        cursor.expect(")")
    return current_timestamp(fsp)


def _literal(cursor: Cursor) -> WrittenLiteral | None:
    word = cursor.word
    charset = ""
    if word.startswith("_") and cursor.ahead() in (STRING, HEX, BIT):
        charset = charset_name(word[1:])
        cursor.advance()
        word = cursor.word
    if word in (STRING, NATIONAL):
        text, form = cursor.string(), "string"
    elif word in (HEX, BIT):
        raw = cursor.text()
        text = raw[2:-1] if raw.endswith("'") else raw[2:]
        form = "hex" if word == HEX else "bit"
        cursor.advance()
    elif word in ("TRUE", "FALSE"):
        text, form = ("1" if word == "TRUE" else "0"), "boolean"
        cursor.advance()
    elif word in ("+", "-") and cursor.ahead() in (NUMBER, "."):
        cursor.advance()
        text, form = ("-" if word == "-" else "") + number(cursor), "number"
    elif word in (NUMBER, "."):
        text, form = number(cursor), "number"
    elif word in ("DATE", "TIME", "TIMESTAMP") and cursor.ahead() == STRING:
        cursor.advance()
        text, form = cursor.string(), "temporal"
    else:
        return None
    return WrittenLiteral(DefaultKind.LITERAL, text, form, charset)
