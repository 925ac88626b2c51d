"""Expressions in DEFAULT, CHECK, generated columns, functional indexes and partitions.

Operator-precedence parser that writes what it reads in one canonical form, close to the one
in which MySQL prints expressions: names in backticks, keywords and functions in lower case,
every operator in parentheses. So ``a+1`` in one statement and ``(`a` + 1)`` in another server's
SHOW CREATE TABLE are the same text, and the text is valid SQL.

Source: MySQL Reference Manual, "Operator Precedence"; sql/item*.cc ``print`` (read).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from shardmerge.schemas.charsets import charset_name
from shardmerge.schemas.names import quote_identifier

from .charset_words import accept_charset, charset_word, collation_word
from .lexer import BIT, HEX, NAME, NATIONAL, NUMBER, STRING, Cursor
from .words import words

_OR, _XOR, _AND, _NOT, _COMPARE = 1, 2, 3, 4, 6
_BINARY_OPERATORS = {
    "|": (7, "|"), "&": (8, "&"), "<<": (9, "<<"), ">>": (9, ">>"), "-": (10, "-"),
    "+": (10, "+"), "*": (11, "*"), "/": (11, "/"), "DIV": (11, "DIV"), "%": (11, "%"),
    "MOD": (11, "%"), "^": (12, "^"),
}  # fmt: skip
_UNARY = 13
_COMPARISONS = {
    "=": "=", "<=>": "<=>", ">=": ">=", ">": ">", "<=": "<=", "<": "<", "<>": "<>", "!=": "<>",
}  # fmt: skip
_NILADIC = {
    "CURRENT_TIMESTAMP": "now", "LOCALTIME": "now", "LOCALTIMESTAMP": "now",
    "CURRENT_DATE": "curdate", "CURRENT_TIME": "curtime", "UTC_DATE": "utc_date",
    "UTC_TIME": "utc_time", "UTC_TIMESTAMP": "utc_timestamp", "CURRENT_USER": "current_user",
}  # fmt: skip
_SYNONYMS = {
    **{name.lower(): target for name, target in _NILADIC.items()},
    "substring": "substr", "mid": "substr", "lcase": "lower", "ucase": "upper", "power": "pow",
    "ceil": "ceiling", "day": "dayofmonth", "adddate": "date_add", "subdate": "date_sub",
    "character_length": "char_length", "octet_length": "length", "sha1": "sha", "std": "stddev",
    "session_user": "user", "system_user": "user", "schema": "database",
    "glength": "st_numpoints",
}  # fmt: skip
_UNITS = words(
    """
    MICROSECOND SECOND MINUTE HOUR DAY WEEK MONTH QUARTER YEAR SECOND_MICROSECOND
    MINUTE_MICROSECOND MINUTE_SECOND HOUR_MICROSECOND HOUR_SECOND HOUR_MINUTE DAY_MICROSECOND
    DAY_SECOND DAY_MINUTE DAY_HOUR YEAR_MONTH
    """
)
_UNIT_FIRST = frozenset({"TIMESTAMPADD", "TIMESTAMPDIFF"})
# Reserved words that are also functions.
_RESERVED_FUNCTIONS = words(
    """
    IF LEFT RIGHT REPLACE REPEAT INSERT MOD CHAR CONVERT INTERVAL DATABASE SCHEMA VALUES DEFAULT
    """
) | frozenset(_NILADIC)


@dataclass(slots=True)
class Expression:
    """What was read: the canonical text, and the columns it names in order of appearance."""

    text: str = ""
    columns: list[str] = field(default_factory=list)


def expression(cursor: Cursor) -> Expression:
    """Read one expression up to the first token that can't belong to it."""
    found = Expression()
    found.text = _read(cursor, found.columns, 0)
    return found


def parenthesised(cursor: Cursor) -> Expression:
    """Read an expression in parentheses."""
    cursor.expect("(")
    found = expression(cursor)
    cursor.expect(")")
    return found


