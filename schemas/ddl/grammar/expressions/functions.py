"""Functions in expressions, both those with a special syntax and all others.

Source: MySQL Reference Manual, "Functions and Operators"; sql_yacc.yy, ``function_call_keyword``.
"""

from __future__ import annotations

from shardmerge.schemas.ddl.grammar.tokens.charset_words import charset_word
from shardmerge.schemas.ddl.grammar.tokens.lexer import NAME, STRING, Cursor
from shardmerge.schemas.ddl.grammar.tokens.words import words

from .casts import cast, cast_type
from .function_forms import NILADIC, stored_call, stored_name
from .literal_text import quote_string
from .notes import Notes, Read, truth
from .sequences import sequence_function

ABOVE_COMPARISON = 7
CONCATENATION = 13
"""The level of ``||`` where it joins strings."""
UNARY = 14
_UNITS = words(
    """
    MICROSECOND SECOND MINUTE HOUR DAY WEEK MONTH QUARTER YEAR SECOND_MICROSECOND
    MINUTE_MICROSECOND MINUTE_SECOND HOUR_MICROSECOND HOUR_SECOND HOUR_MINUTE DAY_MICROSECOND
    DAY_SECOND DAY_MINUTE DAY_HOUR YEAR_MONTH
    """
)
_TYPE_FUNCTIONS = {"DATE": "date", "TIME": "time", "TIMESTAMP": "datetime"}
# Reserved words that are also functions.
RESERVED_FUNCTIONS = words(
    """
    IF LEFT RIGHT REPLACE REPEAT INSERT MOD CHAR CONVERT INTERVAL DATABASE SCHEMA VALUES DEFAULT
    ROW
    """
) | frozenset(NILADIC)


def interval(cursor: Cursor, notes: Notes, read: Read) -> str:
    """Read ``INTERVAL value unit``."""
    cursor.expect("INTERVAL")
    value = read(cursor, notes, 0)
    return f"interval {value} {_unit(cursor)}"


def _unit(cursor: Cursor) -> str:
    word = cursor.word.removeprefix("SQL_TSI_")
    if word not in _UNITS:
        cursor.fail("a time unit")
    cursor.advance()
    return word.lower()


def arguments(cursor: Cursor, notes: Notes, read: Read) -> list[str]:
    """Read a list of expressions in parentheses."""
    cursor.expect("(")
    items: list[str] = []
    if cursor.word != ")":
        items.append(read(cursor, notes, 0))
        while cursor.accept(","):
            items.append(read(cursor, notes, 0))
    cursor.expect(")")
    return items


def call(cursor: Cursor, notes: Notes, read: Read) -> str:
    """Read a function call from its name on."""
    word = cursor.word
    if word == NAME:
        word = cursor.text()[1:-1].upper()
    cursor.advance()
    special = _SPECIAL.get(word)
    if special is not None:
        return special(cursor, notes, word, read)
    name = stored_name(word.lower(), cursor.context)
    text = stored_call(name, arguments(cursor, notes, read), cursor.context)
    if name == "to_days":
        notes.days[text] = text[len("to_days(") : -1]
    return notes.condition(text) if name == "regexp_like" else text


def _timestamp_add(cursor: Cursor, notes: Notes, word: str, read: Read) -> str:
    unit, amount, value = _unit_and_pair(cursor, notes, read)
    return f"({value} + interval {amount} {unit})"


def _timestamp_difference(cursor: Cursor, notes: Notes, word: str, read: Read) -> str:
    return f"timestampdiff({','.join(_unit_and_pair(cursor, notes, read))})"


def _unit_and_pair(cursor: Cursor, notes: Notes, read: Read) -> tuple[str, str, str]:
    cursor.expect("(")
    unit = _unit(cursor)
    cursor.expect(",")
    first = read(cursor, notes, 0)
    cursor.expect(",")
    second = read(cursor, notes, 0)
    cursor.expect(")")
    return unit, first, second


def _row(cursor: Cursor, notes: Notes, word: str, read: Read) -> str:
    return notes.row(arguments(cursor, notes, read))


def _extract(cursor: Cursor, notes: Notes, word: str, read: Read) -> str:
    cursor.expect("(")
    unit = _unit(cursor)
    cursor.expect("FROM")
    value = read(cursor, notes, 0)
    cursor.expect(")")
    return f"extract({unit} from {value})"


