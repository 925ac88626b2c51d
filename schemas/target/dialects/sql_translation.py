"""Translates MySQL expressions to Spark SQL.

sqlglot parses the text, and this module writes it node by node. A node that it does not know is
refused, never copied: a function with the same name may count bytes in one and characters in the
other. Where MySQL and Spark differ (division by zero is NULL in MySQL and an error in Spark;
GREATEST with a NULL is NULL in MySQL and skips the NULL in Spark), the result does what MySQL does.
Spark compares strings by bytes whatever their collation is in MySQL; no expression changes that.

Source: Spark SQL Reference, "Functions"; MySQL Reference Manual, "Functions and Operators".
"""

from __future__ import annotations

import re
from collections.abc import Callable

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from shardmerge.schemas.model.names import quote_identifier

from .dialect import CannotRender
from .spark_functions import (
    ARGUMENTS,
    BINARY,
    BY_NAME,
    CALLS,
    CASTS,
    DATE_FORMATS,
    DIVISIONS,
    FLAGS,
    MAX_DIGITS,
    NOT_MYSQL,
    NOW,
    PARTS,
    PREDICATES,
    STRINGS_AND_INTEGERS,
    UNITS,
)

_HINT = "the target keeps the shards' values as they come, it does not compute them"


def to_spark(text: str, *, as_value: bool = False) -> str | CannotRender:
    """A canonical MySQL expression in Spark SQL.

    Args:
        text: Canonical (``grammar.expressions``): columns are in backticks.
        as_value: Whether the value is stored, so that a condition must become 1, 0 or NULL as in
            MySQL. Without it a condition stays a condition, as in a CHECK.

    Returns:
        The Spark text, or why no Spark text gives the same value.
    """
    if NOT_MYSQL.search(text):
        return CannotRender(f"a date format in ({text}) is none of MySQL's", _HINT, code="SM-1226")
    try:
        tree = _parsed(text)
        return _value(tree) if as_value else _write(tree)
    except _Untranslatable as error:
        return CannotRender(f"Spark SQL has nothing for {error} in ({text})", _HINT, code="SM-1226")
    except SqlglotError:
        return CannotRender(f"the expression ({text}) could not be read", _HINT, code="SM-1226")


class _Untranslatable(Exception):
    """Raised for a part of the tree that cannot be translated."""


def _parsed(text: str) -> exp.Expression:
    found: exp.Expression = sqlglot.parse_one(f"SELECT {text}", read="mysql").expressions[0]
    return found


def _write(node: exp.Expression) -> str:
    kind = type(node)
    if kind in BINARY:
        return f"({_value(node.this)} {BINARY[kind]} {_value(node.expression)})"
    if kind in DIVISIONS:
        # Division by zero gives NULL in MySQL and an error in Spark.
        divisor = _value(node.expression)
        return f"({_value(node.this)} {DIVISIONS[kind]} nullif({divisor}, 0))"
    if kind in _WRITERS:
        return _WRITERS[kind](node)
    if kind in CALLS:
        return _call(node, CALLS[kind])
    raise _Untranslatable(node.sql("mysql"))


def _call(node: exp.Expression, name: str) -> str:
    arguments: list[str] = []
    for key, value in node.args.items():
        if key in FLAGS or value is None or value is False or value == []:
            continue
        if key not in ARGUMENTS:
            raise _Untranslatable(node.sql("mysql"))
        arguments += map(_value, value if isinstance(value, list) else [value])
    return f"{name}({', '.join(arguments)})"


def _is_predicate(node: exp.Expression) -> bool:
    while isinstance(node, exp.Paren):
        node = node.this
    return isinstance(node, PREDICATES)


def _value(node: exp.Expression) -> str:
    """The node as a value. A condition is 1, 0 or NULL in MySQL, but not a number in Spark."""
    text = _write(node)
    return f"cast({text} as int)" if _is_predicate(node) else text


def _condition(node: exp.Expression) -> str:
    """The node as a condition. In MySQL a number that is not zero is true."""
    text = _write(node)
    return text if _is_predicate(node) else f"({text} <> 0)"


def _literal(node: exp.Expression) -> str:
    if not node.is_string:
        return str(node.this)
    text = str(node.this).replace("\\", "\\\\").replace("'", "\\'")
    return "'" + text.replace("\n", "\\n").replace("\r", "\\r").replace("\0", "\\0") + "'"


def _column(node: exp.Expression) -> str:
    return quote_identifier(node.name)


def _paren(node: exp.Expression) -> str:
    text = _write(node.this)
    return text if text.startswith("(") else f"({text})"


def _negative(node: exp.Expression) -> str:
    return f"-{_write(node.this)}"


def _chain(word: str) -> Callable[[exp.Expression], str]:
    def write(node: exp.Expression) -> str:
        return f"({_condition(node.this)} {word} {_condition(node.expression)})"

    return write