def quote_string(value: str) -> str:
    """A string literal with MySQL's default escapes."""
    return "'" + value.replace("\\", "\\\\").replace("'", "''").replace("\0", "\\0") + "'"


def _read(cursor: Cursor, columns: list[str], least: int) -> str:
    if cursor.word == "NOT" and least <= _NOT:
        cursor.advance()
        left = f"(not({_read(cursor, columns, _NOT)}))"
    else:
        left = _operand(cursor, columns)
    while True:
        word = cursor.word
        if word in _BINARY_OPERATORS:
            level, sign = _BINARY_OPERATORS[word]
            if level < least:
                return left
            cursor.advance()
            if cursor.word == "INTERVAL" and sign in "+-":
                left = f"({left} {sign} {_interval(cursor, columns)})"
            else:
                left = f"({left} {sign} {_read(cursor, columns, level + 1)})"
        elif word in ("AND", "&&") and least <= _AND:
            cursor.advance()
            left = _chain("and", left, _read(cursor, columns, _AND + 1))
        elif word in ("OR", "||") and least <= _OR:
            if word == "||" and cursor.context.pipes_as_concat:
                cursor.advance()
                left = f"concat({left},{_read(cursor, columns, _UNARY)})"
                continue
            cursor.advance()
            left = _chain("or", left, _read(cursor, columns, _OR + 1))
        elif word == "XOR" and least <= _XOR:
            cursor.advance()
            left = f"({left} xor {_read(cursor, columns, _XOR + 1)})"
        elif least <= _COMPARE and (found := _comparison(cursor, columns, left)):
            left = found
        elif word == "COLLATE":
            cursor.advance()
            left = f"({left} collate {collation_word(cursor)})"
        else:
            return left


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


def _comparison(cursor: Cursor, columns: list[str], left: str) -> str:
    word = cursor.word
    if word in _COMPARISONS:
        cursor.advance()
        return f"({left} {_COMPARISONS[word]} {_read(cursor, columns, _COMPARE + 1)})"
    if word == "IS":
        cursor.advance()
        negated = "not " if cursor.accept("NOT") else ""
        value = cursor.accept_any(("NULL", "TRUE", "FALSE", "UNKNOWN"))
        if not value:
            cursor.fail("NULL, TRUE, FALSE or UNKNOWN")
        return f"({left} is {negated}{value.lower()})"
    start = cursor.index
    negated = ""
    if word == "NOT":
        cursor.advance()
        negated = "not "
        word = cursor.word
    if word == "IN":
        cursor.advance()
        return f"({left} {negated}in ({_arguments(cursor, columns)}))"
    if word == "BETWEEN":
        cursor.advance()
        low = _read(cursor, columns, _COMPARE + 1)
        cursor.expect("AND")
        high = _read(cursor, columns, _COMPARE + 1)
        return f"({left} {negated}between {low} and {high})"
    if word == "LIKE":
        cursor.advance()
        text = f"{left} {negated}like {_read(cursor, columns, _COMPARE + 1)}"
        if cursor.accept("ESCAPE"):
            text += f" escape {_operand(cursor, columns)}"
        return f"({text})"
    if word in ("REGEXP", "RLIKE"):
        cursor.advance()
        pattern = _read(cursor, columns, _COMPARE + 1)
        if cursor.context.at_least(80004, None):
            match = f"regexp_like({left},{pattern})"
            return f"(not({match}))" if negated else match
        return f"({left} {negated}regexp {pattern})"
    if word == "SOUNDS":
        cursor.expect("SOUNDS", "LIKE")
        return f"(soundex({left}) = soundex({_read(cursor, columns, _COMPARE + 1)}))"
    if word == "MEMBER":
        cursor.advance()
        cursor.accept("OF")
        cursor.expect("(")
        text = f"{left} member of ({_read(cursor, columns, 0)})"
        cursor.expect(")")
        return text
    cursor.seek(start)
    return ""


