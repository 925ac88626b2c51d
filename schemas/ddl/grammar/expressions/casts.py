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


_CAST_SYNONYMS = {
    "character": "char", "nchar": "char", "varchar": "char", "dec": "decimal",
    "integer": "signed", "int": "signed",
}  # fmt: skip
_CHARSETS = {"ASCII": "latin1", "UNICODE": "ucs2", "BYTE": "binary"}
_SINGLE_PRECISION = 24
"""FLOAT(p) with more bits than this is a double."""


def cast_type(cursor: Cursor) -> str:
    """Read the type that a value is cast to."""
    if cursor.accept("NATIONAL"):
        cursor.expect("CHARACTER" if cursor.word == "CHARACTER" else "CHAR")
        word = "NCHAR"
    else:
        word = cursor.accept_any(_CAST_TYPES)
    if not word:
        cursor.fail("a type")
    text = _CAST_SYNONYMS.get(word.lower(), word.lower())
    if word in ("SIGNED", "UNSIGNED"):
        cursor.accept_any(("INTEGER", "INT"))
    elif word == "DOUBLE":
        cursor.accept("PRECISION")
    numbers: list[int] = []
    if cursor.accept("("):
        numbers.append(cursor.integer())
        if cursor.accept(","):
            numbers.append(cursor.integer())
        cursor.expect(")")
    text = _sized(text, numbers, cursor)
    text += _charset(cursor, "utf8mb3" if word == "NCHAR" else "")
    if cursor.context.is_mariadb and cursor.accept("COLLATE"):
        text += f" collate {collation_word(cursor)}"
    if word == "BINARY":
        text = text.replace("binary", "char", 1) + " charset binary"
    if cursor.accept("ARRAY"):
        text += " array"
    return text


def _charset(cursor: Cursor, charset: str) -> str:
    binary = False
    while True:
        if accept_charset(cursor):
            charset = charset_word(cursor)
        elif word := cursor.accept_any(("ASCII", "UNICODE", "BYTE")):
            charset = _CHARSETS[word]
        elif cursor.accept("BINARY"):
            binary = True
        else:
            break
    # MySQL prints the connection's charset here even if the statement does not have it.
    text = "" if charset in ("", "utf8mb4") else f" charset {charset}"
    # MySQL stores the type without the attribute BINARY.
    return text + (" binary" if binary and cursor.context.is_mariadb else "")


def _sized(kind: str, numbers: list[int], cursor: Cursor) -> str:
    """The type with the numbers that servers store."""
    if kind == "decimal":
        precision, scale = (*numbers, *(10, 0)[len(numbers) :])
        return f"decimal({precision},{scale})"
    if kind == "float" and numbers:
        return "float" if numbers[0] <= _SINGLE_PRECISION else "double"
    if kind == "real":
        return "float" if cursor.context.real_as_float else "double"
    if kind in ("time", "datetime") and numbers == [0]:
        return kind
    return f"{kind}({','.join(map(str, numbers))})" if numbers else kind