def _trim(cursor: Cursor, notes: Notes, word: str, read: Read) -> str:
    cursor.expect("(")
    side = cursor.accept_any(("LEADING", "TRAILING", "BOTH")).lower()
    removed = "" if cursor.word == "FROM" else read(cursor, notes, 0)
    if cursor.accept("FROM"):
        value = read(cursor, notes, 0)
        if removed:
            text = f"trim({side or 'both'} {removed} from {value})"
        else:
            text = f"{_BLANKS[side or 'both']}({value})"
    else:
        text = f"trim({removed})"
    cursor.expect(")")
    return text


_BLANKS = {"both": "trim", "leading": "ltrim", "trailing": "rtrim"}


def _substring(cursor: Cursor, notes: Notes, word: str, read: Read) -> str:
    cursor.expect("(")
    items = [read(cursor, notes, 0)]
    if cursor.accept("FROM"):
        items.append(read(cursor, notes, 0))
        if cursor.accept("FOR"):
            items.append(read(cursor, notes, 0))
    while cursor.accept(","):
        items.append(read(cursor, notes, 0))
    cursor.expect(")")
    return f"substr({','.join(items)})"


def _position(cursor: Cursor, notes: Notes, word: str, read: Read) -> str:
    cursor.expect("(")
    needle = read(cursor, notes, ABOVE_COMPARISON)
    cursor.expect("IN")
    value = read(cursor, notes, 0)
    cursor.expect(")")
    return f"locate({needle},{value})"


def _char_function(cursor: Cursor, notes: Notes, word: str, read: Read) -> str:
    cursor.expect("(")
    items = [read(cursor, notes, 0)]
    while cursor.accept(","):
        items.append(read(cursor, notes, 0))
    text = ",".join(items)
    if cursor.accept("USING"):
        charset = charset_word(cursor)
        if cursor.context.is_mariadb:
            # MySQL stores the expression without it (measured on 5.7, 8.0 and 9.7).
            text += f" using {charset}"
    cursor.expect(")")
    return f"char({text})"


def _date_arithmetic(cursor: Cursor, notes: Notes, word: str, read: Read) -> str:
    sign = "+" if word in ("DATE_ADD", "ADDDATE") else "-"
    cursor.expect("(")
    value = read(cursor, notes, 0)
    cursor.expect(",")
    if (cursor.word == "INTERVAL" and cursor.ahead() != "(") or cursor.word == "INTERVAL":
        amount = interval(cursor, notes, read)
    else:
        amount = f"interval {read(cursor, notes, 0)} day"
    cursor.expect(")")
    return f"({value} {sign} {amount})"


_JSON_TEXT = "char(512)"


def _json_value(cursor: Cursor, notes: Notes, word: str, read: Read) -> str:
    cursor.expect("(")
    text = read(cursor, notes, 0)
    cursor.expect(",")
    if cursor.word.startswith("_") and cursor.ahead() == STRING:
        cursor.advance()  # SHOW CREATE TABLE prints an introducer that the statement lacks.
    text += f", {quote_string(cursor.string('a JSON path'))}"
    if cursor.accept("RETURNING"):
        kind = cast_type(cursor)
        # MariaDB has no such clause; MySQL stores this one for a text without it.
        if (kind, cursor.context.is_mariadb) != (_JSON_TEXT, True):
            text += f" returning {'char(1073741823)' if kind == 'char' else kind}"
    elif not cursor.context.is_mariadb:
        text += f" returning {_JSON_TEXT}"
    while cursor.word in ("NULL", "ERROR", "DEFAULT"):
        answer = cursor.word.lower()
        cursor.advance()
        if answer == "default":
            answer += f" {read(cursor, notes, UNARY)}"
        cursor.expect("ON")
        case = cursor.accept_any(("EMPTY", "ERROR"))
        if not case:
            cursor.fail("EMPTY or ERROR")
        text += f" {answer} on {case.lower()}"
    cursor.expect(")")
    return f"json_value({text})"


def _weight_string(cursor: Cursor, notes: Notes, word: str, read: Read) -> str:
    cursor.expect("(")
    text = read(cursor, notes, 0)
    length: int | None = None
    if cursor.accept("AS"):
        kind = cursor.accept_any(("CHAR", "BINARY"))
        if not kind:
            cursor.fail("CHAR or BINARY")
        cursor.expect("(")
        length = cursor.integer("a length")
        cursor.expect(")")
        if kind == "BINARY":
            text = f"cast({text} as char({length}) charset binary)"
            length = length if cursor.context.is_mariadb else None
    elif cursor.accept(","):
        length = _stored_length(cursor)
    if cursor.accept("LEVEL") and cursor.integer("a level") != 1:
        cursor.fail("level 1, the only one of all collations but a few")
    cursor.expect(")")
    return f"weight_string({text}{'' if length is None else f' as char({length})'})"


