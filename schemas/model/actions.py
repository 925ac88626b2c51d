"""What one target statement does, as frozen values: the set is closed.

A decision's statement has a text for people and for the server, and actions for programs. No
program reads the text back. An action says what the target has afterwards, in the target's own
terms, so nobody needs a server or a schema to understand it. ``ddl.apply.actions`` applies actions
to a schema.

The columns in actions are never AUTO_INCREMENT or INVISIBLE: no target gets these attributes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from .tables import Check, Column, Default, DefaultKind, Index, TableSchema
from .types import ColumnType

_EMPTY = Default(DefaultKind.LITERAL, "")
_NO_BYTES = Default(DefaultKind.LITERAL, "0x")
"""The empty default of a column of bytes, as a schema writes it."""


@dataclass(frozen=True, slots=True)
class TableCreation:
    """The table is made, with all its columns, indexes and checks."""

    schema: TableSchema


@dataclass(frozen=True, slots=True)
class ColumnAddition:
    """A column is added, as the last one."""

    column: Column


@dataclass(frozen=True, slots=True)
class ColumnRemoval:
    """A column is dropped."""

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
    """A column gets another default.

    Attributes:
        default: The default as the text writes it; None removes it. The text does not tell the
            column's type, so an empty value is "" even for a column of bytes.
    """

    name: str
    default: Default | None

    @classmethod
    def of(cls, name: str, default: Default | None) -> DefaultChange:
        """The action that gives a column this default, which is written as in a schema."""
        return cls(name, _EMPTY if default == _NO_BYTES else default)

    def default_of(self, kind: ColumnType) -> Default | None:
        """The default as a schema writes it for a column of that type."""
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
    """An index is added; one of kind PRIMARY is the primary key."""

    index: Index


@dataclass(frozen=True, slots=True)
class IndexRemoval:
    """An index is dropped; ``PRIMARY`` is the primary key."""

    name: str


@dataclass(frozen=True, slots=True)
class CheckAddition:
    """A check is added."""

    check: Check


@dataclass(frozen=True, slots=True)
class CheckRemoval:
    """A check is dropped."""

    name: str


@dataclass(frozen=True, slots=True)
class CharsetChange:
    """The table gets another default: for columns added later that name no character set.

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
        of: Which rows. One entry per shard, with the values of the origin columns that only its
            rows have. Empty: all rows of the table.
    """

    of: tuple[tuple[ColumnText, ...], ...]


@dataclass(frozen=True, slots=True)
class RowFill:
    """The rows of one shard get the same values.

    Attributes:
        of: Which rows: the values of the origin columns that only the shard's rows have.
        values: One entry per column that gets a value; at least one.
    """

    of: tuple[ColumnText, ...]
    values: tuple[ColumnLiteral, ...]


@dataclass(frozen=True, slots=True)
class ValueMove:
    """The values of one column are copied to another one, in the rows of all shards.

    Attributes:
        name: The column that is read; a row that holds NULL in it does not change.
        to: The column that is written.
        overwrites: Whether rows that already have a value in ``to`` change too. Then ``name`` is
            NULL afterwards.
    """

    name: str
    to: str
    overwrites: bool


@dataclass(frozen=True, slots=True)
class DefaultFill:
    """All rows that hold NULL in a column get the column's default, whatever their shard."""

    name: str


@dataclass(frozen=True, slots=True)
class Adoption:
    """What somebody changed on the table by hand counts as decided; nothing is executed.

    Attributes:
        subject: What it is about, as in ``records.drift.Difference``.
        definition: The definition that counts as decided, as SQL; "" when the part is gone.
        column, index, check: The same as a value, for what a schema has as one.
    """

    subject: str
    definition: str
    column: Column | None = None
    index: Index | None = None
    check: Check | None = None


RowAction: TypeAlias = RowRemoval | RowFill | ValueMove | DefaultFill
"""An action that changes rows. It is the only action of its statement."""
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
    | Adoption
)
