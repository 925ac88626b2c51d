"""Widening in the published order loses no value: checked on the values, not on a table of types.

For the wide order see ``test_wide_types``.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from shardmerge.schemas.lattice.type_join import published_join
from shardmerge.schemas.model.charsets import max_bytes
from shardmerge.schemas.model.types import ColumnType
from tests.strategies import ALL_TYPES, types

_BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
_TEXT_BYTES = {"tinytext": 2**8, "text": 2**16, "mediumtext": 2**24, "longtext": 2**32}
_BLOB_BYTES = {"tinyblob": 2**8, "blob": 2**16, "mediumblob": 2**24, "longblob": 2**32}
_LONG = 70_000


def values(kind: ColumnType) -> st.SearchStrategy[object]:
    """Values that a column of this type can hold, its extremes often among them."""
    name = kind.name
    if name in _BITS:
        bits = _BITS[name]
        low, high = (0, 2**bits - 1) if kind.unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        return st.sampled_from((low, high)) | st.integers(low, high)
    if name == "decimal":
        top = 10 ** (kind.length or 10) - 1
        low = 0 if kind.unsigned else -top
        digits = st.sampled_from((low, top)) | st.integers(low, top)
        return digits.map(lambda n: Decimal(f"{n}E-{kind.scale or 0}"))
    if name == "bit":
        return st.integers(0, 2 ** (kind.length or 1) - 1)
    if name in ("char", "varchar"):
        return _texts(kind, min(kind.length or 1, _LONG))
    if name in _TEXT_BYTES:
        return _texts(kind, min((_TEXT_BYTES[name] - 1) // max_bytes(kind.charset), _LONG))
    if name in ("binary", "varbinary"):
        length = kind.length or 1
        least = length if name == "binary" else 0
        return st.sampled_from((least, length)).map(bytes)
    if name in _BLOB_BYTES:
        return st.sampled_from((0, 1, min(_BLOB_BYTES[name] - 1, _LONG))).map(bytes)
    if name == "enum":
        return st.integers(1, len(kind.elements)).map(lambda n: (n, kind.elements[n - 1]))
    if name == "set":
        return st.sets(st.sampled_from(kind.elements)).map(frozenset)
    if name in ("time", "datetime", "timestamp"):
        unit = 10 ** (6 - kind.fsp)
        return st.integers(0, 10**9).map(lambda n: timedelta(microseconds=n * unit))
    if name in ("float", "double"):
        numbers = st.floats(allow_nan=False, allow_infinity=False)
        if name == "float":
            numbers = st.floats(width=32, allow_nan=False, allow_infinity=False)
        return numbers.map(lambda number: _rounded(number, kind))
    return st.just(name)


def _texts(kind: ColumnType, length: int) -> st.SearchStrategy[object]:
    widest = {1: "a", 2: "é", 3: "€", 4: "😀"}[max_bytes(kind.charset)]
    lengths = st.sampled_from((0, 1, length))
    return st.tuples(lengths, st.sampled_from(("a", widest))).map(lambda t: t[1] * t[0])


def _rounded(number: float, kind: ColumnType) -> Fraction:
    """The value as the column keeps it; with a display precision, only so many digits."""
    if kind.scale is None:
        return Fraction(number)
    bounded = number % 10 ** ((kind.length or 0) - kind.scale)
    return Fraction(f"{bounded:.{kind.scale}f}")


def holds(kind: ColumnType, value: object) -> bool:
    """Whether a column of this type gives the value back as it was."""
    name = kind.name
    match value:
        case bool():
            return False
        case int() if name in _BITS:
            bits = _BITS[name] - (not kind.unsigned)
            return bool((0 if kind.unsigned else -(2**bits)) <= value < 2**bits)
        case int():
            return name == "bit" and value < 2 ** (kind.length or 1)
        case Decimal():
            # Not in decimals: their context rounds to 28 digits.
            scaled = Fraction(value) * 10 ** (kind.scale or 0)
            fits = abs(scaled) < 10 ** (kind.length or 10) and scaled.denominator == 1
            return name == "decimal" and fits and not (kind.unsigned and value < 0)
        case Fraction():
            return name in ("float", "double")
        case str() if kind.is_string:
            size = sum(len(character.encode()) for character in value)
            in_charset = all(len(c.encode()) <= max_bytes(kind.charset) for c in value)
            if name in _TEXT_BYTES:
                return in_charset and size < _TEXT_BYTES[name]
            return in_charset and len(value) <= (kind.length or 1)
        case bytes():
            if name in _BLOB_BYTES:
                return len(value) < _BLOB_BYTES[name]
            exact = name == "binary" and len(value) == (kind.length or 1)
            return exact or (name == "varbinary" and len(value) <= (kind.length or 1))
        case (int() as place, str() as element):
            return name == "enum" and kind.elements[place - 1 : place] == (element,)
        case frozenset():
            return name == "set" and value <= frozenset(kind.elements)
        case timedelta():
            return kind.fsp in range(7) and not value.microseconds % 10 ** (6 - kind.fsp)
        case _:
            return name == value


JOINS = [
    (a, joined)
    for a in ALL_TYPES
    for b in ALL_TYPES
    if isinstance(joined := published_join(a, b), ColumnType)
]


@given(st.sampled_from(JOINS), st.data())
def test_a_value_of_either_type_survives_in_their_join(
    pair: tuple[ColumnType, ColumnType], data: st.DataObject
) -> None:
    kind, joined = pair
    value = data.draw(values(kind))
    assert holds(kind, value)
    assert holds(joined, value), (joined, value)


@given(types, types)
def test_the_join_keeps_the_kind_of_value(a: ColumnType, b: ColumnType) -> None:
    joined = published_join(a, b)
    if isinstance(joined, ColumnType):
        assert joined.unsigned == a.unsigned == b.unsigned
        assert joined.is_string == a.is_string == b.is_string
        assert joined.is_binary == a.is_binary == b.is_binary
        assert joined.is_integer == a.is_integer == b.is_integer
