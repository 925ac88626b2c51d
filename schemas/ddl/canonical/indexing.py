"""The canonical form of a table's indexes: names, prefixes, order.

Source: sql_table.cc ``sort_keys`` and ``make_unique_key_name`` (read); measured.
"""

from __future__ import annotations

from itertools import pairwise

from shardmerge.schemas.model.charsets import max_bytes
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.mysql_facts import MAX_KEY_BYTES, SIZES_BYTES, VALUE_BYTES
from shardmerge.schemas.model.tables import Column, Index, IndexKind, IndexPart
from shardmerge.schemas.model.types import BLOB_NAMES, SPATIAL_NAMES, TEXT_NAMES, ColumnType

from .implicit_indexes import without_redundant

_PREFIXABLE = frozenset({"char", "varchar", "binary", "varbinary", *TEXT_NAMES, *BLOB_NAMES})
_UNBOUNDED = frozenset({*TEXT_NAMES, *BLOB_NAMES, *SPATIAL_NAMES})
_SIZED = frozenset({"char", "varchar", "binary", "varbinary"})
_SPATIAL_BYTES = {"point": 25}
"""Spatial types that MariaDB and MySQL 5.7 give a size of their own; the others count as blobs."""
_WHOLE = (IndexKind.FULLTEXT, IndexKind.SPATIAL)
"""Indexes whose parts have no prefix."""
_SPATIAL_HASH_BYTES = 8
_FUNCTIONAL = "functional_index"


def normal_indexes(
    columns: tuple[Column, ...],
    indexes: tuple[Index, ...],
    *,
    mariadb: bool,
    plain_spatial: bool = False,
    made_not_null: frozenset[str] = frozenset(),
    max_key_bytes: int = MAX_KEY_BYTES,
    known: int | None = None,
) -> tuple[Index, ...]:
    """Name unnamed indexes, drop needless prefixes, sort as the server does.

    A key part of an unknown column does not change; ``apply`` reports it.

    Args:
        columns: The table's columns.
        indexes: Its indexes, as written.
        mariadb: Whether the server is MariaDB.
        plain_spatial: Whether a plain index on a spatial column is an index of its bytes, as in
            MariaDB and in MySQL before 8.0. Else it is a spatial index.
        made_not_null: Columns (lower case) that only the primary key made NOT NULL. For the server,
            indexes that are written before the primary key still have nullable columns.
        max_key_bytes: The most bytes of an index entry.
        known: See ``without_redundant``.
    """
    plain_spatial = plain_spatial or mariadb
    by_name = {column.name.lower(): column for column in columns}
    if not mariadb:
        # This comes before needless prefixes are dropped: MySQL counts them here as prefixes.
        indexes = without_redundant(indexes, mariadb=False, known=known)
    indexes = tuple([_with_normal_parts(i, by_name, plain_spatial=plain_spatial) for i in indexes])
    if mariadb:
        indexes = tuple([_long_unique(index, by_name, max_key_bytes) for index in indexes])
        indexes = tuple([_fitting_implicit(index, by_name, max_key_bytes) for index in indexes])
        indexes = without_redundant(indexes, mariadb=True, known=known)
    named: list[Index] = []
    taken: set[str] = set()
    for index in indexes:
        parts = index.parts
        if index.kind is IndexKind.PLAIN:
            parts = _fitting_parts(parts, by_name, max_key_bytes, mariadb=mariadb)
        name = index.name or _generated_name(parts, taken, mariadb=mariadb)
        same = name == index.name and parts == index.parts
        named.append(index if same else replace(index, name=name, parts=parts))
        taken.add(name.lower())
    ranks: list[tuple[int, int, int]] = []
    nullable = made_not_null
    for index in named:
        if index.kind is IndexKind.PRIMARY:
            nullable = frozenset()
        ranks.append(_rank(index, by_name, nullable))
    if all(a <= b for a, b in pairwise(ranks)):
        return tuple(named)
    order = sorted(range(len(named)), key=ranks.__getitem__)
    return tuple(named[place] for place in order)


def _with_normal_parts(index: Index, by_name: dict[str, Column], *, plain_spatial: bool) -> Index:
    parts = tuple(
        [
            _normal_part(part, by_name, index.kind, plain_spatial=plain_spatial)
            for part in index.parts
        ]
    )
    index = index if parts == index.parts else replace(index, parts=parts)
    first = by_name.get(parts[0].column.lower())
    if first is None or first.type.name not in SPATIAL_NAMES or parts[0].length is not None:
        return index
    if index.kind is IndexKind.PLAIN and not plain_spatial:
        return replace(index, kind=IndexKind.SPATIAL)
    if not index.is_unique:
        return index
    size = _SPATIAL_BYTES.get(first.type.name)
    if size is None:
        parts = tuple([replace(part, descending=False) for part in parts])
    parts = (replace(parts[0], length=size or _SPATIAL_HASH_BYTES), *parts[1:])
    return replace(index, parts=parts, hashed=size is None)


