"""CAST and CONVERT, and the types that values are cast to.

Source: MySQL Reference Manual, "Cast Functions and Operators".
"""

from __future__ import annotations

from shardmerge.schemas.ddl.grammar.tokens.charset_words import (
    accept_charset,
    charset_word,
    collation_word,
)
from shardmerge.schemas.ddl.grammar.tokens.lexer import Cursor
from shardmerge.schemas.ddl.grammar.tokens.words import words

from .literal_text import quote_string
from .notes import Notes, Read


def cast(cursor: Cursor, notes: Notes, word: str, read: Read) -> str:
    """Read the arguments of CAST or CONVERT."""
    cursor.expect("(")
    value = read(cursor, notes, 0)
    if word == "CONVERT" and cursor.accept("USING"):
        charset = charset_word(cursor)
        cursor.expect(")")
        return f"convert({value} using {charset})"
    if word == "CONVERT":
        cursor.expect(",")
    elif cursor.accept("AT"):
        cursor.expect("TIME", "ZONE")
        value += f" at time zone {quote_string(cursor.string())}"
        cursor.expect("AS")
    else:
        cursor.expect("AS")
    kind = cast_type(cursor)
    cursor.expect(")")
    return f"cast({value} as {kind})"


_CAST_TYPES = words(
    """
    SIGNED UNSIGNED CHAR CHARACTER NCHAR BINARY DECIMAL DEC DATE TIME DATETIME JSON YEAR FLOAT
    DOUBLE REAL INTEGER INT POINT LINESTRING POLYGON MULTIPOINT MULTILINESTRING MULTIPOLYGON
    GEOMETRYCOLLECTION VARCHAR UUID INET4 INET6
    """
)


_CAST_SYNONYMS = {"character": "char", "dec": "decimal", "integer": "signed", "int": "signed"}


def cast_type(cursor: Cursor) -> str:
    """Read the type that a value is cast to."""
    word = cursor.accept_any(_CAST_TYPES)
    if not word:
        cursor.fail("a type")
    text = _CAST_SYNONYMS.get(word.lower(), word.lower())
    if word in ("SIGNED", "UNSIGNED"):
        cursor.accept_any(("INTEGER", "INT"))
    elif word == "DOUBLE":
        cursor.accept("PRECISION")
    if cursor.accept("("):
        numbers = [str(cursor.integer())]
        if cursor.accept(","):
            numbers.append(str(cursor.integer()))
        cursor.expect(")")
        text += f"({','.join(numbers)})"
    if accept_charset(cursor):
        charset = charset_word(cursor)
        # MySQL prints the connection's charset here even if the statement does not have it.
        text += "" if charset == "utf8mb4" else f" charset {charset}"
    elif cursor.accept("ASCII"):
        text += " charset latin1"
    elif cursor.accept("UNICODE"):
        text += " charset ucs2"
    if cursor.context.is_mariadb and cursor.accept("COLLATE"):
        text += f" collate {collation_word(cursor)}"
    if word == "BINARY":
        text = text.replace("binary", "char", 1) + " charset binary"
    if cursor.accept("ARRAY"):
        text += " array"
    return text
