"""Expressions in DEFAULT, CHECK, generated columns, functional indexes and partitions.

This operator-precedence parser writes expressions in one canonical form, close to MySQL's own:
names in backticks, keywords and functions in lower case, every operation in parentheses. So
``a+1`` in a statement and ``(`a` + 1)`` in another server's SHOW CREATE TABLE become the same text,
and the text is valid SQL.

Source: MySQL Reference Manual, "Operator Precedence"; sql/item*.cc ``print`` (read).
"""

from __future__ import annotations

from dataclasses import dataclass

from shardmerge.schemas.ddl.grammar.tokens.charset_words import collation_word
from shardmerge.schemas.ddl.grammar.tokens.lexer import BIT, HEX, NATIONAL, NUMBER, STRING, Cursor
from shardmerge.schemas.model.charsets import charset_name
from shardmerge.schemas.model.names import quote_identifier

from .comparisons import comparison
from .function_forms import NILADIC
from .functions import CONCATENATION, RESERVED_FUNCTIONS, UNARY, call, interval
from .literal_text import binary_literal, decoded, number, quote_string
from .logic import chain, exclusive, negated
from .notes import Notes, truth
from .sequences import sequence_value

_OR, _XOR, _AND, _NOT, _COMPARE = 1, 2, 3, 4, 6
_BINARY_OPERATORS = {
    "|": (7, "|"), "&": (8, "&"), "<<": (9, "<<"), ">>": (9, ">>"), "-": (10, "-"),
    "+": (10, "+"), "*": (11, "*"), "/": (11, "/"), "DIV": (11, "DIV"), "%": (11, "%"),
    "MOD": (11, "%"), "^": (12, "^"),
}  # fmt: skip
_ADDITION = 10
_ESCAPES = {"D": "DATE", "T": "TIME", "TS": "TIMESTAMP"}


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression: its canonical text, and the columns that it names, in order of appearance."""

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
    if cursor.word == "NOT" and least <= _NOT and not cursor.context.not_is_high:
        cursor.advance()
        left = negated(cursor, _read(cursor, notes, _NOT), notes)
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
                left = _operation(left, sign, _read(cursor, notes, level + 1), notes)
        elif word in ("AND", "&&") and least <= _AND:
            cursor.advance()
            left = chain("and", [left, _read(cursor, notes, _AND + 1)], notes)
        elif word == "||" and cursor.context.pipes_as_concat:
            level, function = _concatenation(cursor)
            if level < least:
                return left
            cursor.advance()
            left = f"{function}({left},{_read(cursor, notes, level + 1)})"
        elif word in ("OR", "||") and least <= _OR:
            cursor.advance()
            left = chain("or", [left, _read(cursor, notes, _OR + 1)], notes)
        elif word == "XOR" and least <= _XOR:
            cursor.advance()
            left = exclusive(left, _read(cursor, notes, _XOR + 1), notes)
        elif least <= _COMPARE and (found := comparison(cursor, notes, left, _read)):
            left = found
        elif word == "COLLATE":
            cursor.advance()
            left = f"({left} collate {collation_word(cursor)})"
        else:
            return left


def _concatenation(cursor: Cursor) -> tuple[int, str]:
    """Level and function of ``||`` where it joins strings.

    Source: sql_yacc.yy, ``OR2_SYM`` in ``simple_expr`` and ``%left``: tighter than ``^``, looser
    than a sign. MariaDB's sql_mode ORACLE has a grammar of its own, where it stands beside ``+``,
    and NULL joins as ''. (Measured on MySQL 5.7, 8.0, 9.7, MariaDB 10.11, 11.8.)
    """
    if cursor.context.is_oracle:
        return _ADDITION, "concat_operator_oracle"
    return CONCATENATION, "concat"


def _operation(left: str, sign: str, right: str, notes: Notes) -> str:
    if sign == "-" and left in notes.days and right in notes.days:
        # MySQL prints DATEDIFF as a difference of TO_DAYS.
        return f"datediff({notes.days[left]},{notes.days[right]})"
    return f"({left} {sign} {right})"


def _operand(cursor: Cursor, notes: Notes) -> str:
    text = _literal(cursor, notes) or _non_literal(cursor, notes)
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


def _literal(cursor: Cursor, notes: Notes) -> str:
    """Read a literal; "" when there is none, and then nothing was read."""
    word = cursor.word
    if word in (STRING, NATIONAL):
        return quote_string(cursor.string())
    if word == NUMBER or (word == "." and cursor.ahead() == NUMBER):
        return number(cursor)
    if word in (HEX, BIT):
        return binary_literal(cursor)
    if word in ("NULL", "TRUE", "FALSE"):
        cursor.advance()
        if word == "NULL":
            return "null"
        if cursor.context.is_mariadb:
            return "1" if word == "TRUE" else "0"
        return notes.condition(word.lower())
    if word.startswith("_") and cursor.ahead() in (STRING, HEX, BIT):
        return _introduced(cursor)
    if word in ("DATE", "TIME", "TIMESTAMP") and cursor.ahead() == STRING:
        cursor.advance()
        return f"{word}{quote_string(cursor.string())}"
    return ""


def _non_literal(cursor: Cursor, notes: Notes) -> str:
    """Read an operand that is no literal, such as a group, a function or a column."""
    word = cursor.word
    if word == "(":
        return _group(cursor, notes)
    if word in ("-", "+", "~", "!") or (word == "NOT" and cursor.context.not_is_high):
        return _unary(cursor, notes)
    if word == "CASE":
        return _case(cursor, notes)
    if word == "BINARY":
        cursor.advance()
        return f"cast({_read(cursor, notes, UNARY)} as char charset binary)"
    if word == "INTERVAL" and cursor.ahead() != "(":
        text = interval(cursor, notes, _read)
        cursor.expect("+")
        return f"({_read(cursor, notes, 11)} + {text})"
    if word in ("NEXT", "PREVIOUS") and cursor.ahead() == "VALUE" and cursor.context.is_mariadb:
        return sequence_value(cursor)
    if word in ("@", "@@"):
        return _variable(cursor, notes)
    if word == "{":
        return _escaped(cursor, notes)
    if cursor.ahead() == "(" and (cursor.is_name() or word in RESERVED_FUNCTIONS):
        return call(cursor, notes, _read)
    if word in NILADIC:
        cursor.advance()
        return f"{NILADIC[word]}()"
    return _column(cursor, notes)


def _variable(cursor: Cursor, notes: Notes) -> str:
    """Read a session or server variable, which MariaDB allows in a DEFAULT."""
    if not cursor.context.is_mariadb:
        cursor.fail("a value that does not depend on the session")
    text = cursor.word
    cursor.advance()
    name = cursor.name_or_string("a variable").lower()
    while cursor.accept("."):
        # MariaDB stores the name without SESSION or GLOBAL.
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
    more = cursor.accept_nested()
    text = _read(cursor, notes, 0)
    if cursor.word == ",":
        items = [text]
        while cursor.accept(","):
            items.append(_read(cursor, notes, 0))
        text = notes.row(items)
    for _ in range(more + 1):
        cursor.expect(")")
    return text


def _unary(cursor: Cursor, notes: Notes) -> str:
    sign = cursor.word
    cursor.advance()
    value = _read(cursor, notes, UNARY)
    if sign == "+":
        return value
    if sign in ("!", "NOT"):
        return negated(cursor, value, notes)
    if sign == "-" and value[0].isdigit():
        return f"-{value}"
    if sign == "-" and value[0] == "-" and value[1].isdigit() and cursor.context.is_mariadb:
        return value[1:]
    return f"{sign}({value})"


def _introduced(cursor: Cursor) -> str:
    """Read a literal with a charset introducer; drop the introducer if the text needs none.

    MySQL prints literals in the charset of the column that they are used with, whatever was
    written.
    """
    charset = charset_name(cursor.word[1:])
    cursor.advance()
    if cursor.word == STRING:
        value = cursor.string()
        text = decoded(value.encode(), charset)
        return f"_{charset}{quote_string(value)}" if text is None else quote_string(text)
    digits = binary_literal(cursor)
    text = decoded(bytes.fromhex(digits[2:].rjust(-(-len(digits) // 2) * 2 - 2, "0")), charset)
    return f"_{charset} {digits}" if text is None else quote_string(text)


def _case(cursor: Cursor, notes: Notes) -> str:
    cursor.expect("CASE")
    text = "(case"
    compares = cursor.word != "WHEN"
    if compares:
        text += f" {_read(cursor, notes, 0)}"
    while cursor.accept("WHEN"):
        when = _read(cursor, notes, 0)
        text += f" when {when if compares else truth(when, notes)}"
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
