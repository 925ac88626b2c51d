"""Expressions in DEFAULT, CHECK, generated columns, functional indexes and partitions.

Operator-precedence parser that writes what it reads in one canonical form, close to the one
in which MySQL prints expressions: names in backticks, keywords and functions in lower case,
every operator in parentheses. So ``a+1`` in one statement and ``(`a` + 1)`` in another server's
SHOW CREATE TABLE are the same text, and the text is valid SQL.

Source: MySQL Reference Manual, "Operator Precedence"; sql/item*.cc ``print`` (read).
"""

from __future__ import annotations

from dataclasses import dataclass

from shardmerge.schemas.charsets import charset_name
from shardmerge.schemas.names import quote_identifier

from .charset_words import collation_word
from .functions import (
    ABOVE_COMPARISON,
    NILADIC,
    RESERVED_FUNCTIONS,
    UNARY,
    arguments,
    call,
    interval,
    sequence_value,
)
from .lexer import BIT, HEX, NATIONAL, NUMBER, STRING, Cursor
from .literal_text import binary_literal, number, quote_string
from .notes import Notes

_OR, _XOR, _AND, _NOT, _COMPARE = 1, 2, 3, 4, 6
_BINARY_OPERATORS = {
    "|": (7, "|"), "&": (8, "&"), "<<": (9, "<<"), ">>": (9, ">>"), "-": (10, "-"),
    "+": (10, "+"), "*": (11, "*"), "/": (11, "/"), "DIV": (11, "DIV"), "%": (11, "%"),
    "MOD": (11, "%"), "^": (12, "^"),
}  # fmt: skip
_ESCAPES = {"D": "DATE", "T": "TIME", "TS": "TIMESTAMP"}
_OPPOSITES = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_COMPARISONS = {
    "=": "=", "<=>": "<=>", ">=": ">=", ">": ">", "<=": "<=", "<": "<", "<>": "<>", "!=": "<>",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Expression:
    """What was read: the canonical text, and the columns it names in order of appearance."""

    text: str
    columns: tuple[str, ...]


def expression(cursor: Cursor) -> Expression:
    """Read one expression up to the first token that can't belong to it."""
    notes = Notes()
    text = _read(cursor, notes, 0)
    return Expression(text, tuple(notes.columns))


def parenthesised(cursor: Cursor) -> Expression:
    """Read an expression in parentheses."""
    cursor.expect("(")
    found = expression(cursor)
    cursor.expect(")")
    return found


def _read(cursor: Cursor, notes: Notes, least: int) -> str:
    if cursor.word == "NOT" and least <= _NOT:
        cursor.advance()
        left = _negated(cursor, _read(cursor, notes, _NOT), notes)
    else:
        left = _operand(cursor, notes)
    while True:
        word = cursor.word
        if word in _BINARY_OPERATORS:
            level, sign = _BINARY_OPERATORS[word]
            if level < least:
                return left
            cursor.advance()
            if cursor.word == "INTERVAL" and sign in "+-":
                left = f"({left} {sign} {interval(cursor, notes, _read)})"
            else:
                left = f"({left} {sign} {_read(cursor, notes, level + 1)})"
        elif word in ("AND", "&&") and least <= _AND:
            cursor.advance()
            left = _chain("and", left, _read(cursor, notes, _AND + 1))
        elif word in ("OR", "||") and least <= _OR:
            if word == "||" and cursor.context.pipes_as_concat:
                cursor.advance()
                left = f"concat({left},{_read(cursor, notes, UNARY)})"
                continue
            cursor.advance()
            left = _chain("or", left, _read(cursor, notes, _OR + 1))
        elif word == "XOR" and least <= _XOR:
            cursor.advance()
            left = f"({left} xor {_read(cursor, notes, _XOR + 1)})"
        elif least <= _COMPARE and (found := _comparison(cursor, notes, left)):
            left = found
        elif word == "COLLATE":
            cursor.advance()
            left = f"({left} collate {collation_word(cursor)})"
        else:
            return left


def _negated(cursor: Cursor, text: str, notes: Notes) -> str:
    """``NOT`` of a comparison is the opposite comparison, as the server stores it."""
    opposite = notes.opposites.get(text)
    if opposite:
        return opposite
    return f"({text} = 0)" if cursor.context.is_mariadb else f"(not({text}))"


def _chain(word: str, left: str, right: str) -> str:
    """``(a and b)`` and ``c`` make ``(a and b and c)``: MySQL flattens AND and OR."""
    parts = [*_parts(word, left), *_parts(word, right)]
    return "(" + f" {word} ".join(parts) + ")"


def _parts(word: str, text: str) -> list[str]:
    """The operands if ``text`` is a chain of that very operator, else the text itself."""
    if not (text.startswith("(") and f" {word} " in text):
        return [text]
    depth = 0
    quote = ""
    parts: list[str] = []
    start = 1
    at = 0
    between = False
    while at < len(text) - 1:
        character = text[at]
        if quote:
            if character == "\\" and quote == "'":
                at += 1
            elif character == quote:
                quote = ""
        elif character in "'`":
            quote = character
        elif character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
            if depth == 0:
                return [text]
        elif depth == 1 and character == " ":
            if text.startswith(" between ", at):
                between = True
            elif text.startswith(f" {word} ", at):
                if between:
                    return [text]
                parts.append(text[start:at])
                start = at + len(word) + 2
                at = start - 1
        at += 1
    if not parts:
        return [text]
    return [*parts, text[start:-1]]


def _comparison(cursor: Cursor, notes: Notes, left: str) -> str:
    word = cursor.word
    if word in _COMPARISONS:
        cursor.advance()
        right = _read(cursor, notes, ABOVE_COMPARISON)
        text = f"({left} {_COMPARISONS[word]} {right})"
        opposite = _OPPOSITES.get(_COMPARISONS[word])
        if opposite:
            notes.opposites[text] = f"({left} {opposite} {right})"
        return text
    if word == "IS":
        cursor.advance()
        negated = "not " if cursor.accept("NOT") else ""
        value = cursor.accept_any(("NULL", "TRUE", "FALSE", "UNKNOWN"))
        if not value:
            cursor.fail("NULL, TRUE, FALSE or UNKNOWN")
        if value == "UNKNOWN":
            value = "NULL"
        return notes.either(f"({left} is ", negated, f"{value.lower()})")
    start = cursor.index
    negated = ""
    if word == "NOT":
        cursor.advance()
        negated = "not "
        word = cursor.word
    if word == "IN":
        cursor.advance()
        return notes.either(f"({left} ", negated, f"in ({arguments(cursor, notes, _read)}))")
    if word == "BETWEEN":
        cursor.advance()
        low = _read(cursor, notes, ABOVE_COMPARISON)
        cursor.expect("AND")
        high = _read(cursor, notes, ABOVE_COMPARISON)
        return notes.either(f"({left} ", negated, f"between {low} and {high})")
    if word == "LIKE":
        cursor.advance()
        text = f"like {_read(cursor, notes, ABOVE_COMPARISON)}"
        if cursor.accept("ESCAPE"):
            text += f" escape {_operand(cursor, notes)}"
        return notes.either(f"({left} ", negated, f"{text})")
    if word in ("REGEXP", "RLIKE"):
        cursor.advance()
        pattern = _read(cursor, notes, ABOVE_COMPARISON)
        if cursor.context.at_least(80004, None):
            match = f"regexp_like({left},{pattern})"
            return f"(not({match}))" if negated else match
        text = f"({left} regexp {pattern})"
        if negated and cursor.context.is_mariadb:
            return f"({text} = 0)"
        return f"({left} not regexp {pattern})" if negated else text
    if word == "SOUNDS":
        cursor.expect("SOUNDS", "LIKE")
        return f"(soundex({left}) = soundex({_read(cursor, notes, ABOVE_COMPARISON)}))"
    if word == "MEMBER":
        cursor.advance()
        cursor.accept("OF")
        cursor.expect("(")
        text = f"{left} member of ({_read(cursor, notes, 0)})"
        cursor.expect(")")
        return text
    cursor.seek(start)
    return ""


def _operand(cursor: Cursor, notes: Notes) -> str:
    word = cursor.word
    text = ""
    if word == "(":
        text = _group(cursor, notes)
    elif word in (STRING, NATIONAL):
        text = quote_string(cursor.string())
    elif word == NUMBER or (word == "." and cursor.ahead() == NUMBER):
        text = number(cursor)
    elif word in (HEX, BIT):
        text = binary_literal(cursor)
    elif word in ("-", "+", "~", "!"):
        text = _unary(cursor, notes)
    elif word in ("NULL", "TRUE", "FALSE"):
        cursor.advance()
        text = word.lower()
    elif word == "CASE":
        text = _case(cursor, notes)
    elif word == "BINARY":
        cursor.advance()
        text = f"cast({_read(cursor, notes, UNARY)} as char charset binary)"
    elif word.startswith("_") and cursor.ahead() in (STRING, HEX, BIT):
        text = _introduced(cursor)
    elif word in ("DATE", "TIME", "TIMESTAMP") and cursor.ahead() == STRING:
        cursor.advance()
        text = f"{word}{quote_string(cursor.string())}"
    elif word == "INTERVAL" and cursor.ahead() != "(":
        text = interval(cursor, notes, _read)
        cursor.expect("+")
        text = f"({_read(cursor, notes, 11)} + {text})"
    elif word in ("NEXT", "PREVIOUS") and cursor.ahead() == "VALUE" and cursor.context.is_mariadb:
        text = sequence_value(cursor)
    elif word in ("@", "@@"):
        text = _variable(cursor, notes)
    elif word == "{":
        text = _escaped(cursor, notes)
    elif cursor.ahead() == "(" and (cursor.is_name() or word in RESERVED_FUNCTIONS):
        text = call(cursor, notes, _read)
    elif word in NILADIC:
        cursor.advance()
        text = f"{NILADIC[word]}()"
    else:
        text = _column(cursor, notes)
    while cursor.word in ("->", "->>"):
        arrow = cursor.word
        cursor.advance()
        path = quote_string(cursor.string("a JSON path"))
        text = f"json_extract({text},{path})"
        if arrow == "->>":
            text = f"json_unquote({text})"
    if cursor.word == "COLLATE":
        cursor.advance()
        text = f"({text} collate {collation_word(cursor)})"
    return text


def _variable(cursor: Cursor, notes: Notes) -> str:
    """Read a variable of the session or the server, which MariaDB takes in a DEFAULT."""
    if not cursor.context.is_mariadb:
        cursor.fail("a value that does not depend on the session")
    text = cursor.word
    cursor.advance()
    name = cursor.name_or_string("a variable").lower()
    while cursor.accept("."):
        # MariaDB keeps neither SESSION nor GLOBAL.
        name = cursor.identifier("a variable", reserved=True).lower()
    text += name
    if cursor.word == "=" and cursor.text() == ":=":
        cursor.advance()
        text = f"({text} := {_read(cursor, notes, 0)})"
    return text


def _escaped(cursor: Cursor, notes: Notes) -> str:
    """Read ``{d '2020-01-01'}``, ODBC's way to write dates and times."""
    cursor.expect("{")
    word = cursor.identifier("D, T or TS").upper()
    if cursor.is_string() and word in _ESCAPES:
        text = f"{_ESCAPES[word]}{quote_string(cursor.string())}"
    else:
        text = _read(cursor, notes, 0)
    cursor.expect("}")
    return text


def _group(cursor: Cursor, notes: Notes) -> str:
    cursor.expect("(")
    text = _read(cursor, notes, 0)
    if cursor.word == ",":
        items = [text]
        while cursor.accept(","):
            items.append(_read(cursor, notes, 0))
        text = f"({','.join(items)})"
    cursor.expect(")")
    return text


def _unary(cursor: Cursor, notes: Notes) -> str:
    sign = cursor.word
    cursor.advance()
    value = _read(cursor, notes, UNARY)
    if sign == "+":
        return value
    if sign == "!":
        return _negated(cursor, value, notes)
    if sign == "-" and value[0].isdigit():
        return f"-{value}"
    return f"{sign}({value})"


def _introduced(cursor: Cursor) -> str:
    charset = charset_name(cursor.word[1:])
    cursor.advance()
    if cursor.word == STRING:
        value = quote_string(cursor.string())
        return value if charset in ("utf8mb3", "utf8mb4") else f"_{charset}{value}"
    return f"_{charset} {binary_literal(cursor)}"


def _case(cursor: Cursor, notes: Notes) -> str:
    cursor.expect("CASE")
    text = "(case"
    if cursor.word != "WHEN":
        text += f" {_read(cursor, notes, 0)}"
    while cursor.accept("WHEN"):
        text += f" when {_read(cursor, notes, 0)}"
        cursor.expect("THEN")
        text += f" then {_read(cursor, notes, 0)}"
    if cursor.accept("ELSE"):
        text += f" else {_read(cursor, notes, 0)}"
    cursor.expect("END")
    return text + " end)"


def _column(cursor: Cursor, notes: Notes) -> str:
    name = cursor.identifier("an expression")
    while cursor.accept("."):
        name = cursor.identifier("a column", reserved=True)
    notes.columns.append(name)
    return quote_identifier(name)
