"""Literals inside expressions, as canonical text."""

from __future__ import annotations

from .lexer import BIT, NUMBER, Cursor


def quote_string(value: str) -> str:
    """A string literal with MySQL's default escapes."""
    return "'" + value.replace("\\", "\\\\").replace("'", "''").replace("\0", "\\0") + "'"


def number(cursor: Cursor) -> str:
    """Read an unsigned numeric literal as it is written."""
    text = ""
    if cursor.word == ".":
        text = "0."
        cursor.advance()
    text += cursor.text()
    if cursor.word != NUMBER:
        cursor.fail("a number")
    cursor.advance()
    return text.lower()


def binary_literal(cursor: Cursor) -> str:
    """Read ``x'41'``, ``0x41``, ``b'101'`` or ``0b101`` as ``0x…``."""
    raw = cursor.text()
    digits = raw[2:-1] if raw.endswith("'") else raw[2:]
    if cursor.word == BIT:
        width = (len(digits) + 7) // 8 * 2
        digits = f"{int(digits or '0', 2):0{width}x}"
    cursor.advance()
    return "0x" + digits.lower()
