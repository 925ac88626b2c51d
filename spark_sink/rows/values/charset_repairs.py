"""Repairs binlog text that Debezium decodes with another character set than the column's. Pure.

In a snapshot the server sends text in UTF-8. From the binlog Debezium gets bytes. It decodes them
with the Java charset that the driver maps the column's charset to, and that charset may be another
vendor's variant, or for another language. If the result has a character that the column's charset
does not have, that character shows which one was meant. Where Java finds no character it puts
U+FFFD, which does not show it: such a row is refused.

Source: every character of every charset of MySQL 8.0.15 through ``CONVERT … USING utf16`` and
through the Java charset of Connector/J 9.1, compared; tests/integration/spark/test_every_value.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from shardmerge.schemas.model.types import ColumnType

_UNICODE = frozenset({"utf8mb4", "utf8mb3", "ucs2", "utf16", "utf16le", "utf32", "gb18030", ""})
"""Charsets in which U+FFFD is a character of its own."""
NO_CHARACTER = "\ufffd"
MISREAD: dict[str, tuple[str, str]] = {
    "cp866": ("\u2116\u00a4", "\u207f\u00b2"),
    "gbk": ("\u2641", "\u2295"),
    "geostd8": (
        (
            "\u00c0\u00c1\u00c2\u00c3\u00c4\u00c5\u00c6\u00c7\u00c8\u00c9\u00ca\u00cb\u00cc"
            "\u00cd\u00ce\u00cf\u00d0\u00d1\u00d2\u00d3\u00d4\u00d5\u00d6\u00d7\u00d8\u00d9"
            "\u00da\u00db\u00dc\u00dd\u00de\u00df\u00e0\u00e1\u00e2\u00e3\u00e4\u00e5\u00fd"
        ),
        (
            "\u10d0\u10d1\u10d2\u10d3\u10d4\u10d5\u10d6\u10f1\u10d7\u10d8\u10d9\u10da\u10db"
            "\u10dc\u10f2\u10dd\u10de\u10df\u10e0\u10e1\u10e2\u10f3\u10e3\u10e4\u10e5\u10e6"
            "\u10e7\u10e8\u10e9\u10ea\u10eb\u10ec\u10ed\u10ee\u10f4\u10ef\u10f0\u10f5\u2116"
        ),
    ),
    "greek": ("\u2018\u2019", "\u02bd\u02bc"),
    "hebrew": ("\u00af", "\u203e"),
    "koi8u": (
        "\u2219\u2553\u2555\u2556\u255c\u2562\u2564\u2565\u256b",
        "\u2022\u0454\u0456\u0457\u0491\u0404\u0406\u0407\u0490",
    ),
    "sjis": ("\u2014\uff3c", "\u2015\u005c"),
    "swe7": ("@[\u005c]^`{|}~", "\u00c9\u00c4\u00d6\u00c5\u00dc\u00e9\u00e4\u00f6\u00e5\u00fc"),
    "ujis": ("\u2014\uff3c\uff5e", "\u2015\u005c~"),
    "eucjpms": (
        "\u2014\u301c\u2016\u2212\u00a2\u00a3\u00ac",
        "\u2015\uff5e\u2225\uff0d\uffe0\uffe1\uffe2",
    ),
}
"""Charset → characters that it does not have, and the characters that they stand for."""


def repair_table(charset: str) -> dict[int, int] | None:
    """The table for ``str.translate``; None for a charset that is not misread."""
    pair = MISREAD.get(charset)
    return None if pair is None else str.maketrans(*pair)


def has_spellings(column_type: ColumnType) -> bool:
    """Whether Debezium may spell one text of a type in two ways: in snapshots, in the binlog."""
    if column_type.is_string:
        return repair_table(column_type.charset) is not None
    return element_reader(column_type.elements) is not None


def may_lack_characters(charset: str) -> bool:
    """Whether U+FFFD in a text of this charset can only mean an unreadable character."""
    return charset not in _UNICODE


_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPE_IN_DOUBLE_QUOTES = re.compile(r'\\(.)|"(")', re.DOTALL)
_MAY_BE_ESCAPED = frozenset("\\,'\"\0\b\n\r\t\x1a")


def element_reader(elements: tuple[str, ...]) -> Callable[[str], str] | None:
    """Makes a function: Debezium's text for an element of an ENUM or SET → the element.

    In rows of the binlog Debezium spells elements as in the statement that made the column, with
    that statement's escapes. It also writes a backslash before commas, because it separates
    elements by commas in its own lists. Two single quotes become one, also between double quotes,
    where they are two; two double quotes stay two. A snapshot has the elements as they are.

    Returns:
        None when no element can be escaped: then the text is the element.

    Source: Debezium 3.6, ``extractEnumAndSetOptions``;
    tests/integration/connect/test_streamed_values.py.
    """
    if not any(_MAY_BE_ESCAPED & set(element) for element in elements):
        return None
    told = {element.replace("''", "'"): element for element in elements}
    told.update((element, element) for element in elements)

    def element(text: str) -> str:
        if text in told:
            return told[text]
        for escape in (_ESCAPE, _ESCAPE_IN_DOUBLE_QUOTES):
            plain = escape.sub(_unescaped, text)
            if plain in told:
                return told[plain]
        return text

    return lru_cache(maxsize=1_024)(element)


def _unescaped(found: re.Match[str]) -> str:
    letter: str = found[found.lastindex or 0]
    return _ESCAPES.get(letter, letter)