def _stored_length(cursor: Cursor) -> int | None:
    """Read ``0,3,65``, MariaDB's way to store ``AS CHAR(3)``; ``0,0,1`` is no length."""
    cursor.integer("a length of the result")
    cursor.expect(",")
    length = cursor.integer("a number of characters")
    cursor.expect(",")
    cursor.integer("flags")
    return length or None


def _if(cursor: Cursor, notes: Notes, word: str, read: Read) -> str:
    cursor.expect("(")
    text = truth(read(cursor, notes, 0), notes)
    while cursor.accept(","):
        text += f",{read(cursor, notes, 0)}"
    cursor.expect(")")
    return f"if({text})"


def _interval_function(cursor: Cursor, notes: Notes, word: str, read: Read) -> str:
    return f"interval({','.join(arguments(cursor, notes, read))})"


def _is_null(cursor: Cursor, notes: Notes, word: str, read: Read) -> str:
    return notes.either(f"({','.join(arguments(cursor, notes, read))} is ", "", "null)")


def _as_type(cursor: Cursor, notes: Notes, word: str, read: Read) -> str:
    """Read DATE, TIME or TIMESTAMP.

    Outside of tables TIME and TIMESTAMP keep the argument's fraction of a second. In a table they
    are stored as a CAST without digits, and lose it (measured on all servers).
    """
    items = arguments(cursor, notes, read)
    if len(items) > 1:
        return f"{word.lower()}({','.join(items)})"
    return f"cast({','.join(items)} as {_TYPE_FUNCTIONS[word]})"


def _date_difference(cursor: Cursor, notes: Notes, word: str, read: Read) -> str:
    left, right = _pair(cursor, notes, read)
    return f"datediff({left},{right})"


def _pair(cursor: Cursor, notes: Notes, read: Read) -> tuple[str, str]:
    cursor.expect("(")
    left = read(cursor, notes, 0)
    cursor.expect(",")
    right = read(cursor, notes, 0)
    cursor.expect(")")
    return left, right


def _instr(cursor: Cursor, notes: Notes, word: str, read: Read) -> str:
    """INSTR is LOCATE with swapped arguments; MariaDB and MySQL 5.7 print it as LOCATE."""
    value, needle = _pair(cursor, notes, read)
    return f"locate({needle},{value})"


def _modulo(cursor: Cursor, notes: Notes, word: str, read: Read) -> str:
    left, right = _pair(cursor, notes, read)
    return f"({left} % {right})"


def _get_format(cursor: Cursor, notes: Notes, word: str, read: Read) -> str:
    cursor.expect("(")
    kind = cursor.accept_any(("DATE", "TIME", "DATETIME", "TIMESTAMP")).lower()
    if not kind:
        cursor.fail("DATE, TIME or DATETIME")
    cursor.expect(",")
    kind = "datetime" if kind == "timestamp" else kind
    text = f"get_format({kind},{read(cursor, notes, 0)})"
    cursor.expect(")")
    return text


def _dynamic_columns(cursor: Cursor, notes: Notes, word: str, read: Read) -> str:
    """Read MariaDB's COLUMN_CREATE, COLUMN_ADD and COLUMN_GET, whose values may have a type."""
    cursor.expect("(")
    text = ""
    while True:
        text += read(cursor, notes, 0)
        if cursor.context.is_mariadb and cursor.accept("AS"):
            kind = cast_type(cursor)
            text += f" as {kind if word == 'COLUMN_GET' else _DYNAMIC_TYPES.get(kind, kind)}"
        if not cursor.accept(","):
            break
        text += ","
    cursor.expect(")")
    return f"{word.lower()}({text})"


_DYNAMIC_TYPES = {"signed": "int", "unsigned": "unsigned int"}
"""Types whose names in COLUMN_CREATE and COLUMN_ADD differ from those in a CAST."""
_SPECIAL = {
    "CAST": cast,
    "CONVERT": cast,
    "EXTRACT": _extract,
    "TIMESTAMPADD": _timestamp_add,
    "TIMESTAMPDIFF": _timestamp_difference,
    "ROW": _row,
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
    "IF": _if,
    "MOD": _modulo,
    "DATEDIFF": _date_difference,
    "INSTR": _instr,
    "ISNULL": _is_null,
    "DATE": _as_type,
    "TIME": _as_type,
    "TIMESTAMP": _as_type,
    "GET_FORMAT": _get_format,
    "WEIGHT_STRING": _weight_string,
    **dict.fromkeys(("NEXTVAL", "LASTVAL", "SETVAL"), sequence_function),
    **dict.fromkeys(("COLUMN_CREATE", "COLUMN_ADD", "COLUMN_GET"), _dynamic_columns),
}
