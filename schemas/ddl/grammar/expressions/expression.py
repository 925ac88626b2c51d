"""Expressions in DEFAULT, CHECK, generated columns, functional indexes and partitions.

Operator-precedence parser that writes what it reads in one canonical form, close to the one
in which MySQL prints expressions: names in backticks, keywords and functions in lower case,
every operator in parentheses. So ``a+1`` in one statement and ``(`a` + 1)`` in another server's
SHOW CREATE TABLE are the same text, and the text is valid SQL.

Source: MySQL Reference Manual, "Operator Precedence"; sql/item*.cc ``print`` (read).
"""

from __future__ import annotations

from dataclasses import dataclass

from shardmerge.schemas.ddl.grammar.tokens.charset_words import collation_word
from shardmerge.schemas.ddl.grammar.tokens.lexer import (
    BIT,
    HEX,
    NATIONAL,
    NUMBER,
    STRING,
    Cursor,
)
from shardmerge.schemas.model.charsets import charset_name
from shardmerge.schemas.model.names import quote_identifier

from .functions import (
    ABOVE_COMPARISON,
    NILADIC,
    RESERVED_FUNCTIONS,
    UNARY,
    arguments,
    call,
    interval,
)
from .literal_text import (
    binary_literal,
    decoded,
    number,
    quote_string,
)
from .notes import (
    Notes,
    truth,
)
from .sequences import sequence_value

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
                left = _operation(left, sign, _read(cursor, notes, level + 1), notes)
        elif word in ("AND", "&&") and least <= _AND:
            cursor.advance()
            left = _chain("and", [left, _read(cursor, notes, _AND + 1)], notes)
        elif word in ("OR", "||") and least <= _OR:
            if word == "||" and cursor.context.pipes_as_concat:
                cursor.advance()
                left = f"concat({left},{_read(cursor, notes, UNARY)})"
                continue
            cursor.advance()
            left = _chain("or", [left, _read(cursor, notes, _OR + 1)], notes)
        elif word == "XOR" and least <= _XOR:
            cursor.advance()
            left = _exclusive(left, _read(cursor, notes, _XOR + 1), notes)
        elif least <= _COMPARE and (found := _comparison(cursor, notes, left)):
            left = found
        elif word == "COLLATE":
            cursor.advance()
            left = f"({left} collate {collation_word(cursor)})"
        else:
            return left


def _operation(left: str, sign: str, right: str, notes: Notes) -> str:
    if sign == "-" and left in notes.days and right in notes.days:
        # MySQL writes DATEDIFF so.
        return f"datediff({notes.days[left]},{notes.days[right]})"
    return f"({left} {sign} {right})"


def _negated(cursor: Cursor, text: str, notes: Notes) -> str:
    """``NOT`` as servers store it: the opposite comparison, AND for OR, ``= 0`` for a value."""
    chain = notes.chains.get(text)
    if chain is not None:
        word, parts = chain
        negated = [_negated(cursor, part, notes) for part in parts]
        return _chain("or" if word == "and" else "and", negated, notes)
    exclusive = notes.exclusives.get(text)
    if exclusive is not None:
        return _exclusive(_negated(cursor, exclusive[0], notes), exclusive[1], notes)
    opposite = notes.opposites.get(text)
    if opposite is None and text in notes.conditions and not cursor.context.is_mariadb:
        opposite = f"(not({text}))"
    elif opposite is None:
        opposite = f"({text} = 0)"
    notes.opposites[opposite] = text if text in notes.conditions else f"({text} <> 0)"
    return notes.condition(opposite)


def _exclusive(left: str, right: str, notes: Notes) -> str:
    operands = truth(left, notes), truth(right, notes)
    text = notes.condition(f"({operands[0]} xor {operands[1]})")
    notes.exclusives[text] = operands
    return text


def _chain(word: str, operands: list[str], notes: Notes) -> str:
    """``(a and b)`` and ``c`` make ``(a and b and c)``: servers flatten AND and OR."""
    parts: list[str] = []
    for operand in operands:
        found = notes.chains.get(operand)
        if found is not None and found[0] == word:
            parts += found[1]
        else:
            parts.append(truth(operand, notes))
    text = notes.condition("(" + f" {word} ".join(parts) + ")")
    notes.chains[text] = (word, parts)
    return text


def _comparison(cursor: Cursor, notes: Notes, left: str) -> str:
    word = cursor.word
    if word in _COMPARISONS:
        cursor.advance()
        sign = _COMPARISONS[word]
        right = _read(cursor, notes, ABOVE_COMPARISON)
        if left == "0" and sign in ("=", "<>"):
            # MySQL writes 0 <> a for a value as a condition, MariaDB a <> 0.
            left, right = right, left
        text = notes.condition(f"({left} {sign} {right})")
        opposite = _OPPOSITES.get(sign)
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
        elif value != "NULL":
            left = truth(left, notes)
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
            match = notes.condition(f"regexp_like({left},{pattern})")
            return _negated(cursor, match, notes) if negated else match
        text = notes.condition(f"({left} regexp {pattern})")
        if not cursor.context.is_mariadb:
            notes.opposites[text] = f"({left} not regexp {pattern})"
        return _negated(cursor, text, notes) if negated else text
    if word == "SOUNDS":
        cursor.expect("SOUNDS", "LIKE")
        right = _read(cursor, notes, ABOVE_COMPARISON)
        return notes.condition(f"(soundex({left}) = soundex({right}))")
    if word == "MEMBER":
        cursor.advance()
        cursor.accept("OF")
        cursor.expect("(")
        text = f"{left} member of ({_read(cursor, notes, 0)})"
        cursor.expect(")")
        return notes.condition(text)
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
        if word != "NULL" and cursor.context.is_mariadb:
            text = "1" if word == "TRUE" else "0"
        else:
            text = word.lower() if word == "NULL" else notes.condition(word.lower())
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
    more = cursor.accept_nested()
    text = _read(cursor, notes, 0)
    if cursor.word == ",":
        items = [text]
        while cursor.accept(","):
            items.append(_read(cursor, notes, 0))
        text = f"({','.join(items)})"
    for _ in range(more + 1):
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
    """Read a literal with its charset: the charset is left out where the text tells the same.

    MySQL writes literals in the charset of the column that they meet, whatever was written.
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
