"""What one target statement does, as frozen values: the set is closed.

A decision's statement has its text for people and for the server, and its actions for programs:
nobody reads the text back. The values say what the target has afterwards, in its own terms, so
they need no server and no schema to be understood. ``ddl.apply.actions`` tells what they make of a
schema.

Columns in them have what the text says: never AUTO_INCREMENT or INVISIBLE, which no target gets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from .tables import Check, Column, Default, DefaultKind, Index, TableSchema
from .types import ColumnType

_EMPTY = Default(DefaultKind.LITERAL, "")
_NO_BYTES = Default(DefaultKind.LITERAL, "0x")
"""The same value, in columns of bytes."""


@dataclass(frozen=True, slots=True)
class TableCreation:
    """The table is made, with all its columns, indexes and checks."""

    schema: TableSchema


@dataclass(frozen=True, slots=True)
class ColumnAddition:
    """A column comes, as the last one."""

    column: Column


@dataclass(frozen=True, slots=True)
class ColumnRemoval:
    """A column goes."""

    name: str


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """A column gets a whole new definition; ``column.name`` differs from ``name`` in a rename."""

    name: str
    column: Column


@dataclass(frozen=True, slots=True)
class ColumnRename:
    """A column gets another name."""

    name: str
    to: str


@dataclass(frozen=True, slots=True)
class DefaultChange:
    """A column gets another default; None: it has none any more.

    Attributes:
        default: As the text says it, which does not tell the column's type: an empty value is "".
    """

    name: str
    default: Default | None

    @classmethod
    def of(cls, name: str, default: Default | None) -> DefaultChange:
        """The action that gives a column a default in the form that schemas have."""
        return cls(name, _EMPTY if default == _NO_BYTES else default)

    def default_of(self, kind: ColumnType) -> Default | None:
        """The default in the form that schemas have, for a column of that type."""
        return _NO_BYTES if self.default == _EMPTY and kind.is_binary else self.default


@dataclass(frozen=True, slots=True)
class TypeChange:
    """A column gets another type, and keeps the rest of its definition."""

    name: str
    type: ColumnType


@dataclass(frozen=True, slots=True)
class NullPermission:
    """A column may be NULL, and keeps the rest of its definition."""

    name: str


@dataclass(frozen=True, slots=True)
class CommentChange:
    """A column gets another comment, and keeps the rest of its definition."""

    name: str
    comment: str


@dataclass(frozen=True, slots=True)
class IndexAddition:
    """An index comes; one of kind PRIMARY is the primary key."""

    index: Index


@dataclass(frozen=True, slots=True)
class IndexRemoval:
    """An index goes; ``PRIMARY`` is the primary key."""

    name: str


@dataclass(frozen=True, slots=True)
class CheckAddition:
    """A check comes."""

    check: Check


@dataclass(frozen=True, slots=True)
class CheckRemoval:
    """A check goes."""

    name: str


@dataclass(frozen=True, slots=True)
class CharsetChange:
    """Columns that come later and name no character set get this one.

    Attributes:
        collation: "" is the character set's default.
    """

    charset: str
    collation: str


@dataclass(frozen=True, slots=True)
class ColumnText:
    """A column, and the text that it holds in some rows."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class ColumnLiteral:
    """A column, and a value for it as the target's SQL writes it (``Dialect.row_value``)."""

    name: str
    literal: str


@dataclass(frozen=True, slots=True)
class RowRemoval:
    """Rows are deleted.

    Attributes:
        of: One entry per shard: what its rows, and no others, hold in the origin columns. Empty:
            all rows of the table.
    """

    of: tuple[tuple[ColumnText, ...], ...]


@dataclass(frozen=True, slots=True)
class RowFill:
    """The rows of one shard get the same values.

    Attributes:
        of: What its rows, and no others, hold in the origin columns.
        values: One entry per column that gets a value; at least one.
    """

    of: tuple[ColumnText, ...]
    values: tuple[ColumnLiteral, ...]


@dataclass(frozen=True, slots=True)
class ValueMove:
    """The values of one column go to another one, in the rows of all shards.

    Attributes:
        name: The column that gives its values away; where it is NULL nothing happens.
        to: The one that gets them.
        overwrites: Whether also rows that have a value in ``to`` get the other one. Then ``name``
            is NULL afterwards.
    """

    name: str
    to: str
    overwrites: bool


@dataclass(frozen=True, slots=True)
class DefaultFill:
    """Rows of all shards that hold NULL in a column get its default."""

    name: str


RowAction: TypeAlias = RowRemoval | RowFill | ValueMove | DefaultFill
"""Changes rows; it is the only action of its statement."""
Action: TypeAlias = (
    TableCreation
    | ColumnAddition
    | ColumnRemoval
    | ColumnChange
    | ColumnRename
    | DefaultChange
    | TypeChange
    | NullPermission
    | CommentChange
    | IndexAddition
    | IndexRemoval
    | CheckAddition
    | CheckRemoval
    | CharsetChange
    | RowRemoval
    | RowFill
    | ValueMove
    | DefaultFill
)
