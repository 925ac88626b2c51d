"""Comparisons: signs, IS, IN, BETWEEN, LIKE, REGEXP, SOUNDS LIKE and MEMBER OF.

Source: MySQL Reference Manual, "Comparison Functions and Operators"; sql/item*.cc ``print`` (read).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from shardmerge.schemas.ddl.grammar.tokens.lexer import Cursor

from .functions import ABOVE_COMPARISON, CONCATENATION, arguments
from .logic import chain, negated
from .notes import Notes, Read, truth

_OPPOSITES = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_SIGNS = {
    "=": "=", "<=>": "<=>", ">=": ">=", ">": ">", "<=": "<=", "<": "<", "<>": "<>", "!=": "<>",
}  # fmt: skip
_ROW_CHAINS = {"=": "and", "<=>": "and", "<>": "or"}
_Reader: TypeAlias = Callable[[Cursor, Notes, str, str, Read], str]
"""Reads a comparison after its word: (cursor, notes, left operand, "not " or "", reader)."""


def comparison(cursor: Cursor, notes: Notes, left: str, read: Read) -> str:
    """Read the comparison that follows an operand.

    Args:
        cursor: At the token after the operand.
        notes: The notes on the whole expression.
        left: The operand's text.
        read: Reads operands.

    Returns:
        The text of the whole comparison; "" when none follows, and then nothing was read.
    """
    word = cursor.word
    if word in _SIGNS:
        return _signed(cursor, notes, left, read)
    reader = _READERS.get(word)
    if reader is not None:
        cursor.advance()
        return reader(cursor, notes, left, "", read)
    if word == "NOT" and (reader := _NEGATABLE.get(cursor.ahead())) is not None:
        cursor.advance()
        cursor.advance()
        return reader(cursor, notes, left, "not ", read)
    return ""


def _signed(cursor: Cursor, notes: Notes, left: str, read: Read) -> str:
    sign = _SIGNS[cursor.word]
    cursor.advance()
    return _compared(notes, left, sign, _predicate(cursor, notes, read))


def _predicate(cursor: Cursor, notes: Notes, read: Read) -> str:
    """Read an operand, and what binds tighter than signs: ``a = b IN (1)`` is ``a = (b IN (1))``.

    Source: sql_yacc.yy, ``predicate``.
    """
    text = read(cursor, notes, ABOVE_COMPARISON)
    while cursor.word in _PREDICATES or (cursor.word == "NOT" and cursor.ahead() in _NEGATABLE):
        text = comparison(cursor, notes, text, read)
    return text


def _compared(notes: Notes, left: str, sign: str, right: str) -> str:
    pair = notes.rows.get(left), notes.rows.get(right)
    if pair[0] and pair[1] and sign in _ROW_CHAINS and len(pair[0]) == len(pair[1]):
        # MySQL compares rows value by value; MariaDB leaves them as they are written.
        values = zip(pair[0], pair[1], strict=True)
        return chain(_ROW_CHAINS[sign], [_compared(notes, a, sign, b) for a, b in values], notes)
    if left == "0" and sign in ("=", "<>"):
        # For a value that is used as a condition, MySQL writes 0 <> a and MariaDB a <> 0.
        left, right = right, left
    text = notes.condition(f"({left} {sign} {right})")
    opposite = _OPPOSITES.get(sign)
    if opposite:
        notes.opposites[text] = f"({left} {opposite} {right})"
    return text


def _is(cursor: Cursor, notes: Notes, left: str, _: str, read: Read) -> str:
    prefix = "not " if cursor.accept("NOT") else ""
    value = cursor.accept_any(("NULL", "TRUE", "FALSE", "UNKNOWN"))
    if not value:
        cursor.fail("NULL, TRUE, FALSE or UNKNOWN")
    if value == "UNKNOWN":
        value = "NULL"
    elif value != "NULL":
        left = truth(left, notes)
    return notes.either(f"({left} is ", prefix, f"{value.lower()})")


def _in(cursor: Cursor, notes: Notes, left: str, prefix: str, read: Read) -> str:
    items = arguments(cursor, notes, read)
    if len(items) == 1:
        return _compared(notes, left, "<>" if prefix else "=", items[0])
    return notes.either(f"({left} ", prefix, f"in ({','.join(items)}))")


def _between(cursor: Cursor, notes: Notes, left: str, prefix: str, read: Read) -> str:
    low = read(cursor, notes, ABOVE_COMPARISON)
    cursor.expect("AND")
    high = _predicate(cursor, notes, read)
    return notes.either(f"({left} ", prefix, f"between {low} and {high})")


def _like(cursor: Cursor, notes: Notes, left: str, prefix: str, read: Read) -> str:
    text = f"like {read(cursor, notes, ABOVE_COMPARISON)}"
    if cursor.accept("ESCAPE"):
        escape = read(cursor, notes, CONCATENATION)
        if cursor.context.at_least(80016, 0):
            # MySQL 5.7 and 8.0.15 store the comparison without it, and execute what they stored.
            text += f" escape {escape}"
    return notes.either(f"({left} ", prefix, f"{text})")


def _regexp(cursor: Cursor, notes: Notes, left: str, prefix: str, read: Read) -> str:
    pattern = read(cursor, notes, ABOVE_COMPARISON)
    if cursor.context.at_least(80004, None):
        text = notes.condition(f"regexp_like({left},{pattern})")
    else:
        text = notes.condition(f"({left} regexp {pattern})")
        if not cursor.context.is_mariadb:
            notes.opposites[text] = f"({left} not regexp {pattern})"
    return negated(cursor, text, notes) if prefix else text


def _sounds(cursor: Cursor, notes: Notes, left: str, _: str, read: Read) -> str:
    cursor.expect("LIKE")
    right = read(cursor, notes, ABOVE_COMPARISON)
    return notes.condition(f"(soundex({left}) = soundex({right}))")


def _member(cursor: Cursor, notes: Notes, left: str, _: str, read: Read) -> str:
    cursor.accept("OF")
    cursor.expect("(")
    text = f"{left} member of ({read(cursor, notes, 0)})"
    cursor.expect(")")
    return notes.condition(text)


_NEGATABLE: dict[str, _Reader] = {
    "IN": _in, "BETWEEN": _between, "LIKE": _like, "REGEXP": _regexp, "RLIKE": _regexp,
}  # fmt: skip
"""The comparisons that NOT may precede."""
_PREDICATES: dict[str, _Reader] = {**_NEGATABLE, "SOUNDS": _sounds, "MEMBER": _member}
_READERS: dict[str, _Reader] = {**_PREDICATES, "IS": _is}
