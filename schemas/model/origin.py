"""Origin columns: columns of the target that say where a row came from.

No shard has them. In the joined schema the shards have them as their last columns; the sink writes
the shard's names into them, or the row's place. Their identities begin with ``@``, which those of
other columns, ending in ``#`` and a number, never are equal to.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from .mysql_facts import MAX_NAME_CHARACTERS
from .mysql_text import string_literal
from .names import ShardId, quote_identifier

_PLACE_CHARACTERS = 400
"""Of a source, a binlog file and numbers, a table and numbers, with some to spare. As a key of
utf8mb4 they are 1,600 bytes, of the 3,072 that InnoDB takes."""


class OriginPart(StrEnum):
    """What an origin column holds."""

    SOURCE = "source"
    DATABASE = "database"
    TABLE = "table"
    SHARD = "shard"
    """All three, as ``source/database.table``."""
    POSITION = "position"
    """The place in the source that the row came from: another one in every row. Only shards without
    a primary key have it, as their primary key."""

    @property
    def column_id(self) -> str:
        """The identity of such a column."""
        return f"@{self.value}"

    @property
    def characters(self) -> int:
        """Of the longest value."""
        match self:
            case OriginPart.SHARD:
                return 3 * MAX_NAME_CHARACTERS + len("/.")
            case OriginPart.POSITION:
                return _PLACE_CHARACTERS
            case _:
                return MAX_NAME_CHARACTERS

    def value_in(self, shard: ShardId) -> str:
        """What such a column holds in the rows of a shard.

        Raises:
            ValueError: It holds another value in each of them.
        """
        match self:
            case OriginPart.SOURCE:
                return shard.source
            case OriginPart.DATABASE:
                return shard.database
            case OriginPart.TABLE:
                return shard.table
            case OriginPart.SHARD:
                return str(shard)
            case OriginPart.POSITION:
                raise ValueError("rows of one shard have positions of their own")


_PARTS = {part.column_id: part for part in OriginPart}


@dataclass(frozen=True, slots=True)
class OriginColumn:
    """An origin column by its name in the target."""

    part: OriginPart
    name: str


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin columns of a target.

    Attributes:
        columns: In the target's order; empty: it has none.
        in_keys: Whether the primary key and the unique keys end with those that name the shard:
            then shards may use the same values.
    """

    columns: tuple[OriginColumn, ...] = ()
    in_keys: bool = False

    @property
    def of_shard(self) -> tuple[OriginColumn, ...]:
        """Those that hold one value in all rows of a shard."""
        return tuple(column for column in self.columns if column.part is not OriginPart.POSITION)

    @property
    def position(self) -> OriginColumn | None:
        """The one that is the key of rows without a key; None where they stay without one."""
        places = (column for column in self.columns if column.part is OriginPart.POSITION)
        return next(places, None)

    @property
    def tells_shards_apart(self) -> bool:
        """Whether two shards can never have the same values in them."""
        parts = {column.part for column in self.columns}
        return OriginPart.SHARD in parts or parts >= {
            OriginPart.SOURCE,
            OriginPart.DATABASE,
            OriginPart.TABLE,
        }

    def condition(self, shard: ShardId) -> str:
        """The SQL condition that is true for the rows of one shard."""
        return " AND ".join(
            f"{quote_identifier(column.name)} = {string_literal(column.part.value_in(shard))}"
            for column in self.of_shard
        )

    def __str__(self) -> str:
        names = ", ".join(f"{column.name} ({column.part.value})" for column in self.columns)
        return f"{names}{', in keys' if self.in_keys else ''}" if names else "none"


NO_ORIGIN = Origin()


def origin_part(column_id: str) -> OriginPart | None:
    """What the column of an identity holds; None when it is no origin column."""
    return _PARTS.get(column_id)


def without_origin(column_ids: Iterable[str]) -> list[str]:
    """The identities of columns that shards have."""
    return [column_id for column_id in column_ids if column_id not in _PARTS]
