"""The wide order, against a model of value sets: what each type holds, at its limits.

A value of the model is a number, a text of one character so many times, or so many bytes: long
texts need not be made. A type is less than another one when that one holds all of its values and
more.
"""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, permutations
from typing import TypeAlias

from hypothesis import example, given
from hypothesis import strategies as st

from shardmerge.schemas.lattice.charset_order import joined_charset, joined_collation
from shardmerge.schemas.lattice.type_join import PUBLISHED, WIDE, joined_type, value_type
from shardmerge.schemas.lattice.wide_types import least_type
from shardmerge.schemas.model.types import BLOB_NAMES, INTEGER_NAMES, TEXT_NAMES, ColumnType
from tests.strategies import ALL_TYPES, types

_BITS = dict(zip(INTEGER_NAMES, (8, 16, 24, 32, 64), strict=True))
_SIZES = dict(zip((*TEXT_NAMES, *BLOB_NAMES), (2**8, 2**16, 2**24, 2**32) * 2, strict=True))
_LONGEST = 2**30
"""Bytes of the longest value: the most that ``max_allowed_packet`` can be."""
_CHARACTERS: dict[str, dict[str, int]] = {
    "ascii": {"a": 1},
    "latin1": {"a": 1, "é": 1, "€": 1},
    "latin2": {"a": 1, "é": 1, "ł": 1},
    "gbk": {"a": 1, "字": 2},
    "ucs2": {"a": 2, "é": 2, "ł": 2, "€": 2, "字": 2},
    "utf8mb3": {"a": 1, "é": 2, "ł": 2, "€": 3, "字": 3},
    "utf16": {"a": 2, "é": 2, "ł": 2, "€": 2, "字": 2, "😀": 4},
    "utf8mb4": {"a": 1, "é": 2, "ł": 2, "€": 3, "字": 3, "😀": 4},
}
"""Per character set: characters that it has, and their bytes."""


@dataclass(frozen=True)
class Text:
    character: str
    count: int


@dataclass(frozen=True)
class Bytes:
    count: int


Value: TypeAlias = Fraction | Text | Bytes


def _length(kind: ColumnType) -> int:
    return kind.length or 0