def _not(node: exp.Expression) -> str:
    return f"(NOT {_condition(node.this)})"


def _is(node: exp.Expression) -> str:
    left = _write(node.this) if isinstance(node.expression, exp.Null) else _condition(node.this)
    return f"({left} IS {_write(node.expression)})"


def _in(node: exp.Expression) -> str:
    if not node.expressions:
        raise _Untranslatable(node.sql("mysql"))
    return f"({_write(node.this)} IN ({', '.join(map(_write, node.expressions))}))"


def _between(node: exp.Expression) -> str:
    low, high = _write(node.args["low"]), _write(node.args["high"])
    return f"({_write(node.this)} BETWEEN {low} AND {high})"


def _like(node: exp.Expression) -> str:
    word = "NOT LIKE" if node.args.get("negate") else "LIKE"
    return f"({_write(node.this)} {word} {_write(node.expression)})"


def _escape(node: exp.Expression) -> str:
    return f"({_write(node.this)[1:-1]} ESCAPE {_write(node.expression)})"


def _regexp(node: exp.Expression) -> str:
    if node.args.get("flag"):
        raise _Untranslatable("the match type of regexp_like")
    return f"({_write(node.this)} RLIKE {_write(node.expression)})"


def _if(node: exp.Expression) -> str:
    return f"if({_condition(node.this)}, {_write(node.args['true'])}, {_write(node.args['false'])})"


def _case(node: exp.Expression) -> str:
    text = f"CASE {_write(node.this)}" if node.this else "CASE"
    for branch in node.args["ifs"]:
        head = _write(branch.this) if node.this else _condition(branch.this)
        text += f" WHEN {head} THEN {_write(branch.args['true'])}"
    if node.args.get("default") is not None:
        text += f" ELSE {_write(node.args['default'])}"
    return text + " END"


def _length(node: exp.Expression) -> str:
    name = "octet_length" if node.args.get("binary") else "char_length"
    return f"{name}({_write(node.this)})"


def _substring(node: exp.Expression) -> str:
    start = node.args["start"]
    if not isinstance(start, exp.Literal) or start.this == "0":
        # At position 0 MySQL gives an empty string, Spark begins at the first character.
        raise _Untranslatable("a start of SUBSTR that is not a number above 0")
    parts = [node.this, start, node.args.get("length")]
    return f"substring({', '.join(_write(p) for p in parts if p is not None)})"


def _trim(node: exp.Expression) -> str:
    side = str(node.args.get("position") or "BOTH").upper()
    removed = node.expression
    if removed is not None and (not removed.is_string or len(removed.name) != 1):
        # Spark removes each of the characters, MySQL only the whole string.
        raise _Untranslatable("TRIM of more than one character")
    return f"trim({side} {_write(removed) if removed else chr(39) + ' ' + chr(39)} FROM " + (
        f"{_write(node.this)})"
    )


def _pad(node: exp.Expression) -> str:
    name = "lpad" if node.args.get("is_left") else "rpad"
    parts = (node.this, node.expression, node.args["fill_pattern"])
    return f"{name}({', '.join(map(_write, parts))})"


def _position(node: exp.Expression) -> str:
    parts = [node.args["substr"], node.this, node.args.get("position")]
    return f"locate({', '.join(_write(p) for p in parts if p is not None)})"


def _extreme(name: str) -> Callable[[exp.Expression], str]:
    def write(node: exp.Expression) -> str:
        # MySQL gives NULL if any argument is NULL, Spark skips NULLs.
        parts = list(map(_write, (node.this, *node.expressions)))
        nulls = " OR ".join(f"{part} IS NULL" for part in parts)
        return f"if({nulls}, NULL, {name}({', '.join(parts)}))"

    return write


def _inner(node: exp.Expression) -> str:
    """The node without sqlglot's wrapper, which says that the value counts as a date."""
    return _write(node.this)


def _interval(node: exp.Expression) -> str:
    unit = str(node.args["unit"].name).upper()
    if unit not in UNITS:
        raise _Untranslatable(f"an interval of {unit}")
    if not isinstance(node.this, exp.Literal) or not re.fullmatch(r"\d+", str(node.this.this)):
        raise _Untranslatable("an interval that is not a whole number")
    return f"INTERVAL '{node.this.this}' {unit}"


def _date_format(node: exp.Expression) -> str:
    layout = node.args["format"]
    if not layout.is_string:
        raise _Untranslatable("a date format that is not a literal")
    out = ""
    for match in re.finditer(r"(%-?.)|([^%]+)", layout.name, re.DOTALL):
        if match[1] is not None:
            if match[1] not in DATE_FORMATS:
                raise _Untranslatable(f"the date format {match[1]}")
            out += DATE_FORMATS[match[1]]
        else:
            out += re.sub(r"[A-Za-z]+", r"'\g<0>'", match[2].replace("'", "''"))
    return f"date_format({_write(node.this)}, {_literal(exp.Literal.string(out))})"


