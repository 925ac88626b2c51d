"""Expressions whose value depends on the time zone of the session that evaluates them.

A TIMESTAMP is a moment. Where an expression makes a text, a date or a number of it, or compares it
with something else, the server converts it to the session's time zone. The shards' applications
write in their time zone, the sink in UTC. So a target that computed such an expression itself
would get other values than the shards have.

Source: MySQL Reference Manual, "MySQL Server Time Zone Support", "Date and Time Functions".
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from .expressions import column_names

_STRINGS = re.compile(r"('(?:[^'\\]|\\.|'')*')|(`(?:[^`]|``)*`)", re.DOTALL)
_MOMENT = "`m`"
_NUMBER = "1"
_SAFE = (
    (re.compile(r"unix_timestamp\(`m`\)"), _NUMBER),
    (re.compile(r"\(`m` is (?:not )?null\)"), _NUMBER),
    (re.compile(r"\(`m` (?:<=>|<=|>=|<>|=|<|>) `m`\)"), _NUMBER),
    (re.compile(r"\(`m` (?:not )?between `m` and `m`\)"), _NUMBER),
    (re.compile(r"\((?:not|!) ?1\)"), _NUMBER),
    (re.compile(r"\(1 (?:and|or|xor) 1\)"), _NUMBER),
    (re.compile(r"(?:coalesce|ifnull|nullif|greatest|least)\(`m`(?:,`m`)*\)"), _MOMENT),
    (re.compile(r"if\(1,(?:`m`|NULL),(?:`m`|NULL)\)", re.IGNORECASE), _MOMENT),
)
"""Parts of an expression of moments that are the same in every time zone → what they are."""
_CONVERSIONS = ("from_unixtime(", "unix_timestamp(")
_OF_SYSTEM = re.compile(r"convert_tz\(.*'system'", re.IGNORECASE | re.DOTALL)


def depends_on_zone(expression: str, moments: Iterable[str], *, is_moment: bool = False) -> bool:
    """Whether an expression may have another value in another time zone of the session.

    True as well for some expressions whose value is always the same.

    Args:
        expression: Canonical text.
        moments: The TIMESTAMP columns of the table.
        is_moment: Whether the value is stored in a TIMESTAMP column.
    """
    folded = {name.lower() for name in moments}
    named = {name for name in column_names(expression) if name.lower() in folded}
    if not named and not is_moment and not any(c in expression for c in _CONVERSIONS):
        return _OF_SYSTEM.search(expression) is not None

    def piece(match: re.Match[str]) -> str:
        if match[1] is not None:
            return "''"
        name = match[2][1:-1].replace("``", "`")
        return _MOMENT if name in named else "c"

    text = _STRINGS.sub(piece, expression)
    before = ""
    while before != text:
        before = text
        for pattern, value in _SAFE:
            text = pattern.sub(value, text)
    if text == _MOMENT:
        return not is_moment
    rest = (_MOMENT, *_CONVERSIONS)
    return is_moment or any(part in text for part in rest) or bool(_OF_SYSTEM.search(expression))