def _operand(cursor: Cursor, columns: list[str]) -> str:
    word = cursor.word
    text = ""
    if word == "(":
        text = _group(cursor, columns)
    elif word in (STRING, NATIONAL):
        text = quote_string(cursor.string())
    elif word == NUMBER or (word == "." and cursor.ahead() == NUMBER):
        text = number(cursor)
    elif word in (HEX, BIT):
        text = binary_literal(cursor)
    elif word in ("-", "+", "~", "!"):
        text = _unary(cursor, columns)
    elif word in ("NULL", "TRUE", "FALSE"):
        cursor.advance()
        text = word.lower()
    elif word == "CASE":
        text = _case(cursor, columns)
    elif word == "BINARY":
        cursor.advance()
        text = f"cast({_read(cursor, columns, _UNARY)} as char charset binary)"
    elif word.startswith("_") and cursor.ahead() in (STRING, HEX, BIT):
        text = _introduced(cursor)
    elif word in ("DATE", "TIME", "TIMESTAMP") and cursor.ahead() == STRING:
        cursor.advance()
        text = f"{word}{quote_string(cursor.string())}"
    elif word == "INTERVAL" and cursor.ahead() != "(":
        text = _interval(cursor, columns)
        cursor.expect("+")
        text = f"({_read(cursor, columns, 11)} + {text})"
    elif word == "@@":
        cursor.fail("a value that does not depend on the session")
    elif cursor.ahead() == "(" and (cursor.is_name() or word in _RESERVED_FUNCTIONS):
        text = _call(cursor, columns)
    elif word in _NILADIC:
        cursor.advance()
        text = f"{_NILADIC[word]}()"
    else:
        text = _column(cursor, columns)
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


def _group(cursor: Cursor, columns: list[str]) -> str:
    cursor.expect("(")
    text = _read(cursor, columns, 0)
    if cursor.word == ",":
        items = [text]
        while cursor.accept(","):
            items.append(_read(cursor, columns, 0))
        text = f"({','.join(items)})"
    cursor.expect(")")
    return text


def _unary(cursor: Cursor, columns: list[str]) -> str:
    sign = cursor.word
    cursor.advance()
    value = _read(cursor, columns, _UNARY)
    if sign == "+":
        return value
    if sign == "!":
        return f"(not({value}))"
    if sign == "-" and value[0].isdigit():
        return f"-{value}"
    return f"{sign}({value})"


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


def _introduced(cursor: Cursor) -> str:
    charset = charset_name(cursor.word[1:])
    cursor.advance()
    if cursor.word == STRING:
        value = quote_string(cursor.string())
        return value if charset in ("utf8mb3", "utf8mb4") else f"_{charset}{value}"
    return f"_{charset} {binary_literal(cursor)}"


def _interval(cursor: Cursor, columns: list[str]) -> str:
    cursor.expect("INTERVAL")
    value = _read(cursor, columns, 0)
    return f"interval {value} {_unit(cursor)}"


def _unit(cursor: Cursor) -> str:
    word = cursor.word.removeprefix("SQL_TSI_")
    if word not in _UNITS:
        cursor.fail("a time unit")
    cursor.advance()
    return word.lower()


def _case(cursor: Cursor, columns: list[str]) -> str:
    cursor.expect("CASE")
    text = "(case"
    if cursor.word != "WHEN":
        text += f" {_read(cursor, columns, 0)}"
    while cursor.accept("WHEN"):
        text += f" when {_read(cursor, columns, 0)}"
        cursor.expect("THEN")
        text += f" then {_read(cursor, columns, 0)}"
    if cursor.accept("ELSE"):
        text += f" else {_read(cursor, columns, 0)}"
    cursor.expect("END")
    return text + " end)"


def _column(cursor: Cursor, columns: list[str]) -> str:
    name = cursor.identifier("an expression")
    while cursor.accept("."):
        name = cursor.identifier("a column", reserved=True)
    columns.append(name)
    return quote_identifier(name)


