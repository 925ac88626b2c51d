"""Literals inside expressions, as canonical text."""

from __future__ import annotations

from shardmerge.schemas.ddl.grammar.tokens.lexer import BIT, NUMBER, Cursor

_WIDE = {
    "ucs2": (2, "utf-16-be"), "utf16": (2, "utf-16-be"), "utf16le": (2, "utf-16-le"),
    "utf32": (4, "utf-32-be"),
}  # fmt: skip


def quote_string(value: str) -> str:
    """A string literal with MySQL's default escapes."""
    return "'" + value.replace("\\", "\\\\").replace("'", "''").replace("\0", "\\0") + "'"


def decoded(raw: bytes, charset: str) -> str | None:
    """The text of a literal that has a charset introducer; None when it needs the introducer.

    A valid text of utf8mb3 or utf8mb4 never needs it. Other texts need it unless they are ASCII.

    Source: MySQL Reference Manual, "Character Set Introducers": literals of wide charsets are
    padded on the left.
    """
    if charset in _WIDE:
        width, codec = _WIDE[charset]
        raw = raw.rjust(-(-len(raw) // width) * width, b"\0")
    elif charset in ("utf8mb3", "utf8mb4"):
        return _decoded(raw, "utf-8")
    else:
        codec = "ascii"
    text = None if charset == "binary" else _decoded(raw, codec)
    return text if text is not None and text.isascii() else None


def _decoded(raw: bytes, codec: str) -> str | None:
    try:
        return raw.decode(codec)
    except UnicodeDecodeError:
        return None


def number(cursor: Cursor) -> str:
    """Read an unsigned numeric literal, in lower case and with a digit before the point."""
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
