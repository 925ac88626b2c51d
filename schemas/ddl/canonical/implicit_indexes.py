"""Indexes that servers make for foreign keys, and drop when another index can replace them.

Source: sql_table.cc ``mysql_prepare_create_table``, ``foreign_key_prefix`` (read); measured.
"""

from __future__ import annotations

from shardmerge.schemas.ddl.changes import AddForeignKey, WrittenForeignKey
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.tables import ForeignKey, Index, IndexKind, IndexPart, TableSchema

_WITHOUT_ORDER = (IndexKind.FULLTEXT, IndexKind.SPATIAL)


def implicit_index(key: ForeignKey) -> Index:
    """The index that the server adds for a new foreign key, unless another index replaces it."""
    parts = tuple(IndexPart(name) for name in key.columns)
    name = key.name or (key.index_name if isinstance(key, WrittenForeignKey) else "")
    return Index(name, IndexKind.PLAIN, parts, implicit=True)


def is_new(action: AddForeignKey, schema: TableSchema) -> bool:
    """Whether ADD FOREIGN KEY adds a key. With IF NOT EXISTS it does not if the name exists."""
    key = action.foreign_key
    name = (implicit_index(key).name or key.name).lower()
    known = action.if_not_exists and any(key.name.lower() == name for key in schema.foreign_keys)
    return not known


def without_redundant(
    indexes: tuple[Index, ...], *, mariadb: bool, known: int | None = None
) -> tuple[Index, ...]:
    """Remove implicit indexes whose columns are the first columns of another index.

    The server compares the table's indexes first, then the new ones in the order of the statement.
    Of two implicit indexes it removes the shorter one; if they have the same length, the earlier
    one. ``known`` is the number of indexes that the table has already; None means all of them.

    FULLTEXT and SPATIAL indexes count too, although no foreign key can use them: for MySQL if they
    come after the other index, for MariaDB if they are new.
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
            if not _one_is_redundant(index, other, mariadb=mariadb):
                continue
            is_kept = other.implicit and not (
                index.implicit and len(index.parts) < len(other.parts)
            )
            gone.add(earlier if is_kept else place)
            break
    return tuple(index for place, index in enumerate(indexes) if place not in gone)


def _one_is_redundant(index: Index, other: Index, *, mariadb: bool) -> bool:
    """Whether the columns of the implicit one of two indexes are the first columns of the other.

    At least one of them is implicit; if both are, the shorter one counts. MariaDB ignores DESC.
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
    """An index after an ALTER TABLE: MariaDB drops USING HASH of a unique index.

    ``normal_indexes`` sets it again if the index needs the hash, because a column is too long.
    """
    if index.hashed and index.is_unique:
        return replace(index, hashed=False)
    return index


def is_settled(index: Index) -> bool:
    """Whether an ALTER TABLE that does not name the index leaves it unchanged."""
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