def _arguments(cursor: Cursor, columns: list[str]) -> str:
    cursor.expect("(")
    items: list[str] = []
    if cursor.word != ")":
        items.append(_read(cursor, columns, 0))
        while cursor.accept(","):
            items.append(_read(cursor, columns, 0))
    cursor.expect(")")
    return ",".join(items)


def _call(cursor: Cursor, columns: list[str]) -> str:
    word = cursor.word
    if word == NAME:
        word = cursor.text()[1:-1].upper()
    cursor.advance()
    special = _SPECIAL.get(word)
    if special is not None:
        return special(cursor, columns, word)
    name = word.lower()
    name = _SYNONYMS.get(name, name)
    if word in _UNIT_FIRST:
        cursor.expect("(")
        unit = _unit(cursor)
        cursor.expect(",")
        items = [_read(cursor, columns, 0)]
        while cursor.accept(","):
            items.append(_read(cursor, columns, 0))
        cursor.expect(")")
        return f"{name}({unit},{','.join(items)})"
    return f"{name}({_arguments(cursor, columns)})"


def _cast(cursor: Cursor, columns: list[str], word: str) -> str:
    cursor.expect("(")
    value = _read(cursor, columns, 0)
    if word == "CONVERT" and cursor.accept("USING"):
        charset = charset_word(cursor)
        cursor.expect(")")
        return f"convert({value} using {charset})"
    if word == "CONVERT":
        cursor.expect(",")
    elif cursor.accept("AT"):
        cursor.expect("TIME", "ZONE")
        value += f" at time zone {quote_string(cursor.string())}"
        cursor.expect("AS")
    else:
        cursor.expect("AS")
    kind = _cast_type(cursor)
    cursor.expect(")")
    return f"cast({value} as {kind})"


_CAST_TYPES = words(
    """
    SIGNED UNSIGNED CHAR CHARACTER NCHAR BINARY DECIMAL DEC DATE TIME DATETIME JSON YEAR FLOAT
    DOUBLE REAL INTEGER INT POINT LINESTRING POLYGON MULTIPOINT MULTILINESTRING MULTIPOLYGON
    GEOMETRYCOLLECTION VARCHAR UUID INET4 INET6
    """
)
_CAST_SYNONYMS = {"character": "char", "dec": "decimal", "integer": "signed", "int": "signed"}


def _cast_type(cursor: Cursor) -> str:
    word = cursor.accept_any(_CAST_TYPES)
    if not word:
        cursor.fail("a type")
    text = _CAST_SYNONYMS.get(word.lower(), word.lower())
    if word in ("SIGNED", "UNSIGNED"):
        cursor.accept_any(("INTEGER", "INT"))
    elif word == "DOUBLE":
        cursor.accept("PRECISION")
    if cursor.accept("("):
        numbers = [str(cursor.integer())]
        if cursor.accept(","):
            numbers.append(str(cursor.integer()))
        cursor.expect(")")
        text += f"({','.join(numbers)})"
    if accept_charset(cursor):
        charset = charset_word(cursor)
        # MySQL prints the charset of the connection here, which nobody wrote.
        text += "" if charset == "utf8mb4" else f" charset {charset}"
    elif cursor.accept("ASCII"):
        text += " charset latin1"
    elif cursor.accept("UNICODE"):
        text += " charset ucs2"
    if cursor.accept("ARRAY"):
        text += " array"
    return text


def _extract(cursor: Cursor, columns: list[str], word: str) -> str:
    cursor.expect("(")
    unit = _unit(cursor)
    cursor.expect("FROM")
    value = _read(cursor, columns, 0)
    cursor.expect(")")
    return f"extract({unit} from {value})"


