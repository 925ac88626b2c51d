"""Names of character sets and collations in a statement."""

from __future__ import annotations

from shardmerge.schemas.model.charsets import charset_name, collation_name

from .lexer import Cursor


def charset_word(cursor: Cursor) -> str:
    """Read a charset's canonical name (``BINARY`` is a charset, although it is reserved)."""
    if cursor.accept("BINARY"):
        return "binary"
    return charset_name(cursor.name_or_string("a character set"))


def collation_word(cursor: Cursor) -> str:
    """Read a collation's canonical name."""
    if cursor.accept("BINARY"):
        return "binary"
    return collation_name(cursor.name_or_string("a collation"))


def accept_charset(cursor: Cursor) -> bool:
    """Step over CHARSET, CHARACTER SET or CHAR SET."""
    return (
        cursor.accept("CHARSET")
        or cursor.accept("CHARACTER", "SET")
        or cursor.accept("CHAR", "SET")
    )