def _normal_part(
    part: IndexPart, by_name: dict[str, Column], kind: IndexKind, *, plain_spatial: bool
) -> IndexPart:
    column = by_name.get(part.column.lower()) if part.column else None
    if column is None:
        return part
    length = part.length
    is_spatial = plain_spatial and column.type.name in SPATIAL_NAMES
    if is_spatial and kind not in _WHOLE and column.type.name in _SPATIAL_BYTES:
        # A prefix of a point, whatever its length, is the whole point.
        length = _SPATIAL_BYTES[column.type.name]
    elif length is not None:
        useless = (
            not (column.type.name in _PREFIXABLE or is_spatial)
            or kind in _WHOLE
            or (column.type.name in _SIZED and length >= (column.type.length or 0))
        )
        if useless:
            length = None
        elif plain_spatial and column.type.name in _UNBOUNDED:
            length = min(length, _type_bytes(column.type))
    if length == part.length and column.name == part.column:
        return part
    return replace(part, column=column.name, length=length)


def _fitting_parts(
    parts: tuple[IndexPart, ...], by_name: dict[str, Column], limit: int, *, mariadb: bool
) -> tuple[IndexPart, ...]:
    """The parts. A part that is too long is cut to the longest possible prefix.

    In strict mode the server refuses such an index instead.

    MariaDB also accepts a text or blob column without a prefix.

    Source: sql_table.cc ``prepare_key_column`` (read); measured on MySQL 9.7 and MariaDB 10.11.
    """
    fitting: list[IndexPart] = []
    for part in parts:
        column = by_name.get(part.column.lower())
        size, width = _whole_bytes(part, by_name, limit)
        if column is not None and part.length is not None and column.type.name not in _SIZED:
            most = _type_bytes(column.type)
            longest = min(most, limit // width) if mariadb else min(most, limit) // width
            fitting.append(part if part.length <= longest else replace(part, length=longest))
        elif size > 0 and (mariadb or column is None or column.type.name in _SIZED):
            fitting.append(replace(part, length=min(size, limit) // width))
        else:
            fitting.append(part)
    return tuple(fitting)


def _fitting_implicit(index: Index, by_name: dict[str, Column], limit: int) -> Index:
    """An implicit index with its prefixes, as MariaDB has it when it looks for redundant ones."""
    if not index.implicit:
        return index
    parts = _fitting_parts(index.parts, by_name, limit, mariadb=True)
    return index if parts == index.parts else replace(index, parts=parts)


def _long_unique(index: Index, by_name: dict[str, Column], limit: int) -> Index:
    """The index. MariaDB stores a unique key that is too long as a hash, which has no order.

    Source: measured on 10.11; "Getting Started with Indexes", unique index on long columns.
    """
    if index.kind is not IndexKind.UNIQUE or not is_long(index, by_name, limit):
        return index
    parts = tuple(replace(part, descending=False) for part in index.parts)
    return replace(index, parts=parts, hashed=True)


def is_long(index: Index, by_name: dict[str, Column], limit: int = MAX_KEY_BYTES) -> bool:
    """Whether a part is too long for a key."""
    return any(_whole_bytes(part, by_name, limit)[0] > 0 for part in index.parts)


def _whole_bytes(
    part: IndexPart, by_name: dict[str, Column], limit: int = MAX_KEY_BYTES
) -> tuple[int, int]:
    """The bytes of a column that is too long for a key part (else 0), and bytes per character."""
    column = by_name.get(part.column.lower())
    if column is None:
        return 0, 1
    kind: ColumnType = column.type
    width = max_bytes(kind.charset)
    if kind.name in _UNBOUNDED:
        return (0 if part.length is not None else _type_bytes(kind) * width), width
    if kind.name not in _SIZED:
        return 0, 1
    size = (part.length or kind.length or 0) * width
    return (size if size > limit else 0), width


def _type_bytes(kind: ColumnType) -> int:
    sizes = VALUE_BYTES | _SPATIAL_BYTES
    return sizes.get(kind.name, SIZES_BYTES[-1])


def _generated_name(parts: tuple[IndexPart, ...], taken: set[str], *, mariadb: bool) -> str:
    functional = not mariadb and any(part.expression for part in parts)
    base = _FUNCTIONAL if functional else parts[0].column or _FUNCTIONAL
    if base.lower() not in taken and base.lower() != "primary":
        return base
    number = 2
    while f"{base}_{number}".lower() in taken:
        number += 1
    return f"{base}_{number}"


def _rank(
    index: Index, by_name: dict[str, Column], made_not_null: frozenset[str]
) -> tuple[int, int, int]:
    """The sort key of an index.

    Unique indexes come first: the primary key, those without nullable columns, then the others;
    among equals, those without prefixes first.
    """
    generated = any(
        part.expression or ((c := by_name.get(part.column.lower())) is not None and _is_virtual(c))
        for part in index.parts
    )
    if not index.is_unique:
        return (2, int(index.kind is IndexKind.FULLTEXT), int(generated))
    nullable = any(
        part.column == ""
        or part.column.lower() in made_not_null
        or ((c := by_name.get(part.column.lower())) is not None and c.nullable)
        for part in index.parts
    )
    if index.kind is IndexKind.PRIMARY:
        return (0, 0, 0)
    partial = any(part.length is not None for part in index.parts)
    hashed = is_long(index, by_name)
    return (0 if not nullable else 1, 1, 4 * hashed + 2 * partial + generated)


def _is_virtual(column: Column) -> bool:
    return column.generated is not None and not column.generated.stored
