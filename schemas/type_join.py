"""The least type that holds every value of two types, or the reason why there is none.

Source: the order of types in ARCHITECTURE.md, section 3, and MySQL's value ranges.
"""

from __future__ import annotations

from dataclasses import replace

from .types import BLOB_NAMES, INTEGER_NAMES, TEXT_NAMES, ColumnType

_MAX_PRECISION, _MAX_SCALE = 65, 30
_WIDER_CHARSETS = {frozenset({"utf8mb3", "utf8mb4"}): "utf8mb4"}
_WITH_FSP = ("time", "datetime", "timestamp")


def join_types(a: ColumnType, b: ColumnType) -> ColumnType | str:
    """The supremum of two types; a sentence why there is none.

    Display properties (zerofill, ``tinyint(1)``) are not part of the value: the result has them
    when both types do.
    """
    if a == b:
        return a
    if a.unsigned != b.unsigned:
        return "one is unsigned, the other is not"
    if a.is_integer and b.is_integer:
        name = max(a.name, b.name, key=INTEGER_NAMES.index)
        length = a.length if a.length == b.length and a.name == b.name else None
        return ColumnType(name, length, unsigned=a.unsigned, zerofill=a.zerofill and b.zerofill)
    if a.name == b.name == "decimal":
        return _join_decimals(a, b)
    if a.name == b.name == "bit":
        return replace(a, length=max(a.length or 1, b.length or 1))
    if a.name == b.name and a.name in _WITH_FSP:
        return replace(a, fsp=max(a.fsp, b.fsp))
    if a.is_binary and b.is_binary:
        return _join_binaries(a, b)
    if a.is_string and b.is_string:
        return _join_strings(a, b)
    if a.name == b.name and a.elements and b.elements:
        return _join_elements(a, b)
    if a.name == b.name and replace(a, zerofill=False) == replace(b, zerofill=False):
        return replace(a, zerofill=False)
    return "no type holds the values of both"


def _join_decimals(a: ColumnType, b: ColumnType) -> ColumnType | str:
    scale = max(a.scale or 0, b.scale or 0)
    whole = max((t.length or 10) - (t.scale or 0) for t in (a, b))
    if whole + scale > _MAX_PRECISION or scale > _MAX_SCALE:
        return f"decimal({whole + scale},{scale}) is beyond MySQL's decimal(65,30)"
    return replace(a, length=whole + scale, scale=scale, zerofill=a.zerofill and b.zerofill)


def _join_strings(a: ColumnType, b: ColumnType) -> ColumnType | str:
    charset = _join_charsets(a, b)
    if not isinstance(charset, tuple):
        return charset
    if (a.name in TEXT_NAMES) != (b.name in TEXT_NAMES):
        return "text and varchar hold different sets of values"
    if a.name in TEXT_NAMES:
        wide = ColumnType(max(a.name, b.name, key=TEXT_NAMES.index))
    else:
        wide = ColumnType(
            a.name if a.name == b.name else "varchar", max(a.length or 1, b.length or 1)
        )
    return replace(wide, charset=charset[0], collation=charset[1])


def _join_binaries(a: ColumnType, b: ColumnType) -> ColumnType | str:
    if (a.name in BLOB_NAMES) != (b.name in BLOB_NAMES):
        return "blob and varbinary hold different sets of values"
    if a.name in BLOB_NAMES:
        return ColumnType(max(a.name, b.name, key=BLOB_NAMES.index))
    # A wider binary(n) would append zero bytes to the value, so only varbinary holds both.
    return ColumnType("varbinary", max(a.length or 1, b.length or 1))


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
    suffixes = {t.collation.removeprefix(t.charset) for t in (a, b)}
    if len(suffixes) > 1:
        return "their collations differ"
    suffix = suffixes.pop()
    return charset, f"{charset}{suffix}" if suffix else ""