def _trim(cursor: Cursor, columns: list[str], word: str) -> str:
    cursor.expect("(")
    side = cursor.accept_any(("LEADING", "TRAILING", "BOTH")).lower()
    removed = "" if cursor.word == "FROM" else _read(cursor, columns, 0)
    if cursor.accept("FROM"):
        value = _read(cursor, columns, 0)
        head = " ".join(part for part in (side, removed) if part)
        text = f"trim({head} from {value})" if head else f"trim({value})"
    else:
        text = f"trim({removed})"
    cursor.expect(")")
    return text


def _substring(cursor: Cursor, columns: list[str], word: str) -> str:
    cursor.expect("(")
    items = [_read(cursor, columns, 0)]
    if cursor.accept("FROM"):
        items.append(_read(cursor, columns, 0))
        if cursor.accept("FOR"):
            items.append(_read(cursor, columns, 0))
    while cursor.accept(","):
        items.append(_read(cursor, columns, 0))
    cursor.expect(")")
    return f"substr({','.join(items)})"


def _position(cursor: Cursor, columns: list[str], word: str) -> str:
    cursor.expect("(")
    needle = _read(cursor, columns, _COMPARE + 1)
    cursor.expect("IN")
    value = _read(cursor, columns, 0)
    cursor.expect(")")
    return f"locate({needle},{value})"


def _char_function(cursor: Cursor, columns: list[str], word: str) -> str:
    cursor.expect("(")
    items = [_read(cursor, columns, 0)]
    while cursor.accept(","):
        items.append(_read(cursor, columns, 0))
    text = ",".join(items)
    if cursor.accept("USING"):
        text += f" using {charset_word(cursor)}"
    cursor.expect(")")
    return f"char({text})"


def _date_arithmetic(cursor: Cursor, columns: list[str], word: str) -> str:
    sign = "+" if word in ("DATE_ADD", "ADDDATE") else "-"
    cursor.expect("(")
    value = _read(cursor, columns, 0)
    cursor.expect(",")
    if (cursor.word == "INTERVAL" and cursor.ahead() != "(") or cursor.word == "INTERVAL":
        amount = _interval(cursor, columns)
    else:
        amount = f"interval {_read(cursor, columns, 0)} day"
    cursor.expect(")")
    return f"({value} {sign} {amount})"


def _json_value(cursor: Cursor, columns: list[str], word: str) -> str:
    cursor.expect("(")
    text = _read(cursor, columns, 0)
    cursor.expect(",")
    text += f", {quote_string(cursor.string('a JSON path'))}"
    if cursor.accept("RETURNING"):
        text += f" returning {_cast_type(cursor)}"
    while cursor.word in ("NULL", "ERROR", "DEFAULT"):
        answer = cursor.word.lower()
        cursor.advance()
        if answer == "default":
            answer += f" {_operand(cursor, columns)}"
        cursor.expect("ON")
        case = cursor.accept_any(("EMPTY", "ERROR"))
        if not case:
            cursor.fail("EMPTY or ERROR")
        text += f" {answer} on {case.lower()}"
    cursor.expect(")")
    return f"json_value({text})"


def _interval_function(cursor: Cursor, columns: list[str], word: str) -> str:
    return f"interval({_arguments(cursor, columns)})"


def _modulo(cursor: Cursor, columns: list[str], word: str) -> str:
    cursor.expect("(")
    left = _read(cursor, columns, 0)
    cursor.expect(",")
    right = _read(cursor, columns, 0)
    cursor.expect(")")
    return f"({left} % {right})"


_SPECIAL = {
    "CAST": _cast,
    "CONVERT": _cast,
    "EXTRACT": _extract,
    "TRIM": _trim,
    "SUBSTRING": _substring,
    "SUBSTR": _substring,
    "MID": _substring,
    "POSITION": _position,
    "CHAR": _char_function,
    "DATE_ADD": _date_arithmetic,
    "ADDDATE": _date_arithmetic,
    "DATE_SUB": _date_arithmetic,
    "SUBDATE": _date_arithmetic,
    "JSON_VALUE": _json_value,
    "INTERVAL": _interval_function,
    "MOD": _modulo,
}