def _timestamp_difference(node: exp.Expression) -> str:
    unit = str(node.args["unit"].name).upper()
    if unit not in PARTS:
        raise _Untranslatable(f"TIMESTAMPDIFF in {unit}")
    return f"timestampdiff({unit}, {_write(node.expression)}, {_write(node.this)})"


def _extract(node: exp.Expression) -> str:
    part = node.this.name.upper()
    if part not in PARTS - {"WEEK", "SECOND"}:
        raise _Untranslatable(f"EXTRACT of {part}")
    return f"extract({part} FROM {_write(node.expression)})"


def _cast(node: exp.Expression) -> str:
    to = node.args["to"]
    name = to.this.name
    parameters = [int(p.name) for p in to.expressions]
    value = _write(node.this)
    if name == "DECIMAL":
        digits, scale = [*(parameters or [10]), 0][:2]
        if digits > MAX_DIGITS:
            raise _Untranslatable(f"decimal({digits},{scale})")
        return f"cast({value} as decimal({digits},{scale}))"
    if name == "CHAR":
        text = f"cast({value} as string)"
        return f"left({text}, {parameters[0]})" if parameters else text
    if name == "CHARACTER_SET" and to.args["kind"].name.lower() == "utf8mb4":
        return f"cast({value} as string)"
    if name in ("DATETIME", "TIMESTAMP") and parameters and parameters[0] < 6:
        raise _Untranslatable(f"datetime({parameters[0]})")
    if name in ("BIGINT", "UBIGINT"):
        return _cast_integer(node, name)
    if name not in CASTS:
        raise _Untranslatable(f"CAST AS {to.sql('mysql')}")
    return f"cast({value} as {CASTS[name]})"


_BITS_OF_LONG = 63
"""Bits of a bigint, without that of its sign."""


def _bits(node: exp.Expression) -> str:
    """``flags & 4``. MySQL's result is unsigned and Spark's is signed.

    They agree when the result cannot be negative, so one side must be a literal number below 2^63.
    """
    parts = (node.this, node.expression)
    numbers = [part for part in parts if isinstance(part, exp.Literal) and not part.is_string]
    if not numbers:
        raise _Untranslatable("& without a number")
    if any(not (part.is_int and int(part.this) < 1 << _BITS_OF_LONG) for part in numbers):
        raise _Untranslatable("& with a number from 2^63 on, or with decimals")
    return f"({_value(node.this)} & {_value(node.expression)})"


def _cast_integer(node: exp.Expression, name: str) -> str:
    """CAST to an integer. MySQL rounds numbers but truncates strings, so the kind must be known."""
    inner = node.this
    while isinstance(inner, exp.Paren):
        inner = inner.this
    is_json = isinstance(inner, exp.Anonymous) and str(inner.this).lower() == "json_unquote"
    if not is_json and not isinstance(inner, STRINGS_AND_INTEGERS):
        raise _Untranslatable("CAST AS SIGNED of what may be a number with decimals")
    return f"cast({_write(node.this)} as {CASTS[name]})"


def _anonymous(node: exp.Expression) -> str:
    name = str(node.this).lower()
    arguments = node.expressions
    if name in NOW:
        return "current_timestamp()"
    if name == "json_unquote" and len(arguments) == 1:
        inner = arguments[0]
        if isinstance(inner, exp.JSONExtract) and not inner.expressions:
            path = inner.expression.sql("mysql")
            return f"get_json_object({_write(inner.this)}, {path})"
    if name in BY_NAME:
        return f"{BY_NAME[name]}({', '.join(map(_write, arguments))})"
    raise _Untranslatable(f"{name}()")


_WRITERS: dict[type[exp.Expression], Callable[[exp.Expression], str]] = {
    exp.Literal: _literal, exp.Column: _column, exp.Paren: _paren, exp.Neg: _negative,
    exp.Null: lambda _: "NULL", exp.Boolean: lambda node: str(node.this).upper(),
    exp.And: _chain("AND"), exp.Or: _chain("OR"), exp.Xor: _chain("<>"), exp.Not: _not,
    exp.Is: _is, exp.In: _in, exp.Between: _between, exp.Like: _like, exp.Escape: _escape,
    exp.RegexpLike: _regexp, exp.If: _if, exp.Case: _case, exp.Length: _length,
    exp.Substring: _substring, exp.Trim: _trim, exp.Pad: _pad, exp.StrPosition: _position,
    exp.Greatest: _extreme("greatest"), exp.Least: _extreme("least"), exp.Interval: _interval,
    exp.TsOrDsToDate: _inner, exp.TsOrDsToTimestamp: _inner, exp.TimeToStr: _date_format,
    exp.TimestampDiff: _timestamp_difference, exp.Extract: _extract, exp.Cast: _cast,
    exp.Anonymous: _anonymous, exp.BitwiseAnd: _bits,
}  # fmt: skip
