"""The least type that holds every value of some types exactly, or the reason why there is none.

The type is computed from all types at once, not pair by pair. The least type of two may hold more
than both together (``TINYINT`` and ``TINYINT UNSIGNED`` need a ``SMALLINT``); a third type would
then be joined with values that no shard has. The result depends neither on the order of the types
nor on how often each occurs.

The least type is the one with the fewest values; among types with the same values, one of a kind
that a shard has. Integers become a decimal only if no integer type holds all of them (BIGINT and
BIGINT UNSIGNED), and decimals do not become integers.

Source: MySQL Reference Manual, "Data Types" (value ranges); ``max_allowed_packet`` is 1 GB at most,
so a LONGTEXT in any character set holds what a LONGTEXT in another one held.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shardmerge.schemas.model.charsets import max_bytes
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.mysql_facts import (
    DIGITS,
    MAX_PRECISION,
    MAX_SCALE,
    MAX_VARCHAR_BYTES,
    SIZES_BYTES,
    size_index,
)
from shardmerge.schemas.model.types import (
    BLOB_NAMES,
    INTEGER_NAMES,
    SPATIAL_NAMES,
    TEXT_NAMES,
    ColumnType,
)

from .charset_order import (
    joined_charset,
    joined_collation,
    keeps_bytes,
    most_characters,
    widest_character,
)

_APPROXIMATE = ("float", "double")
_WITH_FSP = ("time", "datetime", "timestamp")


def least_type(
    kinds: Iterable[ColumnType], defaults: frozenset[str] = frozenset()
) -> ColumnType | str:
    """The least type that holds every value of these, or a sentence that says why there is none.

    Display properties (zerofill, ``tinyint(1)``) are not part of the value: the result has them
    when all types do.

    Args:
        kinds: At least one type.
        defaults: The default collations of utf8mb4, see ``joined_collation``.
    """
    found = sorted(set(kinds), key=repr)
    if len(found) == 1:
        return found[0]
    zerofill = all(kind.zerofill for kind in found)
    if all(_is_exact(kind) for kind in found):
        kind = _least_number(found)
        return kind if isinstance(kind, str) else replace(kind, zerofill=zerofill)
    if all(kind.name in _APPROXIMATE for kind in found):
        return replace(_least_approximate(found), zerofill=zerofill)
    if all(kind.is_string for kind in found):
        return _least_text(found, defaults)
    if all(kind.is_binary for kind in found):
        return _least_bytes(found)
    names = {kind.name for kind in found}
    if len(names) > 1:
        return _why_apart(found)
    (name,) = names
    if name == "bit":
        return replace(found[0], length=max(kind.length or 1 for kind in found))
    if name in _WITH_FSP:
        return replace(found[0], fsp=max(kind.fsp for kind in found))
    if all(kind.elements for kind in found):
        return _least_elements(found, defaults)
    return "their values are of one kind, but not of one reference system"


def _is_exact(kind: ColumnType) -> bool:
    return kind.is_integer or kind.name == "decimal"


def _least_number(kinds: Sequence[ColumnType]) -> ColumnType | str:
    unsigned = all(kind.unsigned for kind in kinds)
    if not all(kind.is_integer for kind in kinds):
        return _least_decimal(kinds, unsigned=unsigned)
    # A signed integer type holds the unsigned types that are smaller than it.
    sizes = [INTEGER_NAMES.index(kind.name) + (kind.unsigned and not unsigned) for kind in kinds]
    size = max(sizes)
    if size == len(INTEGER_NAMES):
        return ColumnType("decimal", DIGITS["bigint"][True], 0)
    name, lengths = INTEGER_NAMES[size], {(kind.name, kind.length) for kind in kinds}
    length = kinds[0].length if lengths == {(name, kinds[0].length)} else None
    return ColumnType(name, length, unsigned=unsigned)


def _least_decimal(kinds: Sequence[ColumnType], *, unsigned: bool) -> ColumnType | str:
    scale = max(kind.scale or 0 for kind in kinds)
    whole = max(
        DIGITS[kind.name][kind.unsigned]
        if kind.is_integer
        else (kind.length or 10) - (kind.scale or 0)
        for kind in kinds
    )
    if whole + scale > MAX_PRECISION or scale > MAX_SCALE:
        return f"decimal({whole + scale},{scale}) is beyond MySQL's decimal(65,30)"
    return ColumnType("decimal", whole + scale, scale, unsigned=unsigned)


def _least_approximate(kinds: Sequence[ColumnType]) -> ColumnType:
    name = "double" if any(kind.name == "double" for kind in kinds) else "float"
    # Any display precision rounds, so only the type without one holds the values of all.
    shapes = {(kind.name, kind.length, kind.scale) for kind in kinds}
    length, scale = (kinds[0].length, kinds[0].scale) if len(shapes) == 1 else (None, None)
    return ColumnType(name, length, scale, unsigned=all(kind.unsigned for kind in kinds))


def _least_text(kinds: Sequence[ColumnType], defaults: frozenset[str]) -> ColumnType | str:
    charset = joined_charset({kind.charset for kind in kinds})
    if charset is None:
        return _charsets_apart(kinds)
    collation = joined_collation(charset, {(k.charset, k.collation) for k in kinds}, defaults)
    if all(kind.name == "char" for kind in kinds):
        length = max(kind.length or 0 for kind in kinds)
        return ColumnType("char", length, charset=charset, collation=collation)
    characters = max(_characters(kind) for kind in kinds)
    size = size_index(max(_bytes_in(kind, charset) for kind in kinds))
    text = ColumnType(TEXT_NAMES[size], charset=charset, collation=collation)
    varchar = ColumnType("varchar", characters, charset=charset, collation=collation)
    varchar_bytes = characters * max_bytes(charset)
    if varchar_bytes > MAX_VARCHAR_BYTES:
        return text
    if all(kind.name not in TEXT_NAMES for kind in kinds):
        return varchar
    in_text = varchar_bytes <= SIZES_BYTES[size]
    in_varchar = most_characters(charset, SIZES_BYTES[size]) <= characters
    return varchar if in_text and not in_varchar else text


def _characters(kind: ColumnType) -> int:
    """The most characters that a value can have."""
    if kind.name not in TEXT_NAMES:
        return kind.length or 0
    return most_characters(kind.charset, SIZES_BYTES[TEXT_NAMES.index(kind.name)])


def _bytes_in(kind: ColumnType, charset: str) -> int:
    """The most bytes that a value can have as text of another character set."""
    if kind.name in TEXT_NAMES and keeps_bytes(kind.charset, charset):
        return SIZES_BYTES[TEXT_NAMES.index(kind.name)]
    return _characters(kind) * widest_character(kind.charset, charset)


def _least_bytes(kinds: Sequence[ColumnType]) -> ColumnType:
    # A wider binary(n) would append zero bytes to the value, so only varbinary holds both.
    size = max(
        SIZES_BYTES[BLOB_NAMES.index(kind.name)] if kind.name in BLOB_NAMES else kind.length or 0
        for kind in kinds
    )
    blobs = [kind.name for kind in kinds if kind.name in BLOB_NAMES]
    if blobs and size in (SIZES_BYTES[BLOB_NAMES.index(name)] for name in blobs):
        return ColumnType(BLOB_NAMES[size_index(size)])
    return ColumnType("varbinary", size)


def _least_elements(kinds: Sequence[ColumnType], defaults: frozenset[str]) -> ColumnType | str:
    charset = joined_charset({kind.charset for kind in kinds})
    if charset is None:
        return _charsets_apart(kinds)
    longest = max((kind.elements for kind in kinds), key=len)
    if any(longest[: len(kind.elements)] != kind.elements for kind in kinds):
        return "neither list of values is the beginning of the other"
    collation = joined_collation(charset, {(k.charset, k.collation) for k in kinds}, defaults)
    return replace(kinds[0], elements=longest, charset=charset, collation=collation)


def _charsets_apart(kinds: Sequence[ColumnType]) -> str:
    names = " and ".join(sorted({kind.charset for kind in kinds}))
    return f"it is not known that every character of {names} becomes one of utf8mb4 and back"


def _why_apart(kinds: Sequence[ColumnType]) -> str:
    if any(map(_is_exact, kinds)) and any(kind.name in _APPROXIMATE for kind in kinds):
        return "one is exact, the other approximate, and the two are not made one"
    if any(kind.is_string for kind in kinds) and any(kind.is_binary for kind in kinds):
        return "one is text, the other bytes, which need not be text"
    if all(kind.name in SPATIAL_NAMES for kind in kinds):
        return "one spatial type is not widened to another"
    return "their values are of different kinds"