def limits(kind: ColumnType) -> list[Value]:
    """Values of a type, its extremes among them."""
    name = kind.name
    if name in _BITS:
        bits = _BITS[name] - (not kind.unsigned)
        return [Fraction(0 if kind.unsigned else -(2**bits)), Fraction(2**bits - 1)]
    if name == "decimal":
        unit = Fraction(1, 10 ** (kind.scale or 0))
        top = (10 ** (kind.length or 10) - 1) * unit
        return [unit, top, *([] if kind.unsigned else [-top])]
    if name in ("float", "double"):
        form = "f" if name == "float" else "d"
        (least,) = struct.unpack(form, struct.pack(form, 0.1))
        top = 2**127 * (2 - Fraction(1, 2**23))
        found = [Fraction(least), top if name == "float" else Fraction(1.7976931348623157e308)]
        return [*found, *([] if kind.unsigned else [-n for n in found])]
    if kind.is_string:
        return [
            Text(character, min(most, _LONGEST // 4))
            for character, size in _CHARACTERS[kind.charset].items()
            for most in [(_SIZES[name] - 1) // size if name in _SIZES else _length(kind)]
        ]
    assert kind.is_binary, kind
    most = _SIZES[name] - 1 if name in _SIZES else _length(kind)
    return [Bytes(min(most, _LONGEST)), *([] if name == "binary" else [Bytes(0)])]


def holds(kind: ColumnType, value: Value) -> bool:
    """Whether a column of this type gives the value back as it was."""
    name = kind.name
    match value:
        case Fraction() if name in _BITS:
            bits = _BITS[name] - (not kind.unsigned)
            low = 0 if kind.unsigned else -(2**bits)
            return value.denominator == 1 and low <= value < 2**bits
        case Fraction() if name == "decimal":
            scaled = value * 10 ** (kind.scale or 0)
            fits = scaled.denominator == 1 and abs(scaled) < 10 ** (kind.length or 10)
            return fits and not (kind.unsigned and value < 0)
        case Fraction() if name in ("float", "double"):
            form = "f" if name == "float" else "d"
            try:
                (kept,) = struct.unpack(form, struct.pack(form, float(value)))
            except OverflowError:
                return False
            return Fraction(kept) == value and not (kind.unsigned and value < 0)
        case Text(character, count) if kind.is_string:
            size = _CHARACTERS[kind.charset].get(character)
            if size is None:
                return False
            return count * size < _SIZES[name] if name in _SIZES else count <= _length(kind)
        case Bytes(count) if kind.is_binary:
            if name == "binary":
                return count == _length(kind)
            return count < _SIZES[name] if name in _SIZES else count <= _length(kind)
        case _:
            return False


def holds_all(kind: ColumnType, others: list[ColumnType]) -> bool:
    return all(holds(kind, value) for other in others for value in limits(other))


def is_less(a: ColumnType, b: ColumnType) -> bool:
    return holds_all(b, [a]) and not holds_all(a, [b])


def _integers() -> list[ColumnType]:
    return [ColumnType(name, unsigned=sign) for name in INTEGER_NAMES for sign in (False, True)]


def _decimals() -> list[ColumnType]:
    pairs = [(1, 0), (2, 0), (3, 0), (5, 2), (10, 0), (12, 2), (20, 0), (30, 30), (38, 10), (65, 0)]
    return [ColumnType("decimal", p, s, unsigned=u) for p, s in pairs for u in (False, True)]


def _texts(charsets: tuple[str, ...]) -> list[ColumnType]:
    lengths = (1, 63, 64, 80, 85, 86, 100, 254, 255, 256, 300, 16_383, 16_384, 21_845, 21_846)
    found = []
    for charset in charsets:
        widest = max(_CHARACTERS[charset].values())
        found += [ColumnType(name, charset=charset) for name in TEXT_NAMES]
        found += [
            ColumnType("varchar", n, charset=charset) for n in lengths if n * widest <= 65_535
        ]
        found += [ColumnType("char", n, charset=charset) for n in (1, 63, 64, 255)]
    return found


def _byte_types() -> list[ColumnType]:
    found = [ColumnType(name) for name in BLOB_NAMES]
    found += [ColumnType("binary", n) for n in (1, 5, 255)]
    return found + [ColumnType("varbinary", n) for n in (1, 5, 255, 256, 300, 65_535)]


FAMILIES = (
    _integers(),
    _integers() + _decimals(),
    [ColumnType(name, unsigned=u) for name in ("float", "double") for u in (False, True)],
    *(_texts((charset,)) for charset in _CHARACTERS),
    _texts(tuple(_CHARACTERS)),
    _byte_types(),
)
several = st.sampled_from(FAMILIES).flatmap(
    lambda family: st.lists(st.sampled_from(family), min_size=1, max_size=4)
)


def candidates(kinds: list[ColumnType], joined: ColumnType) -> list[ColumnType]:
    """Types that might have done instead."""
    if joined.is_string:
        charsets = {kind.charset for kind in kinds}
        if len(charsets) > 1:
            # Unicode that is joined with something is joined in UTF-8.
            charsets = (charsets | {"utf8mb3", "utf8mb4"}) - {"ucs2", "utf16"}
        found = _texts(tuple(charset for charset in _CHARACTERS if charset in charsets))
        # A VARCHAR becomes no TEXT, not even one of fewer bytes, such as a TINYTEXT.
        return [t for t in found if joined.name in TEXT_NAMES or t.name not in TEXT_NAMES]
    if joined.is_binary:
        return _byte_types()
    if joined.name == "decimal":
        # Decimals become no integers, not even those of few digits.
        return _decimals() + [
            ColumnType("decimal", p, s) for p in range(1, 66) for s in (0, 2, 10) if s <= p
        ]
    return _integers() if joined.is_integer else FAMILIES[2]


@given(several)
def test_the_join_holds_every_value_of_every_type(kinds: list[ColumnType]) -> None:
    joined = least_type(kinds)
    if isinstance(joined, ColumnType):
        assert holds_all(joined, kinds), joined


@given(several)
@example([ColumnType("varchar", 80, charset="utf8mb3"), ColumnType("tinytext", charset="utf8mb4")])
@example([ColumnType("tinytext", charset="latin1"), ColumnType("text", charset="utf8mb4")])
@example([ColumnType("varchar", 255, charset="ascii"), ColumnType("varchar", 80, charset="ucs2")])
def test_no_less_type_would_do(kinds: list[ColumnType]) -> None:
    joined = least_type(kinds)
    if isinstance(joined, ColumnType):
        for other in candidates(kinds, joined):
            assert not (holds_all(other, kinds) and is_less(other, joined)), other


@given(several)
def test_where_there_is_a_conflict_no_type_of_the_family_would_do(kinds: list[ColumnType]) -> None:
    if isinstance(least_type(kinds), str):
        assert any(kind.name == "decimal" for kind in kinds)
        every = [ColumnType("decimal", p, s) for p in range(1, 66) for s in range(min(p, 30) + 1)]
        assert not any(holds_all(kind, kinds) for kind in every)


@given(several, st.randoms(use_true_random=False))
def test_the_join_depends_on_neither_order_nor_number(
    kinds: list[ColumnType], shuffler: random.Random
) -> None:
    joined = least_type(kinds)
    again = [*kinds, shuffler.choice(kinds)]
    shuffler.shuffle(again)
    assert least_type(again) == joined


@given(several)
def test_the_join_with_its_own_types_is_the_join(kinds: list[ColumnType]) -> None:
    joined = least_type(kinds)
    if isinstance(joined, ColumnType):
        again = least_type([joined, *kinds])
        assert isinstance(again, ColumnType)
        assert value_type(again) == value_type(joined)


@given(st.lists(types, min_size=3, max_size=3) | several)
def test_joining_joins_is_joining_all_but_where_a_join_holds_more_than_its_types(
    kinds: list[ColumnType],
) -> None:
    """The law of association. Its exceptions are why the types of shards are joined, not joins."""
    flat = least_type(kinds)
    for order in permutations(kinds):
        nested: ColumnType | str = order[0]
        for kind in order[1:]:
            nested = least_type([nested, kind]) if isinstance(nested, ColumnType) else nested
        if isinstance(flat, str) or isinstance(nested, str):
            assert isinstance(flat, str) == isinstance(nested, str) or _holds_more(kinds)
        elif _holds_more(kinds):
            assert nested.name not in _SIZES or flat.is_string or flat.is_binary
        else:
            assert value_type(nested) == value_type(flat), order


def _holds_more(kinds: list[ColumnType]) -> bool:
    """Signed and unsigned integers beside a decimal, or texts of several character sets."""
    integers = {kind.unsigned for kind in kinds if kind.is_integer}
    beside_decimals = len(integers) == 2 and any(kind.name == "decimal" for kind in kinds)
    texts = {kind.charset for kind in kinds if kind.charset}
    return beside_decimals or len(texts) > 1


def test_every_pair_joins_alike_either_way_round() -> None:
    for a, b in combinations(ALL_TYPES, 2):
        for rules in (WIDE, PUBLISHED):
            assert joined_type((a, b), rules) == joined_type((b, a), rules)


CHARSETS = (
    "ascii",
    "latin1",
    "latin2",
    "gbk",
    "swe7",
    "ucs2",
    "utf16",
    "utf8mb3",
    "utf8mb4",
    "sjis",
)
charsets = st.lists(st.sampled_from(CHARSETS), min_size=1, max_size=4)


@given(charsets, st.randoms(use_true_random=False))
def test_character_sets_join_in_any_order_and_grouping(
    found: list[str], shuffler: random.Random
) -> None:
    joined = joined_charset(found)
    nested: str | None = found[0]
    for charset in shuffler.sample(found, len(found)):
        nested = joined_charset([nested, charset]) if nested else None
    assert nested == joined
    assert joined in (*found, "utf8mb3", "utf8mb4") or ("sjis" in found and joined is None)


COLLATIONS = (
    "", "utf8mb4_bin", "utf8mb4_general_ci", "utf8mb4_unicode_ci", "utf8mb4_0900_ai_ci",
    "utf8mb4_0900_as_ci", "utf8mb4_0900_as_cs", "utf8mb4_0900_bin", "utf8mb4_nopad_bin",
    "utf8mb4_de_pb_0900_ai_ci", "utf8mb4_de_pb_0900_as_cs", "utf8mb4_ja_0900_as_cs",
    "utf8mb4_ja_0900_as_cs_ks", "utf8mb4_uca1400_ai_ci", "utf8mb4_uca1400_nopad_as_ci",
    "utf8mb4_uca1400_ai_cs", "utf8mb4_uca1400_swedish_as_cs", "utf8mb4_general_nopad_ci",
)  # fmt: skip
collations = st.lists(st.sampled_from(COLLATIONS), min_size=1, max_size=4)


DEFAULTS = ("utf8mb4_general_ci", "utf8mb4_0900_ai_ci", "utf8mb4_uca1400_ai_ci", "utf8mb4_bin")
"""What utf8mb4 has by default: on MySQL before 8.0.1 and MariaDB, on others, on TiDB."""


@given(collations, st.sets(st.sampled_from(DEFAULTS)), st.randoms(use_true_random=False))
def test_collations_join_in_any_order_and_grouping(
    found: list[str], defaults: set[str], shuffler: random.Random
) -> None:
    def join(names: list[str]) -> str:
        return joined_collation("utf8mb4", [("utf8mb4", name) for name in names], defaults)

    nested = found[0]
    for name in shuffler.sample(found, len(found)):
        nested = join([nested, name])
    assert nested == join(found)
    assert join([*found, nested]) == nested


@given(collations, st.sampled_from(DEFAULTS))
def test_a_known_default_joins_like_its_name(found: list[str], default: str) -> None:
    names = [("utf8mb4", name) for name in found]
    written = [("utf8mb4", name or default) for name in found]
    joined = joined_collation("utf8mb4", names, [default])
    assert (joined or default) == joined_collation("utf8mb4", written)
