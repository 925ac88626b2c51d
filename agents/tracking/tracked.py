"""What the tracker knows of each source and of its tables, and its stored form. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.model.shard_columns import Lineage
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.records import plain


@dataclass(frozen=True, slots=True)
class Unknown:
    """The table exists, but its schema cannot be told any more, until it is described anew."""

    reason: str


@dataclass(frozen=True, slots=True)
class DatabaseDefaults:
    """What new tables of a database inherit; stored under the database's own ``ShardId``."""

    charset: str
    collation: str = ""


@dataclass(frozen=True, slots=True)
class TableCopy:
    """Whose values an online schema change tool puts into the columns of its copy of a table.

    Stored under the ``copy_id`` of the copy, beside its schema, from its CREATE TABLE on.

    Attributes:
        columns: One per column of the copy: ``before`` is the column of the table whose values it
            gets, by its name when the copy was made; "" for none.
    """

    columns: tuple[Lineage, ...]


@dataclass(frozen=True, slots=True)
class Parted:
    """A table that a statement renamed, and whose old name it gives to another table."""

    shard: ShardId
    schema: TableSchema


@dataclass(frozen=True, slots=True)
class LastStatement:
    """The last statement of a source that was executed on the tracked tables.

    Attributes:
        place: Its GTID, or else its position.
        position: Where it stands; if the binlog went back, the furthest position before.
        records: Digests of its records: a statement on several tables comes in several.
        given: Names that these records gave to tables, each as often as it was given.
        parted: Tables whose names are to be given to others by records that have not come yet.
    """

    place: str
    position: SourcePosition
    records: tuple[str, ...]
    given: tuple[str, ...] = ()
    parted: tuple[Parted, ...] = ()


Tracked: TypeAlias = TableSchema | Unknown | DatabaseDefaults | TableCopy

_KINDS: dict[bytes, type[Tracked]] = {
    b"T": TableSchema,
    b"U": Unknown,
    b"D": DatabaseDefaults,
    b"C": TableCopy,
}
"""First byte of the stored form."""

_MOST_READ = 4_096
"""Different stored forms whose values are remembered."""
_MOST_WRITTEN = 512
"""Different values whose stored forms are remembered."""
_PREFIX = b"table/"
_LAST = b"last/"
_COPY = "\0"
"""Before the name of a copy: no table's name holds this character."""


@lru_cache(maxsize=_MOST_READ)
def database_id(source: str, database: str) -> ShardId:
    """Where a database's defaults are kept: no table has an empty name."""
    return ShardId(source, database, "")


def copy_id(shard: ShardId) -> ShardId:
    """Where a table's ``TableCopy`` is kept."""
    return ShardId(shard.source, shard.database, _COPY + shard.table)


def is_table(shard: ShardId) -> bool:
    """Whether a name is that of a table, and not where something else is kept."""
    return bool(shard.table) and not shard.table.startswith(_COPY)


@lru_cache(maxsize=_MOST_READ)
def row_key(shard: ShardId) -> bytes:
    """The row key of a table; JSON, since names may hold any character.

    A statement asks several times for each of its tables.
    """
    names = [shard.source, shard.database, shard.table]
    return _PREFIX + json.dumps(names, ensure_ascii=False, separators=(",", ":")).encode()


def from_row_key(key: bytes) -> ShardId | None:
    """The table of a row key; None when the row is something else (a journal)."""
    if not key.startswith(_PREFIX):
        return None
    return ShardId(*json.loads(key[len(_PREFIX) :]))


@lru_cache(maxsize=_MOST_WRITTEN)
def to_bytes(tracked: Tracked) -> bytes:
    """Canonical bytes: equal values give equal bytes.

    The shards of a target have few schemas, so each is written and read once, not once per shard.
    """
    mark = next(m for m, kind in _KINDS.items() if isinstance(tracked, kind))
    return mark + plain.dump(tracked)


@lru_cache(maxsize=_MOST_READ)
def from_bytes(data: bytes) -> Tracked:
    """Read what ``to_bytes`` wrote.

    Raises:
        ContractError: Not such a row.
    """
    kind = _KINDS.get(data[:1])
    if kind is None:
        raise ContractError(
            f"the stored schema of a table begins with {data[:1]!r}",
            hint="it was written by another version of shardmerge: run that version or a newer one",
            code="SM-2201",
        )
    return plain.load(kind, data[1:])


def last_key(source: str) -> bytes:
    """The row key of a source's ``LastStatement``; its bytes are ``plain.dump``'s."""
    return _LAST + source.encode()
