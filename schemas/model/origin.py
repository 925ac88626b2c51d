"""Origin columns: columns of the target that say where a row came from.

No source table has them. The joined schema treats them as the last columns of every shard. The sink
writes the shard's names or the row's position into them. Their identities begin with ``@`` and do
not end in ``#`` and a number, as the identities of other columns do, so the two are never equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from .mysql_facts import MAX_NAME_CHARACTERS
from .mysql_text import string_literal
from .names import ShardId, quote_identifier
from .types import INTEGER_NAMES, ColumnType

_POSITION_CHARACTERS = 400
"""Room for a source, a binlog file and numbers, a table and numbers, with some to spare. As a key
of utf8mb4 it takes 1,600 of InnoDB's 3,072 bytes."""


class OriginPart(StrEnum):
    """What an origin column holds."""

    SOURCE = "source"
    DATABASE = "database"
    TABLE = "table"
    SHARD = "shard"
    """Source, database and table, as ``source/database.table``."""
    POSITION = "position"
    """The position in the source that the row came from, different in every row. Only shards
    without a primary key have this column: it is their primary key in the target."""
    GROUP = "group"
    """What a named group of the route's expressions matches in the shard's names."""

    @property
    def column_id(self) -> str:
        """The identity of an origin column that holds this; for a GROUP only its beginning."""
        return f"@{self.value}"

    @property
    def characters(self) -> int:
        """Characters of the longest value."""
        match self:
            case OriginPart.SHARD:
                return 3 * MAX_NAME_CHARACTERS + len("/.")
            case OriginPart.POSITION:
                return _POSITION_CHARACTERS
            case _:
                return MAX_NAME_CHARACTERS

    def value_in(self, shard: ShardId) -> str:
        """What such a column holds in the rows of a shard.

        Raises:
            ValueError: The column is POSITION, which holds another value in each row, or GROUP,
                whose value the route tells (``RoutingRule.group_value``).
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
            case OriginPart.GROUP:
                raise ValueError("the shard's names alone do not tell a group's value")


_PARTS = {part.column_id: part for part in OriginPart if part is not OriginPart.GROUP}
_GROUP_PREFIX = f"{OriginPart.GROUP.column_id}:"
_GROUP_TYPE = re.compile(rf"(?:varchar\((\d+)\)|({'|'.join(INTEGER_NAMES)})( unsigned)?)", re.I)
_MAX_GROUP_CHARACTERS = 191
"""In utf8mb4 these characters take 764 of the 3,072 bytes that InnoDB allows a key."""
_BITS = dict(zip(INTEGER_NAMES, (8, 16, 24, 32, 64), strict=True))
DEFAULT_GROUP_TYPE = "varchar(64)"


@dataclass(frozen=True, slots=True)
class OriginColumn:
    """An origin column by its name in the target.

    Attributes:
        group: Of the route's expressions; "" unless it is a GROUP.
        type: Of a GROUP: ``varchar(n)``, or an integer type; "" for every other part.
    """

    part: OriginPart
    name: str
    group: str = ""
    type: str = ""

    @property
    def column_id(self) -> str:
        """Its identity."""
        return f"{_GROUP_PREFIX}{self.group}" if self.group else self.part.column_id

    @property
    def column_type(self) -> ColumnType:
        """Its type in the target. Text is compared byte by byte: `t` and `T` are two tables."""
        if self.part is OriginPart.GROUP:
            return group_type(self.type)
        return _text(self.part.characters)

    def __str__(self) -> str:
        what = f"group {self.group}, {self.type}" if self.group else self.part.value
        return f"{self.name} ({what})"


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
    def naming(self) -> tuple[OriginColumn, ...]:
        """The origin columns that hold names of the shard; a condition on them finds its rows."""
        return tuple(column for column in self.of_shard if column.part is not OriginPart.GROUP)

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
            for column in self.naming
        )

    def __str__(self) -> str:
        names = ", ".join(map(str, self.columns))
        return f"{names}{', in keys' if self.in_keys else ''}" if names else "none"


NO_ORIGIN = Origin()


@lru_cache(maxsize=8192)  # each decision asks it for every column, many times
def origin_part(column_id: str) -> OriginPart | None:
    """What the column with this identity holds; None when it is no origin column."""
    return OriginPart.GROUP if column_id.startswith(_GROUP_PREFIX) else _PARTS.get(column_id)


def group_of(column_id: str) -> str:
    """The group whose value the column with this identity holds; "" when it holds no group's."""
    return column_id.removeprefix(_GROUP_PREFIX) if column_id.startswith(_GROUP_PREFIX) else ""


def group_type(text: str) -> ColumnType:
    """The type of a group's column.

    Raises:
        ValueError: The text is no type that such a column can have.
    """
    found = _GROUP_TYPE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not varchar(n), or {', '.join(INTEGER_NAMES)} [unsigned]")
    length, name, unsigned = found.groups()
    if name:
        return ColumnType(name.lower(), unsigned=bool(unsigned))
    if not 1 <= int(length) <= _MAX_GROUP_CHARACTERS:
        raise ValueError(f"{text!r} must have 1 to {_MAX_GROUP_CHARACTERS} characters")
    return _text(int(length))


def group_cell(text: str, kind: ColumnType) -> str:
    """A group's value as its column has it.

    Raises:
        ValueError: It does not fit the type.
    """
    if not kind.is_integer:
        if kind.length is not None and len(text) > kind.length:
            raise ValueError(f"{text!r} has more than {kind.length} characters")
        return text
    if not re.fullmatch(r"-?[0-9]+", text):
        raise ValueError(f"{text!r} is no whole number")
    bits, number = _BITS[kind.name], int(text)
    low, high = (0, (1 << bits) - 1) if kind.unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)
    if not low <= number <= high:
        raise ValueError(f"{number} is not from {low} to {high}")
    return str(number)


def _text(characters: int) -> ColumnType:
    return ColumnType("varchar", characters, charset="utf8mb4", collation="utf8mb4_bin")


def without_origin(column_ids: Iterable[str]) -> list[str]:
    """The identities without those of origin columns."""
    return [column_id for column_id in column_ids if origin_part(column_id) is None]
