"""Expressions of MySQL as Spark SQL.

sqlglot parses, and this module writes, node by node: what it does not know is refused, never
passed through, since a function of the same name may count bytes here and characters there.
Where MySQL gives NULL and Spark an error (division by zero) or the other way round (GREATEST
with a NULL), the text says what MySQL does. Strings compare by bytes in Spark, whatever the
collation is in MySQL: no expression can say otherwise.

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

_HINT = "the target keeps the shards' values as they come, it does not compute them"
_BINARY: dict[type[exp.Expression], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.EQ: "=", exp.NEQ: "<>", exp.GT: ">",
    exp.GTE: ">=", exp.LT: "<", exp.LTE: "<=", exp.NullSafeEQ: "<=>",
}  # fmt: skip
_DIVISIONS: dict[type[exp.Expression], str] = {exp.Div: "/", exp.IntDiv: "DIV", exp.Mod: "%"}
_PREDICATES = (
    exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.And, exp.Or, exp.Not,
    exp.Xor, exp.Is, exp.In, exp.Between, exp.Like, exp.Escape, exp.RegexpLike, exp.Boolean,
)  # fmt: skip
_CALLS: dict[type[exp.Expression], str] = {
    exp.Concat: "concat", exp.ConcatWs: "concat_ws", exp.Coalesce: "coalesce",
    exp.Nullif: "nullif", exp.Left: "left", exp.Right: "right", exp.Lower: "lower",
    exp.Upper: "upper", exp.Replace: "replace", exp.Reverse: "reverse", exp.Repeat: "repeat",
    exp.Hex: "hex", exp.Unhex: "unhex", exp.MD5: "md5", exp.SHA: "sha1", exp.SHA2: "sha2",
    exp.Abs: "abs", exp.Ceil: "ceiling", exp.Floor: "floor", exp.Round: "round", exp.Pow: "power",
    exp.Sqrt: "sqrt", exp.Ln: "ln", exp.Log: "log", exp.Sign: "sign", exp.Year: "year",
    exp.Month: "month", exp.DayOfMonth: "dayofmonth", exp.DayOfWeek: "dayofweek",
    exp.DayOfYear: "dayofyear", exp.Quarter: "quarter", exp.Hour: "hour", exp.Minute: "minute",
    exp.Second: "second", exp.LastDay: "last_day", exp.DateDiff: "datediff", exp.Ascii: "ascii",
    exp.SubstringIndex: "substring_index", exp.Uuid: "uuid", exp.Rand: "rand",
    exp.CurrentDate: "current_date",
}  # fmt: skip
_ARGUMENTS = ("this", "expression", "expressions", "replacement", "times", "length", "decimals",
              "delimiter", "count")  # fmt: skip
"""Arguments of ``_CALLS`` in the order of both languages."""
_FLAGS = frozenset({"safe", "coalesce", "date_part_boundary", "binary", "kind"})
"""Arguments that say nothing that Spark's function does not do."""
_BY_NAME = {"weekday": "weekday", "crc32": "crc32", "find_in_set": "find_in_set"}
_NOW = frozenset({"now", "current_timestamp", "localtime", "localtimestamp"})
_UNITS = frozenset({"SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "YEAR"})
_PARTS = _UNITS | {"QUARTER"}
_DATE_FORMATS = {
    "%Y": "yyyy", "%y": "yy", "%m": "MM", "%-m": "M", "%B": "MMMM", "%b": "MMM", "%d": "dd",
    "%-d": "d", "%H": "HH", "%-H": "H", "%I": "hh", "%-I": "h", "%M": "mm", "%S": "ss",
    "%f": "SSSSSS", "%j": "DDD", "%p": "a", "%a": "EEE", "%A": "EEEE", "%%": "%",
}  # fmt: skip
"""By the names of strftime, which sqlglot gives MySQL's."""
_NOT_MYSQL = re.compile(r"\bdate_format\(.*%[-AB]")
"""Letters that MySQL takes for themselves, and that would be read as strftime's."""
_CASTS = {"BIGINT": "bigint", "UBIGINT": "decimal(20,0)", "DATE": "date", "DOUBLE": "double",
          "FLOAT": "float", "DATETIME": "timestamp_ntz", "TIMESTAMP": "timestamp_ntz"}  # fmt: skip
_MAX_DIGITS = 38
_STRINGS_AND_INTEGERS = (
    exp.Substring, exp.SubstringIndex, exp.Left, exp.Right, exp.Trim, exp.Concat, exp.ConcatWs,
    exp.Replace, exp.Literal, exp.Floor, exp.Ceil, exp.IntDiv, exp.Length, exp.Year, exp.Month,
    exp.DayOfMonth, exp.Quarter, exp.Hour, exp.Minute, exp.Second, exp.DateDiff, exp.EQ, exp.GT,
    exp.LT, exp.GTE, exp.LTE, exp.NEQ, exp.And, exp.Or, exp.Not, exp.Is, exp.In,
)  # fmt: skip


def to_spark(text: str, *, as_value: bool = False) -> str | CannotRender:
    """A canonical MySQL expression in Spark SQL.

    Args:
        text: Canonical (``grammar.expressions``): columns stand in backticks.
        as_value: Whether the value is kept, so that a condition must become 1, 0 or NULL as in
            MySQL; conditions of CHECK stay what they are.

    Returns:
        The Spark text, or why Spark has none that gives the same value.
    """
    if _NOT_MYSQL.search(text):
        return CannotRender(f"a date format in ({text}) is none of MySQL's", _HINT)
    try:
        tree = _parsed(text)
        return _value(tree) if as_value else _write(tree)
    except _Untranslatable as error:
        return CannotRender(f"Spark SQL has nothing for {error} in ({text})", _HINT)
    except SqlglotError:
        return CannotRender(f"the expression ({text}) could not be read", _HINT)


class _Untranslatable(Exception):
    """A part of the tree that Spark has nothing for."""


def _parsed(text: str) -> exp.Expression:
    found: exp.Expression = sqlglot.parse_one(f"SELECT {text}", read="mysql").expressions[0]
    return found


def _write(node: exp.Expression) -> str:
    kind = type(node)
    if kind in _BINARY:
        return f"({_value(node.this)} {_BINARY[kind]} {_value(node.expression)})"
    if kind in _DIVISIONS:
        # MySQL divides by zero to NULL, Spark to an error.
        divisor = _value(node.expression)
        return f"({_value(node.this)} {_DIVISIONS[kind]} nullif({divisor}, 0))"
    if kind in _WRITERS:
        return _WRITERS[kind](node)
    if kind in _CALLS:
        return _call(node, _CALLS[kind])
    raise _Untranslatable(node.sql("mysql"))


def _call(node: exp.Expression, name: str) -> str:
    arguments: list[str] = []
    for key, value in node.args.items():
        if key in _FLAGS or value is None or value is False or value == []:
            continue
        if key not in _ARGUMENTS:
            raise _Untranslatable(node.sql("mysql"))
        arguments += map(_value, value if isinstance(value, list) else [value])
    return f"{name}({', '.join(arguments)})"


def _is_predicate(node: exp.Expression) -> bool:
    while isinstance(node, exp.Paren):
        node = node.this
    return isinstance(node, _PREDICATES)


def _value(node: exp.Expression) -> str:
    """A condition is 1, 0 or NULL to MySQL, and no number to Spark."""
    text = _write(node)
    return f"cast({text} as int)" if _is_predicate(node) else text


def _condition(node: exp.Expression) -> str:
    """What MySQL takes for true: a number that is not zero."""
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
        # MySQL has nothing at place 0, Spark the first character.
        raise _Untranslatable("a start of SUBSTR that is not a number above 0")
    parts = [node.this, start, node.args.get("length")]
    return f"substring({', '.join(_write(p) for p in parts if p is not None)})"


def _trim(node: exp.Expression) -> str:
    side = str(node.args.get("position") or "BOTH").upper()
    removed = node.expression
    if removed is not None and (not removed.is_string or len(removed.name) != 1):
        # Spark removes any of the characters, MySQL the whole string.
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
        # MySQL gives NULL as soon as one is, Spark passes over NULLs.
        parts = list(map(_write, (node.this, *node.expressions)))
        nulls = " OR ".join(f"{part} IS NULL" for part in parts)
        return f"if({nulls}, NULL, {name}({', '.join(parts)}))"

    return write


def _inner(node: exp.Expression) -> str:
    """A wrapper by which sqlglot says that a value counts as a date."""
    return _write(node.this)


def _interval(node: exp.Expression) -> str:
    unit = str(node.args["unit"].name).upper()
    if unit not in _UNITS:
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
            if match[1] not in _DATE_FORMATS:
                raise _Untranslatable(f"the date format {match[1]}")
            out += _DATE_FORMATS[match[1]]
        else:
            out += re.sub(r"[A-Za-z]+", r"'\g<0>'", match[2].replace("'", "''"))
    return f"date_format({_write(node.this)}, {_literal(exp.Literal.string(out))})"


def _timestamp_difference(node: exp.Expression) -> str:
    unit = str(node.args["unit"].name).upper()
    if unit not in _PARTS:
        raise _Untranslatable(f"TIMESTAMPDIFF in {unit}")
    return f"timestampdiff({unit}, {_write(node.expression)}, {_write(node.this)})"


def _extract(node: exp.Expression) -> str:
    part = node.this.name.upper()
    if part not in _PARTS - {"WEEK", "SECOND"}:
        raise _Untranslatable(f"EXTRACT of {part}")
    return f"extract({part} FROM {_write(node.expression)})"


def _cast(node: exp.Expression) -> str:
    to = node.args["to"]
    name = to.this.name
    parameters = [int(p.name) for p in to.expressions]
    value = _write(node.this)
    if name == "DECIMAL":
        digits, scale = [*(parameters or [10]), 0][:2]
        if digits > _MAX_DIGITS:
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
    if name not in _CASTS:
        raise _Untranslatable(f"CAST AS {to.sql('mysql')}")
    return f"cast({value} as {_CASTS[name]})"


def _bits(node: exp.Expression) -> str:
    """``flags & 4``: MySQL's bits are unsigned, so only what cannot be negative is the same."""
    parts = (node.this, node.expression)
    if not any(isinstance(part, exp.Literal) and not part.is_string for part in parts):
        raise _Untranslatable("& without a number")
    return f"({_value(node.this)} & {_value(node.expression)})"


def _cast_integer(node: exp.Expression, name: str) -> str:
    """MySQL rounds numbers and cuts strings, so it must be known which it is."""
    inner = node.this
    while isinstance(inner, exp.Paren):
        inner = inner.this
    is_json = isinstance(inner, exp.Anonymous) and str(inner.this).lower() == "json_unquote"
    if not is_json and not isinstance(inner, _STRINGS_AND_INTEGERS):
        raise _Untranslatable("CAST AS SIGNED of what may be a number with decimals")
    return f"cast({_write(node.this)} as {_CASTS[name]})"


def _anonymous(node: exp.Expression) -> str:
    name = str(node.this).lower()
    arguments = node.expressions
    if name in _NOW:
        return "current_timestamp()"
    if name == "json_unquote" and len(arguments) == 1:
        inner = arguments[0]
        if isinstance(inner, exp.JSONExtract) and not inner.expressions:
            path = inner.expression.sql("mysql")
            return f"get_json_object({_write(inner.this)}, {path})"
    if name in _BY_NAME:
        return f"{_BY_NAME[name]}({', '.join(map(_write, arguments))})"
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
