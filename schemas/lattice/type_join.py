"""The type that the target needs for the types of its shards, or the reason why there is none.

A route's policy chooses one of two orders. In the published order two types have a join only if
they are of one family and have the same sign and character set. In the wide order (``wide_types``)
the join is the least type that holds every value of all types. Neither result depends on the order
of the types.

The published join of two types is associative, conflicts included: every rule takes the larger of
two values that are totally ordered, or says that there is no join.

Source: docs/explanation/joined-schema.md; MySQL Reference Manual, "Data Types" (value ranges).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from shardmerge.schemas.model.charsets import max_bytes
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.mysql_facts import (
    MAX_PRECISION,
    MAX_SCALE,
    MAX_VARCHAR_BYTES,
    SIZES_BYTES,
)
from shardmerge.schemas.model.policies import TypePolicy
from shardmerge.schemas.model.types import BLOB_NAMES, INTEGER_NAMES, TEXT_NAMES, ColumnType

from .wide_types import least_type

_WIDER_CHARSETS = {frozenset({"utf8mb3", "utf8mb4"}): "utf8mb4"}
_WITH_FSP = ("time", "datetime", "timestamp")


@dataclass(frozen=True, slots=True)
class TypeRules:
    """How types of one column are joined.

    Attributes:
        policy: Which of the two orders is used.
        defaults: The default collations of utf8mb4 on the servers that the types may be from; empty
            when they are not known. Only ``wide`` looks at them.
    """

    policy: TypePolicy
    defaults: frozenset[str] = frozenset()


WIDE = TypeRules(TypePolicy.WIDE)
PUBLISHED = TypeRules(TypePolicy.PUBLISHED)


def joined_type(kinds: Iterable[ColumnType], rules: TypeRules) -> ColumnType | str:
    """The join of some types, or a sentence that says why they have none.

    Args:
        kinds: At least one type.
        rules: How they are joined.
    """
    found = sorted(set(kinds), key=repr)
    if rules.policy is TypePolicy.WIDE:
        return least_type(found, rules.defaults)
    joined = found[0]
    for kind in found[1:]:
        wider = published_join(joined, kind)
        if isinstance(wider, str):
            return wider
        joined = wider
    return joined


def published_join(a: ColumnType, b: ColumnType) -> ColumnType | str:
    """The join of two types in the published order, or a sentence that says why they have none.

    Display properties (zerofill, ``tinyint(1)``) are not part of the value: the result has them
    when both types do.
    """
    if a == b:
        return a
    if a.unsigned != b.unsigned:
        return "one is unsigned, the other is not"
    zerofill = a.zerofill and b.zerofill
    if a.is_integer and b.is_integer:
        name = max(a.name, b.name, key=INTEGER_NAMES.index)
        length = a.length if a.length == b.length and a.name == b.name else None
        return ColumnType(name, length, unsigned=a.unsigned, zerofill=zerofill)
    if a.is_string and b.is_string:
        return _join_strings(a, b)
    if a.is_binary and b.is_binary:
        return _join_binaries(a, b)
    if a.name != b.name:
        return "they are of different families"
    if a.name == "decimal":
        return _join_decimals(a, b)
    if a.name in ("float", "double"):
        # Any display precision rounds, so only the type without one holds the values of both.
        same = (a.length, a.scale) == (b.length, b.scale)
        kept = a if same else replace(a, length=None, scale=None)
        return replace(kept, zerofill=zerofill)
    if a.name == "bit":
        return replace(a, length=max(a.length or 1, b.length or 1))
    if a.name in _WITH_FSP:
        return replace(a, fsp=max(a.fsp, b.fsp))
    if a.elements and b.elements:
        return _join_elements(a, b)
    return "they are of different families"


def value_type(kind: ColumnType) -> ColumnType:
    """The type without its display properties, which are not part of the lattice value."""
    length = None if kind.is_integer else kind.length
    return replace(kind, length=length, zerofill=False)


def reads_alike(one: ColumnType, wide: ColumnType) -> bool:
    """Whether every expression has the same value of a value of one type and of a wider one.

    A longer text or integer reads alike. A text in another character set has other bytes, in
    another collation it is equal to other texts; a decimal with more digits after the point, or a
    moment with more, is another text and gives another quotient.

    Args:
        one: A type of a shard.
        wide: A join with it.
    """
    if one.zerofill or wide.zerofill:
        return one == wide
    if value_type(one) == value_type(wide):
        return True
    if one.is_integer and wide.is_integer:
        return one.unsigned == wide.unsigned
    if one.name == wide.name == "decimal":
        return (one.scale or 0, one.unsigned) == (wide.scale or 0, wide.unsigned)
    if (one.is_string and wide.is_string) or (one.elements and wide.elements):
        return _same_texts(one, wide)
    return one.is_binary and wide.is_binary


def _same_texts(one: ColumnType, wide: ColumnType) -> bool:
    if one.charset == wide.charset:
        return one.collation == wide.collation
    if (one.charset, wide.charset) != ("utf8mb3", "utf8mb4"):
        return False
    return bool(one.collation) and _suffix(one) == _suffix(wide)


def is_exact_number(kind: ColumnType) -> bool:
    """Whether values are integers or decimals, which are compared as numbers in every type."""
    return (kind.is_integer or kind.name == "decimal") and not kind.zerofill


def _join_decimals(a: ColumnType, b: ColumnType) -> ColumnType | str:
    scale = max(a.scale or 0, b.scale or 0)
    whole = max((t.length or 10) - (t.scale or 0) for t in (a, b))
    if whole + scale > MAX_PRECISION or scale > MAX_SCALE:
        return f"decimal({whole + scale},{scale}) is beyond MySQL's decimal(65,30)"
    zerofill = a.zerofill and b.zerofill
    return replace(a, length=whole + scale, scale=scale, zerofill=zerofill)


def _join_strings(a: ColumnType, b: ColumnType) -> ColumnType | str:
    charset = _join_charsets(a, b)
    if not isinstance(charset, tuple):
        return charset
    length = max(a.length or 0, b.length or 0)
    if a.name in TEXT_NAMES or b.name in TEXT_NAMES:
        name = _common_size(a, b, TEXT_NAMES)
        if name is None or ((a.name in TEXT_NAMES) != (b.name in TEXT_NAMES) and not _is_narrow(a)):
            return "text and varchar hold different sets of values in a multi-byte character set"
        wide = ColumnType(name)
    elif a.name == b.name == "char":
        wide = ColumnType("char", length)
    elif length * max_bytes(charset[0]) > MAX_VARCHAR_BYTES:
        return f"varchar({length}) in {charset[0]} is longer than MySQL allows"
    else:
        wide = ColumnType("varchar", length)
    return replace(wide, charset=charset[0], collation=charset[1])


def _is_narrow(kind: ColumnType) -> bool:
    return max_bytes(kind.charset) == 1


def _join_binaries(a: ColumnType, b: ColumnType) -> ColumnType:
    if a.name in BLOB_NAMES or b.name in BLOB_NAMES:
        name = _common_size(a, b, BLOB_NAMES)
        assert name is not None
        return ColumnType(name)
    # A wider binary(n) would append zero bytes to the value, so only varbinary holds both.
    return ColumnType("varbinary", max(a.length or 0, b.length or 0))


def _common_size(a: ColumnType, b: ColumnType, names: tuple[str, ...]) -> str | None:
    """The smallest type of ``names`` that holds both; lengths count as bytes."""
    sizes = [
        names.index(t.name)
        if t.name in names
        else next((i for i, size in enumerate(SIZES_BYTES) if (t.length or 0) <= size), None)
        for t in (a, b)
    ]
    return names[max(i for i in sizes if i is not None)] if None not in sizes else None


def _join_elements(a: ColumnType, b: ColumnType) -> ColumnType | str:
    charset = _join_charsets(a, b)
    if not isinstance(charset, tuple):
        return charset
    short, long = sorted((a.elements, b.elements), key=len)
    if long[: len(short)] != short:
        return "neither list of values is the beginning of the other"
    return replace(a, elements=long, charset=charset[0], collation=charset[1])


def _join_charsets(a: ColumnType, b: ColumnType) -> tuple[str, str] | str:
    """Charset and collation that hold both, or why there are none."""
    if a.charset == b.charset:
        if a.collation != b.collation:
            return "their collations differ"
        return a.charset, a.collation
    charset = _WIDER_CHARSETS.get(frozenset({a.charset, b.charset}))
    if charset is None:
        return "their character sets differ"
    narrow, wide = (a, b) if a.charset != charset else (b, a)
    suffix = wide.collation.removeprefix(charset)
    # utf8mb3's default is taken as general_ci; utf8mb4's default depends on the server.
    allowed = {"", "_general_ci"} if not narrow.collation else {_suffix(narrow)}
    return (charset, wide.collation) if suffix in allowed else "their collations differ"


def _suffix(kind: ColumnType) -> str:
    return kind.collation.removeprefix(kind.charset)
