"""A file of SQL → its statements, as MySQL's command-line client splits it. Pure.

A statement ends with the delimiter, outside of quotes and comments. The delimiter is ``;`` until a
line ``DELIMITER`` sets another one. Comments before a statement are left out. ``/*! … */`` does not
count as a comment, since servers execute it.

Source: MySQL Reference Manual, "mysql Client Commands", "Comments".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_DELIMITER = re.compile(r"[ \t]*DELIMITER[ \t]+(\S+)[ \t]*\r?(?:\n|\Z)", re.IGNORECASE)
_COMMENT = re.compile(r"(?:#|--(?=[\s\x00-\x1f]|\Z))[^\n]*|/\*(?![!+]|M!).*?(?:\*/|\Z)", re.DOTALL)
_QUOTED = {
    "'": re.compile(r"'(?:[^'\\]|\\.|'')*(?:'|\Z)", re.DOTALL),
    '"': re.compile(r'"(?:[^"\\]|\\.|"")*(?:"|\Z)', re.DOTALL),
    "`": re.compile(r"`(?:[^`]|``)*(?:`|\Z)", re.DOTALL),
}
_QUOTED_PLAIN = {
    "'": re.compile(r"'(?:[^']|'')*(?:'|\Z)", re.DOTALL),
    '"': re.compile(r'"(?:[^"]|"")*(?:"|\Z)', re.DOTALL),
    "`": _QUOTED["`"],
}
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Piece:
    """One statement of a text.

    Attributes:
        sql: Without its delimiter, and without comments around it.
        line: Number of the line with its first character, from 1.
    """

    sql: str
    line: int


def pieces(
    text: str, *, delimiter: str = ";", backslash_escapes: bool = True, first_line: int = 1
) -> Iterator[Piece]:
    """The statements of a text.

    Args:
        text: The text of a file.
        delimiter: The delimiter until the text sets another one. It is looked for as it is given,
            even if it has several words.
        backslash_escapes: False when the server's sql_mode has NO_BACKSLASH_ESCAPES.
        first_line: Number of the text's first line in its file.
    """
    quoted = _QUOTED if backslash_escapes else _QUOTED_PLAIN
    at = start = end = 0
    begun = False
    while at < len(text):
        if not begun and _begins_line(text, at) and (told := _DELIMITER.match(text, at)):
            delimiter, at = told[1], told.end()
            continue
        found = _SPACE.match(text, at) or _COMMENT.match(text, at)
        if found is not None:
            at = found.end()
            continue
        if text.startswith(delimiter, at):
            if begun:
                yield Piece(text[start:end], first_line + text.count("\n", 0, start))
            begun = False
            at += len(delimiter)
            continue
        if not begun:
            begun, start = True, at
        mark = text[at]
        at = found.end() if mark in quoted and (found := quoted[mark].match(text, at)) else at + 1
        end = at
    if begun:
        yield Piece(text[start:end], first_line + text.count("\n", 0, start))


def _begins_line(text: str, at: int) -> bool:
    return at == 0 or text[at - 1] in "\r\n"
