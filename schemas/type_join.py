"""The least type that holds every value of two types, or the reason why there is none.

``join_types`` is idempotent, commutative and associative, conflicts included: every rule takes
the larger of something that is totally ordered, or says that the two have nothing in common.

Source: ARCHITECTURE.md, section 3; MySQL Reference Manual, "Data Types" (value ranges).
"""

from __future__ import annotations

from dataclasses import replace

from .charsets import max_bytes
from .types import BLOB_NAMES, INTEGER_NAMES, TEXT_NAMES, ColumnType

_MAX_PRECISION, _MAX_SCALE = 65, 30
_MAX_VARCHAR_BYTES = 65_535
_WIDER_CHARSETS = {frozenset({"utf8mb3", "utf8mb4"}): "utf8mb4"}
_WITH_FSP = ("time", "datetime", "timestamp")
_SIZES_BYTES = (255, 65_535, 16_777_215, 4_294_967_295)
"""Largest value of tinytext or tinyblob, text or blob, and so on."""


def join_types(a: ColumnType, b: ColumnType) -> ColumnType | str:
    """The supremum of two types; a sentence why there is none.

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
        return "no type holds the values of both"
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
    return "no type holds the values of both"


def value_type(kind: ColumnType) -> ColumnType:
    """The type without its display properties, which are not part of the lattice value."""
    length = None if kind.is_integer else kind.length
    return replace(kind, length=length, zerofill=False)


def _join_decimals(a: ColumnType, b: ColumnType) -> ColumnType | str:
    scale = max(a.scale or 0, b.scale or 0)
    whole = max((t.length or 10) - (t.scale or 0) for t in (a, b))
    if whole + scale > _MAX_PRECISION or scale > _MAX_SCALE:
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
    elif length * max_bytes(charset[0]) > _MAX_VARCHAR_BYTES:
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
    """The smallest of the size classes that holds both; lengths count as bytes."""
    sizes = [
        names.index(t.name)
        if t.name in names
        else next((i for i, size in enumerate(_SIZES_BYTES) if (t.length or 0) <= size), None)
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
    # The default of utf8mb3 is general_ci on every server, that of utf8mb4 is the server's.
    allowed = {"", "_general_ci"} if not narrow.collation else {_suffix(narrow)}
    return (charset, wide.collation) if suffix in allowed else "their collations differ"


def _suffix(kind: ColumnType) -> str:
    return kind.collation.removeprefix(kind.charset)
