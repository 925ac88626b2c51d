"""Conditions on rows (``where`` of a route), evaluated on row images as Debezium writes them. Pure.

A condition is SQL and compares columns with literals or with each other. It has SQL's three-valued
logic: a row is merged when the condition is true, not when it is NULL. Numbers are compared as
numbers, dates and times as such (a TIMESTAMP in UTC), text byte by byte: case and accents count.

As in MySQL, numbers are compared exactly, or as doubles if a column is FLOAT or DOUBLE: a DOUBLE
0.1 equals the literal 0.1, a FLOAT 0.1 does not. For the YEAR 0000 Debezium writes 1900, which is
not a valid YEAR, so it is read as 0. But Debezium's snapshots write 2000 for it, which cannot be
distinguished from the year 2000.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from struct import Struct
from typing import Any, TypeAlias

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from shardmerge.schemas.model.errors import ConfigError, UnsupportedDDL
from shardmerge.schemas.model.types import ColumnType

Values: TypeAlias = Sequence[Any]
"""The values of a row image, in column order."""
Truth: TypeAlias = bool | None
Condition: TypeAlias = Callable[[Values], Truth]
_Operand: TypeAlias = Callable[[Values], Any]

_COMPARISONS: dict[type[exp.Expr], Callable[[Any, Any], bool]] = {
    exp.EQ: operator.eq, exp.NEQ: operator.ne, exp.GT: operator.gt, exp.GTE: operator.ge,
    exp.LT: operator.lt, exp.LTE: operator.le,
}  # fmt: skip
_KNOWN = (
    *_COMPARISONS, exp.NullSafeEQ, exp.And, exp.Or, exp.Not, exp.Paren, exp.In, exp.Between,
    exp.Is, exp.Null, exp.Like, exp.Column, exp.Identifier, exp.Literal, exp.Neg, exp.Boolean,
)  # fmt: skip
_PARTS = frozenset(("this", "expression", "expressions", "low", "high", "is_string", "quoted"))
_NUMBERS = frozenset(("decimal", "year"))
_DOUBLES = frozenset(("float", "double"))
_SINGLE = Struct("<f")
_MOMENTS = frozenset(("date", "datetime", "timestamp"))
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(?: \d\d:\d\d:\d\d(?:\.\d{1,6})?)?")


@dataclass(frozen=True, slots=True)
class ConditionColumn:
    """A column that a condition may name.

    Attributes:
        place: The column's index in the row image, from 0.
        kind: Its type on the shard.
        text_of: Converts a value of a date, datetime or timestamp column to text.
    """

    place: int
    kind: ColumnType
    text_of: Callable[[Any], str | None]


def check_condition(text: str, where: str) -> None:
    """Raise ``ConfigError`` unless the text is a condition that can be evaluated."""
    try:
        tree = _parsed(text)
    except SqlglotError as error:
        headline = str(error).partition("\n")[0]
        raise ConfigError(f"{where}: where is no condition: {headline}", code="SM-5307") from None
    for node in tree.walk():
        known = {*_PARTS, "negate"} if isinstance(node, exp.Like) else _PARTS
        said = {part for part, value in node.args.items() if value}
        if not isinstance(node, _KNOWN) or not said <= known:
            raise ConfigError(
                f"{where}: where has {node.sql('mysql')!r}, which is not supported",
                hint="compare columns with literals or with columns of the same kind (=, <>, <, >, "
                "<=>, IN, BETWEEN, LIKE, IS NULL), joined by AND, OR, NOT",
                code="SM-5307",
            )
    if not column_names(text):
        raise ConfigError(f"{where}: where names no column", code="SM-5307")


def column_names(text: str) -> tuple[str, ...]:
    """The columns that a condition names, in lower case, sorted."""
    return tuple(sorted({c.name.lower() for c in _parsed(text).find_all(exp.Column)}))


def condition_on(text: str, columns: Mapping[str, ConditionColumn]) -> Condition:
    """The condition as a function of the values of a row with these columns.

    Args:
        text: The condition; ``check_condition`` has accepted it.
        columns: Column name in lower case → column, for each column that the condition names.

    Raises:
        UnsupportedDDL: It compares values that cannot be compared.
    """
    return _Compiler(columns).condition(_parsed(text))


@lru_cache(maxsize=64)
def _parsed(text: str) -> exp.Expr:
    return sqlglot.parse_one(text, dialect="mysql")


class _Compiler:
    """Turns the tree of an expression into a function of a row's values."""

    def __init__(self, columns: Mapping[str, ConditionColumn]) -> None:
        self._columns = columns

    def condition(self, node: exp.Expr) -> Condition:
        """A condition of any known form."""
        if isinstance(node, exp.Paren):
            return self.condition(node.this)
        if isinstance(node, exp.And | exp.Or):
            parts = (self.condition(node.left), self.condition(node.right))
            return _all(*parts) if isinstance(node, exp.And) else _any(*parts)
        if isinstance(node, exp.Not):
            return _not(self.condition(node.this))
        if isinstance(node, exp.Boolean):
            truth = bool(node.this)
            return lambda _: truth
        if isinstance(node, exp.Is):
            return self._is(node)
        if isinstance(node, exp.NullSafeEQ):
            left, right = self._pair(node.left, node.right)
            return lambda values: left(values) == right(values)
        if type(node) in _COMPARISONS:
            compare = _COMPARISONS[type(node)]
            return self._comparison(compare, node.this, node.args["expression"])
        if isinstance(node, exp.Between):
            low = self._comparison(operator.ge, node.this, node.args["low"])
            return _all(low, self._comparison(operator.le, node.this, node.args["high"]))
        if isinstance(node, exp.In):
            found = [self._comparison(operator.eq, node.this, e) for e in node.expressions]
            if found:
                return _any(*found)
        if isinstance(node, exp.Like) and isinstance(node.expression, exp.Literal):
            return self._like(node)
        raise UnsupportedDDL(f"where: {node.sql('mysql')!r} is no condition", code="SM-5307")

    def _is(self, node: exp.Is) -> Condition:
        if not isinstance(node.expression, exp.Null):
            raise UnsupportedDDL(
                f"where: {node.sql('mysql')!r}: only IS NULL and IS NOT NULL", code="SM-5307"
            )
        place = self._column(node.this).place
        return lambda values: values[place] is None

    def _like(self, node: exp.Like) -> Condition:
        column = self._column(node.this)
        if _family(column.kind) != "text":
            raise UnsupportedDDL(f"where: {node.sql('mysql')!r}: LIKE is for text", code="SM-5307")
        matches = re.compile(_like_pattern(node.expression.this), re.DOTALL).fullmatch
        place, wanted = column.place, not node.args.get("negate")

        def like(values: Values) -> Truth:
            value = values[place]
            return None if value is None else (matches(value) is not None) is wanted

        return like

    def _comparison(
        self, compare: Callable[[Any, Any], bool], left: exp.Expr, right: exp.Expr
    ) -> Condition:
        one, other = self._pair(left, right)

        def compared(values: Values) -> Truth:
            a, b = one(values), other(values)
            return None if a is None or b is None else compare(a, b)

        return compared

    def _pair(self, left: exp.Expr, right: exp.Expr) -> tuple[_Operand, _Operand]:
        """Both sides of a comparison, as functions that give values of the same family."""
        families = {
            _family(self._column(node).kind)
            for node in (left, right)
            if isinstance(node, exp.Column)
        }
        if families == {"number", "double"}:
            families = {"double"}
        if len(families) != 1:
            raise UnsupportedDDL(
                f"where: {left.sql('mysql')} and {right.sql('mysql')} cannot be compared",
                hint="compare a column with a literal or a column of its own kind",
                code="SM-5307",
            )
        (family,) = families
        return self._operand(left, family), self._operand(right, family)

    def _operand(self, node: exp.Expr, family: str) -> _Operand:
        if isinstance(node, exp.Null):
            return lambda _: None
        if not isinstance(node, exp.Column):
            literal = _literal(node, family)
            return lambda _: literal
        column = self._column(node)
        place, text_of = column.place, column.text_of
        if column.kind.name == "year":
            read = _year
        else:
            read = _single if column.kind.name == "float" else _number
        if family == "number":
            return lambda values: read(values[place])
        if family == "double":
            return lambda values: _double(read(values[place]))
        if family == "moment":
            return lambda values: _moment(text_of(values[place]))
        return lambda values: values[place]

    def _column(self, node: exp.Expr) -> ConditionColumn:
        if not isinstance(node, exp.Column):
            raise UnsupportedDDL(f"where: {node.sql('mysql')!r} is no column", code="SM-5307")
        return self._columns[node.name.lower()]


