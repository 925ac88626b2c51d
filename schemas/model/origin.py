"""Origin columns: columns of the target that say where a row came from.

No source table has them. The joined schema treats them as the last columns of every shard. The sink
writes the shard's names or the row's position into them. Their identities begin with ``@`` and do
not end in ``#`` and a number, as the identities of other columns do, so the two are never equal.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from .mysql_facts import MAX_NAME_CHARACTERS
from .mysql_text import string_literal
from .names import ShardId, quote_identifier

_PLACE_CHARACTERS = 400
"""Room for a source, a binlog file and numbers, a table and numbers, with some to spare. As a key
of utf8mb4 it takes 1,600 of InnoDB's 3,072 bytes."""


class OriginPart(StrEnum):
    """What an origin column holds."""

    SOURCE = "source"
    DATABASE = "database"
    TABLE = "table"
    SHARD = "shard"
    """All three, as ``source/database.table``."""
    POSITION = "position"
    """The position in the source that the row came from, different in every row. Only shards
    without a primary key have this column: it is their primary key in the target."""

    @property
    def column_id(self) -> str:
        """The identity of an origin column that holds this."""
        return f"@{self.value}"

    @property
    def characters(self) -> int:
        """Characters of the longest value."""
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
            ValueError: The column is POSITION, which holds another value in each row.
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
        columns: In the target's order; empty when the target has none.
        in_keys: Whether the primary key and the unique keys end with the origin columns that name
            the shard. Then two shards may have rows with the same key.
    """

    columns: tuple[OriginColumn, ...] = ()
    in_keys: bool = False

    @property
    def of_shard(self) -> tuple[OriginColumn, ...]:
        """The origin columns that hold the same value in all rows of a shard."""
        return tuple(column for column in self.columns if column.part is not OriginPart.POSITION)

    @property
    def position(self) -> OriginColumn | None:
        """The column that is the key of rows without a primary key; None when there is none."""
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
    """What the column with this identity holds; None when it is no origin column."""
    return _PARTS.get(column_id)


def without_origin(column_ids: Iterable[str]) -> list[str]:
    """The identities without those of origin columns."""
    return [column_id for column_id in column_ids if column_id not in _PARTS]
