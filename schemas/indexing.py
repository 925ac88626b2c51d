"""The canonical form of a table's indexes: names, prefixes, order.

Source: sql_table.cc ``sort_keys`` and ``make_unique_key_name`` (read); measured.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from .model import Column, Index, IndexKind, IndexPart
from .types import BLOB_NAMES, TEXT_NAMES

_PREFIXABLE = frozenset({"char", "varchar", "binary", "varbinary", *TEXT_NAMES, *BLOB_NAMES})
_SIZED = frozenset({"char", "varchar", "binary", "varbinary"})
_FUNCTIONAL = "functional_index"


def normal_indexes(columns: tuple[Column, ...], indexes: tuple[Index, ...]) -> tuple[Index, ...]:
    """Name unnamed indexes, drop needless prefixes, sort as the server does.

    A key part of an unknown column is left as it is; ``apply`` reports it.
    """
    by_name = {column.name.lower(): column for column in columns}
    named: list[Index] = []
    taken: set[str] = set()
    for index in indexes:
        parts = tuple(_part(part, by_name, index.kind) for part in index.parts)
        name = index.name or _generated_name(parts, taken)
        same = name == index.name and parts == index.parts
        named.append(index if same else replace(index, name=name, parts=parts))
        taken.add(name.lower())
    ranks = [_rank(index, by_name) for index in named]
    if all(a <= b for a, b in pairwise(ranks)):
        return tuple(named)
    order = sorted(range(len(named)), key=ranks.__getitem__)
    return tuple(named[place] for place in order)


def _part(part: IndexPart, by_name: dict[str, Column], kind: IndexKind) -> IndexPart:
    column = by_name.get(part.column.lower()) if part.column else None
    if column is None:
        return part
    length = part.length
    if length is not None:
        useless = (
            column.type.name not in _PREFIXABLE
            or kind in (IndexKind.FULLTEXT, IndexKind.SPATIAL)
            or (column.type.name in _SIZED and length >= (column.type.length or 0))
        )
        if useless:
            length = None
    if length == part.length and column.name == part.column:
        return part
    return replace(part, column=column.name, length=length)


def _generated_name(parts: tuple[IndexPart, ...], taken: set[str]) -> str:
    base = parts[0].column or _FUNCTIONAL
    if base.lower() not in taken and base.lower() != "primary":
        return base
    number = 2
    while f"{base}_{number}".lower() in taken:
        number += 1
    return f"{base}_{number}"


def _rank(index: Index, by_name: dict[str, Column]) -> tuple[int, int, int]:
    """Sort key: unique ones first, among them those without NULLs, the primary key, whole ones."""
    if not index.is_unique:
        return (2, int(index.kind is IndexKind.FULLTEXT), 0)
    nullable = any(
        part.column == "" or ((c := by_name.get(part.column.lower())) is not None and c.nullable)
        for part in index.parts
    )
    if index.kind is IndexKind.PRIMARY:
        return (0, 0, 0)
    partial = any(part.length is not None for part in index.parts)
    return (0 if not nullable else 1, 1, int(partial))