def _family(kind: ColumnType) -> str:
    if kind.is_integer or kind.name in _NUMBERS:
        return "number"
    if kind.name in _DOUBLES:
        return "double"
    if kind.name in _MOMENTS:
        return "moment"
    if kind.is_string or kind.name in ("enum", "set"):
        return "text"
    raise UnsupportedDDL(f"where: values of type {kind.name} cannot be compared", code="SM-5307")


def _literal(node: exp.Expr, family: str) -> Any:
    text, negative = node, isinstance(node, exp.Neg)
    if negative:
        text = node.this
    if isinstance(text, exp.Literal):
        if family in ("number", "double") and not text.is_string:
            number = -Decimal(text.this) if negative else Decimal(text.this)
            return number if family == "number" else float(number)
        if family == "text" and text.is_string and not negative:
            return text.this
        if family == "moment" and text.is_string and _MOMENT.fullmatch(text.this):
            return _moment(text.this)
    form = {"moment": "'YYYY-MM-DD' or 'YYYY-MM-DD HH:MM:SS'"}
    form |= dict.fromkeys(("number", "double"), "a number")
    raise UnsupportedDDL(
        f"where: {node.sql('mysql')} stands where {form.get(family, 'a text')} must", code="SM-5307"
    )


def _number(value: Any) -> Any:
    if isinstance(value, str):
        try:
            return Decimal(value)
        except InvalidOperation:
            return None
    return value


