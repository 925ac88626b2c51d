"""MySQL's types in Iceberg tables, as Spark SQL names them.

Each type holds every value of the MySQL type, or a note says which values it does not hold.

Source: Iceberg specification, "Primitive Types" and "Schema Evolution"; Spark SQL Reference,
"Data Types"; MySQL Reference Manual, "Data Types" (value ranges).
"""

from __future__ import annotations

import re

from shardmerge.schemas.model.types import SPATIAL_NAMES, ColumnType

_MAX_DIGITS = 38
"""Digits of Spark's and Iceberg's longest decimal."""
_INTEGERS = {
    ("tinyint", False): "int", ("tinyint", True): "int", ("smallint", False): "int",
    ("smallint", True): "int", ("mediumint", False): "int", ("mediumint", True): "int",
    ("int", False): "int", ("int", True): "bigint", ("bigint", False): "bigint",
    ("bigint", True): "decimal(20,0)",
}  # fmt: skip
"""(name, unsigned) → Spark's type. Iceberg has only integers of four and eight bytes."""
_PLAIN = {
    "float": "float", "double": "double", "year": "int", "date": "date", "time": "bigint",
    "datetime": "timestamp_ntz", "timestamp": "timestamp", "enum": "string", "set": "string",
    "json": "string", "uuid": "string", "inet4": "string", "inet6": "string", "vector": "binary",
}  # fmt: skip
_STORED = {
    "int": ColumnType("int"), "bigint": ColumnType("bigint"), "float": ColumnType("float"),
    "double": ColumnType("double"), "date": ColumnType("date"),
    "timestamp_ntz": ColumnType("datetime", fsp=6), "timestamp": ColumnType("timestamp", fsp=6),
    "string": ColumnType("longtext", charset="utf8mb4"), "binary": ColumnType("longblob"),
}  # fmt: skip
_ZERO_DATES = frozenset({"date", "datetime", "timestamp"})
_DECIMAL = re.compile(r"decimal\((\d+), ?(\d+)\)\Z")
_LAST_BIT_OF_LONG = 63
_INTEGER_DIGITS = {"int": 10, "bigint": 19}


def spark_type(kind: ColumnType) -> str:
    """The type that holds a MySQL type's values.

    * time is a bigint of microseconds: the range is -838:59:59 to 838:59:59, and the order is kept.
    * bit is an unsigned number.
    * timestamp is an instant; datetime has no time zone.
    """
    if kind.is_integer:
        return _INTEGERS[kind.name, kind.unsigned]
    if kind.is_string:
        return "string"
    if kind.is_binary or kind.name in SPATIAL_NAMES:
        return "binary"
    if kind.name == "bit":
        return "bigint" if (kind.length or 1) <= _LAST_BIT_OF_LONG else "decimal(20,0)"
    if kind.name == "decimal":
        digits, scale = kind.length or 10, kind.scale or 0
        return f"decimal({digits},{scale})" if digits <= _MAX_DIGITS else "string"
    return _PLAIN[kind.name]


def stored_type(kind: ColumnType) -> ColumnType:
    """The type of the target's column, as the most similar MySQL type.

    MySQL types with the same Spark type give the same result: a column of an Iceberg table does not
    show which type the shards have.
    """
    found = type_of(spark_type(kind))
    assert found is not None
    return found


def type_of(spark: str) -> ColumnType | None:
    """Spark's name of a type → the most similar MySQL type; None when no MySQL type becomes it."""
    if found := _DECIMAL.match(spark):
        return ColumnType("decimal", int(found[1]), int(found[2]))
    return _STORED.get(spark)


def has_zero_dates(kind: ColumnType) -> bool:
    """Whether values of the type may be dates with month or day 0, which Spark cannot hold."""
    return kind.name in _ZERO_DATES


def type_notes(kind: ColumnType) -> tuple[str, ...]:
    """Notes on how the target holds a type's values."""
    if has_zero_dates(kind):
        return ("a date with month or day 0 has no value there and becomes NULL",)
    if kind.name == "decimal" and (kind.length or 10) > _MAX_DIGITS:
        return (f"{kind.length} digits are more than a decimal's {_MAX_DIGITS}, it is text",)
    if kind.name == "time":
        return ("a time is a number of microseconds",)
    if kind.name in SPATIAL_NAMES:
        return ("a geometry is its bytes, as MySQL stores it",)
    return ()


def can_widen(before: str, after: str) -> bool:
    """Whether Iceberg changes one type to another in place, without rewriting rows.

    Args:
        before: Spark's or Iceberg's name of the old primitive type.
        after: The name of the new one.
    """
    if (before, after) in (("int", "bigint"), ("int", "long"), ("float", "double")):
        return True
    a, b = _DECIMAL.match(before), _DECIMAL.match(after)
    return bool(a and b and a[2] == b[2] and int(a[1]) < int(b[1]))


def kept_type(previous: ColumnType, wanted: ColumnType) -> ColumnType | None:
    """The type of a column that stays wider than its shards' type; None if it need not.

    Args:
        previous: The type that the target has.
        wanted: The type that the join asks for.

    Returns:
        ``previous`` if it holds every value of ``wanted`` and Iceberg cannot narrow it; a decimal
        with more digits than ``previous`` if that holds the values of both.
    """
    old, new = spark_type(previous), spark_type(wanted)
    if old == new or can_widen(old, new):
        return None
    if can_widen(new, old):
        return previous
    wide, narrow = _DECIMAL.match(old), _DECIMAL.match(new)
    if wide is None:
        return None
    digits, scale = int(wide[1]), int(wide[2])
    if narrow is None:
        needed = _INTEGER_DIGITS.get(new)
        return previous if needed is not None and needed <= digits - scale else None
    whole = int(narrow[1]) - int(narrow[2])
    if int(narrow[2]) > scale:
        return None
    if whole <= digits - scale:
        return previous
    return ColumnType("decimal", whole + scale, scale) if whole + scale <= _MAX_DIGITS else None
