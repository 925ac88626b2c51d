"""A route's ``where`` as a condition that the source evaluates, so that fewer rows are read. Pure.

The sink itself evaluates the condition on every row that was read, as on every row of the stream
(``schemas.pipeline.row_conditions``). The filter only has to keep each row for which the condition
is true. It has those parts of the condition, joined by AND, that SQL evaluates as the sink does. A
part for which that is not known is left out; then more rows are read.

SQL evaluates a part as the sink does when

* numbers are compared with numbers, as decimals or as doubles;
* texts are compared byte by byte in UTF-8, as the sink does, whatever the column's collation;
* dates and times are compared with a literal. A test whether they are NULL is left out, because a
  zero date can be NULL for one of the two and not for the other.
"""

from __future__ import annotations

from collections.abc import Mapping

import sqlglot
from sqlglot import exp

from shardmerge.schemas.model.names import quote_identifier
from shardmerge.schemas.model.types import ColumnType

_SIGNS: dict[type[exp.Expr], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<=",
}  # fmt: skip
_CHARSETS = frozenset(("utf8mb4", "utf8mb3", "ascii", "latin1"))
"""Texts in these have the same characters for the server and for Debezium."""
_MOMENTS = frozenset(("date", "datetime", "timestamp"))
_DOUBLES = frozenset(("float", "double"))


class _NoSql(Exception):
    """It is not known whether SQL evaluates a part of the condition as the sink does."""


def row_filter(where: str, columns: Mapping[str, ColumnType]) -> str:
    """The filter of a condition; "" when it keeps all rows.

    Args:
        where: The route's condition; "" for none. ``check_condition`` has accepted it.
        columns: Column name in lower case → type, of the shard.
    """
    if not where:
        return ""
    found = []
    for part in _conjuncts(sqlglot.parse_one(where, dialect="mysql")):
        try:
            found.append(_condition(part, columns))
        except _NoSql:
            continue
    return " AND ".join(found)


def whole_filter(where: str, columns: Mapping[str, ColumnType]) -> str | None:
    """A filter that keeps exactly the rows for which a condition is true; None without one.

    Args:
        where: See ``row_filter``.
        columns: See ``row_filter``.
    """
    if not where:
        return ""
    try:
        return _condition(sqlglot.parse_one(where, dialect="mysql"), columns)
    except _NoSql:
        return None


def _conjuncts(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Paren):
        return _conjuncts(node.this)
    if isinstance(node, exp.And):
        return [*_conjuncts(node.left), *_conjuncts(node.right)]
    return [node]


def _condition(node: exp.Expr, columns: Mapping[str, ColumnType]) -> str:
    if isinstance(node, exp.Paren):
        return _condition(node.this, columns)
    if isinstance(node, exp.And | exp.Or):
        word = "AND" if isinstance(node, exp.And) else "OR"
        return f"({_condition(node.left, columns)} {word} {_condition(node.right, columns)})"
    if isinstance(node, exp.Not):
        return f"NOT ({_condition(node.this, columns)})"
    if isinstance(node, exp.Is):
        name, kind = _column(node.this, columns)
        if kind.name in _MOMENTS or not isinstance(node.expression, exp.Null):
            raise _NoSql
        return f"{quote_identifier(name)} IS NULL"
    if type(node) in _SIGNS:
        left, right = _pair(node.this, node.args["expression"], columns)
        return f"{left} {_SIGNS[type(node)]} {right}"
    if isinstance(node, exp.Between):
        value, low = _pair(node.this, node.args["low"], columns)
        _, high = _pair(node.this, node.args["high"], columns)
        return f"({value} >= {low} AND {value} <= {high})"
    if isinstance(node, exp.In) and node.expressions:
        pairs = [_pair(node.this, item, columns) for item in node.expressions]
        return f"{pairs[0][0]} IN ({', '.join(item for _, item in pairs)})"
    raise _NoSql


def _pair(left: exp.Expr, right: exp.Expr, columns: Mapping[str, ColumnType]) -> tuple[str, str]:
    """Both sides of a comparison: a column and a literal, in this order or the other."""
    if isinstance(left, exp.Column):
        name, kind = _column(left, columns)
        return _operand(name, kind), _literal(right, kind)
    name, kind = _column(right, columns)
    return _literal(left, kind), _operand(name, kind)


def _column(node: exp.Expr, columns: Mapping[str, ColumnType]) -> tuple[str, ColumnType]:
    if not isinstance(node, exp.Column) or node.name.lower() not in columns:
        raise _NoSql
    return node.name, columns[node.name.lower()]


def _is_text(kind: ColumnType) -> bool:
    return (kind.is_string or kind.name in ("enum", "set")) and kind.charset in _CHARSETS


def _operand(name: str, kind: ColumnType) -> str:
    quoted = quote_identifier(name)
    if kind.is_integer or kind.name == "decimal" or kind.name in _DOUBLES | _MOMENTS:
        return quoted
    if kind.name == "year":
        return f"({quoted} + 0)"
    if _is_text(kind):
        return f"CAST(CONVERT({quoted} USING utf8mb4) AS BINARY)"
    raise _NoSql


def _literal(node: exp.Expr, kind: ColumnType) -> str:
    sign = ""
    if isinstance(node, exp.Neg):
        sign, node = "-", node.this
    if not isinstance(node, exp.Literal):
        raise _NoSql
    text: str = node.this
    if _is_text(kind) and node.is_string and not sign:
        return f"X'{text.encode().hex().upper()}'"
    if kind.name in _MOMENTS and node.is_string and not sign and not text.startswith("0000"):
        return f"TIMESTAMP'{text if len(text) > 10 else text + ' 00:00:00'}'"
    is_number = kind.is_integer or kind.name in ("decimal", "year") or kind.name in _DOUBLES
    if not is_number or node.is_string:
        raise _NoSql
    if kind.name in _DOUBLES:
        return f"{sign}{text}" if "e" in text.lower() else f"{sign}{text}e0"
    if "e" in text.lower():
        # MySQL would compare as doubles; the sink compares exactly.
        raise _NoSql
    return sign + text