def _double(value: Any) -> float | None:
    return None if value is None else float(value)


def _single(value: Any) -> float | None:
    """The value with which the server compares a FLOAT; JSON has the shortest text for it."""
    if value is None:
        return None
    (widened,) = _SINGLE.unpack(_SINGLE.pack(value))
    return float(widened)


def _year(value: Any) -> Any:
    return 0 if value == 1900 else value


def _moment(text: str | None) -> str | None:
    """A date or time in a form whose text order is the order in time."""
    if text is None:
        return None
    if len(text) == len("YYYY-MM-DD"):
        return f"{text} 00:00:00"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _like_pattern(pattern: str) -> str:
    found, escaped = [], False
    for sign in pattern:
        if escaped or sign not in "\\%_":
            found.append(re.escape(sign))
            escaped = False
        elif sign == "\\":
            escaped = True
        else:
            found.append(".*" if sign == "%" else ".")
    return "".join(found)


def _all(one: Condition, other: Condition) -> Condition:
    def both(values: Values) -> Truth:
        first = one(values)
        if first is False:
            return False
        second = other(values)
        return False if second is False else None if first is None or second is None else True

    return both


def _any(*conditions: Condition) -> Condition:
    def one(values: Values) -> Truth:
        found: Truth = False
        for condition in conditions:
            truth = condition(values)
            if truth:
                return True
            found = None if truth is None else found
        return found

    return one


def _not(condition: Condition) -> Condition:
    def opposite(values: Values) -> Truth:
        truth = condition(values)
        return None if truth is None else not truth

    return opposite
