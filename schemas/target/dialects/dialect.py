"""A dialect says what one kind of target can have and do: the interface behind ``diff``.

A dialect answers two questions. *Fitting*: which parts of a joined schema can the target have
(``fit_column``, ``fit_index``, ``fit_check``, ``zero_value``)? A part that it cannot have is left
out or replaced if the target then accepts at least the same rows, and a note says so. Else the
schema cannot be rendered. *Statements*: what are the actions of one step, and their canonical text?
The text is made only from the actions and the types of their columns. Dialects are frozen values
without I/O: equal dialects and equal arguments give equal bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

from shardmerge.schemas.model.actions import Action
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.tables import Check, Column, Default, Index, TableSchema
from shardmerge.schemas.model.types import ColumnType


@dataclass(frozen=True, slots=True)
class CannotRender:
    """Why the target cannot be brought to a schema. ``hint``: what the operator can do."""

    reason: str
    hint: str
    code: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Why the target does not get an index or a check; without it, it accepts more."""

    reason: str


@dataclass(frozen=True, slots=True)
class FittedColumn:
    """A column as the target can have it.

    Attributes:
        notes: How it differs from the shards' definition, as parts of a sentence.
    """

    column: Column
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """What a dialect must know about the table to fit a column.

    Attributes:
        key: ``primary`` when the primary key names it, ``unique`` when only unique indexes do,
            else "".
        optional: Whether rows may leave the column out.
        previous: The column as the target has it; None for a new one.
        is_new_table: Whether the target's table does not exist yet.
        collations: The default collations of utf8mb4 on the shards' servers; empty when they are
            not known.
        was_key: Whether a primary key or a unique index of the target names it already.
    """

    key: str = ""
    optional: bool = False
    previous: Column | None = None
    is_new_table: bool = False
    collations: frozenset[str] = frozenset()
    was_key: bool = False


@dataclass(frozen=True, slots=True)
class Rendered:
    """One statement for the target: what it does, and its canonical text."""

    sql: str
    actions: tuple[Action, ...]


Rendering: TypeAlias = tuple[Rendered, ...] | CannotRender
"""Statements in execution order, none when nothing changes; or why it cannot be done."""


class Dialect(Protocol):
    """One kind and version of target server.

    The methods with a body hold for most kinds; a kind inherits or overrides them.
    """

    __slots__ = ()

    @property
    def name(self) -> str:
        """Kind and version, as people write them."""
        ...

    def zero_value(self, kind: ColumnType) -> Default | None:
        """The type's zero value as a default; None when the server takes no such default."""
        ...

    def fit_column(self, column: Column, place: Place) -> FittedColumn | CannotRender:
        """The column as the target can have it."""
        ...

    def fit_index(self, index: Index, schema: TableSchema) -> Index | LeftOut:
        """The index as the target can have it; ``schema`` holds the fitted columns."""
        ...

    def fit_check(self, check: Check) -> Check | LeftOut:
        """The check as the target can have it."""
        ...

    def refusal(self, schema: TableSchema, *, has_key: bool) -> CannotRender | None:
        """Why the target cannot have the table as a whole; None if it can.

        Args:
            schema: The table, made of fitted parts.
            has_key: Whether the shards have a primary key.
        """
        ...

    def row_value(self, fill: str, column: Column) -> str | None:
        """The SQL literal of a fill (``added_column_values.fill_text``) in a column of the target.

        None when there is none, or when a comparison may not find the literal's rows again.
        """
        ...

    def has_value(self, column: Column, literal: str) -> str:
        """The condition that a row already has a literal (``row_value``), compared byte by byte."""
        ...

    def create_table(self, table: TargetTable, schema: TableSchema) -> Rendering:
        """Create the table with everything in it."""
        ...

    @property
    def computes(self) -> bool:
        """Whether the target computes columns and evaluates checks."""
        return True

    def reorders(self, joined: ColumnType, fitted: ColumnType, collations: frozenset[str]) -> bool:
        """Whether other texts may be equal, or less than others, in the target than on shards.

        Args:
            joined: A column's type as it is joined.
            fitted: The same as the target has it.
            collations: See ``Place``.
        """
        return False

    def stored_otherwise(self, expression: str) -> str:
        """Why the target computes something else of an expression; "" when it does not."""
        return ""

    @property
    def shares_check_names(self) -> bool:
        """Whether the names of checks must differ between the tables of a database."""
        return False

    @property
    def fixes_named_columns(self) -> bool:
        """Whether a computed column must be dropped before it or a column that it names changes."""
        return False

    def needs_no_index(self, before: ColumnType, after: ColumnType) -> bool:
        """Whether a column can change its type only while no secondary index names it."""
        return False

    def set_default_charset(
        self, table: TargetTable, charset: str, collation: str, *, before: str = ""
    ) -> Rendering:
        """Change the table's default charset; no statement when the server cannot change it.

        Args:
            table: The target.
            charset: The new default charset.
            collation: The new default collation.
            before: The table's current default charset.
        """
        ...

    def add_column(self, table: TargetTable, column: Column) -> Rendering:
        """Add one column at the end."""
        ...

    def drop_column(self, table: TargetTable, column: Column) -> Rendering:
        """Drop one column, under its current name."""
        ...

    def rename_column(self, table: TargetTable, column: Column, to: str) -> Rendering:
        """Rename one column; ``column`` is its whole current definition."""
        ...

    def change_column(
        self, table: TargetTable, before: Column, after: Column, *, in_key: bool
    ) -> Rendering:
        """Change a definition; both definitions have the column's current name.

        Args:
            table: The target.
            before: The current definition.
            after: The new definition.
            in_key: Whether the primary key names the column.
        """
        ...

    def add_index(self, table: TargetTable, index: Index) -> Rendering:
        """Add one secondary index."""
        ...

    def drop_index(self, table: TargetTable, index: Index) -> Rendering:
        """Drop one secondary index."""
        ...

    def add_check(self, table: TargetTable, check: Check) -> Rendering:
        """Add one check."""
        ...

    def drop_check(self, table: TargetTable, check: Check) -> Rendering:
        """Drop one check."""
        ...

    def change_primary_key(
        self, table: TargetTable, before: Index | None, after: Index | None
    ) -> Rendering:
        """Replace the primary key; each of the two may be None."""
        ...
