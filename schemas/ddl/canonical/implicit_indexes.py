"""Indexes that servers make for foreign keys, and drop when another one does their work.

Source: sql_table.cc ``mysql_prepare_create_table``, ``foreign_key_prefix`` (read); measured.
"""

from __future__ import annotations

from dataclasses import replace

from shardmerge.schemas.ddl.changes import AddForeignKey, WrittenForeignKey
from shardmerge.schemas.model.tables import ForeignKey, Index, IndexKind, IndexPart, TableSchema

_WITHOUT_ORDER = (IndexKind.FULLTEXT, IndexKind.SPATIAL)


def implicit_index(key: ForeignKey) -> Index:
    """The index that a new foreign key brings, unless another one begins with its columns."""
    parts = tuple(IndexPart(name) for name in key.columns)
    name = key.name or (key.index_name if isinstance(key, WrittenForeignKey) else "")
    return Index(name, IndexKind.PLAIN, parts, implicit=True)


def is_new(action: AddForeignKey, schema: TableSchema) -> bool:
    """Whether ADD FOREIGN KEY adds one: IF NOT EXISTS looks for its name."""
    key = action.foreign_key
    name = (implicit_index(key).name or key.name).lower()
    known = action.if_not_exists and any(key.name.lower() == name for key in schema.foreign_keys)
    return not known


def without_redundant(
    indexes: tuple[Index, ...], *, mariadb: bool, known: int | None = None
) -> tuple[Index, ...]:
    """Leave out implicit indexes with whose columns another index begins.

    The server looks at them in the order of the statement, behind those that the table has.
    Of two implicit ones the shorter goes, of two as long as each other the earlier. ``known`` is
    the number of those that the table has already; None is all of them.

    FULLTEXT and SPATIAL ones count though no foreign key can use them: to MySQL those that stand
    behind the other, to MariaDB those that are new, wherever they stand.
    """
    if not any(index.implicit for index in indexes):
        return indexes

    def counts(place: int, *, is_later: bool) -> bool:
        if indexes[place].kind not in _WITHOUT_ORDER:
            return True
        return known is not None and place >= known if mariadb else is_later

    gone: set[int] = set()
    for place, index in enumerate(indexes):
        for earlier in range(place):
            other = indexes[earlier]
            if earlier in gone or not (other.implicit or index.implicit):
                continue
            if not (counts(earlier, is_later=False) and counts(place, is_later=True)):
                continue
            if not _makes_redundant(index, other, mariadb=mariadb):
                continue
            is_kept = other.implicit and not (
                index.implicit and len(index.parts) < len(other.parts)
            )
            gone.add(earlier if is_kept else place)
            break
    return tuple(index for place, index in enumerate(indexes) if place not in gone)


def _makes_redundant(index: Index, other: Index, *, mariadb: bool) -> bool:
    """Whether an implicit one of the two is the beginning of the other.

    MariaDB does not look at DESC.
    """
    short, long = (index, other) if index.implicit else (other, index)
    if index.implicit and other.implicit and len(short.parts) > len(long.parts):
        short, long = long, short
    if mariadb and long.hashed:
        return False
    return len(short.parts) <= len(long.parts) and all(
        own.column.lower() == part.column.lower()
        and own.length == part.length
        and (mariadb or own.descending == part.descending)
        for own, part in zip(short.parts, long.parts, strict=False)
    )


def after_alter(index: Index) -> Index:
    """An index that stays: MariaDB forgets USING HASH of unique ones that need no hash."""
    if index.hashed and index.is_unique:
        return replace(index, hashed=False)
    return index


def is_settled(index: Index) -> bool:
    """Whether an ALTER TABLE that does not concern the index leaves it as it is."""
    return not (index.implicit or (index.hashed and index.is_unique))


def may_be_implicit(index: Index, keys: tuple[ForeignKey, ...]) -> bool:
    """Whether the server may have made the index for one of the foreign keys."""
    if index.implicit:
        return True
    if index.kind is not IndexKind.PLAIN or index.comment or index.invisible or index.hashed:
        return False
    if any(part.descending or part.length is not None for part in index.parts):
        return False
    own = [name.lower() for name in index.columns]
    return any(own == [name.lower() for name in key.columns] for key in keys)
