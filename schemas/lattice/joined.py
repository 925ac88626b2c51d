"""The values of the semilattice: a shard's schema, a joined table, a conflict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shardmerge.schemas.model.frozen import Hashed, hashed_once, made_at_once, replace
from shardmerge.schemas.model.origin import origin_part
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import (
    Check,
    Column,
    Default,
    ForeignKey,
    Generated,
    Index,
    TableSchema,
)
from shardmerge.schemas.model.types import ColumnType

from .type_join import value_type


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two schemas have no join. A result, not an error: it is stored, shown and resolved.

    Attributes:
        path: What conflicts, from outside in, such as ``("column c", "type")``.
        left, right: Both sides, as people write them; ``left`` is the one that sorts first, so the
            order of the shards does not matter.
        reason: Why they have no join.
        resolve: What would end the conflict.
        code: The reason's code in ``schemas.codes``.
    """

    path: tuple[str, ...]
    left: str
    right: str
    reason: str
    resolve: str
    code: str

    def __str__(self) -> str:
        return f"{', '.join(self.path)}: {self.left} and {self.right}: {self.reason}"


@hashed_once
@dataclass(frozen=True, slots=True)
class ShardSchema(Hashed):
    """A shard's schema with the identity of each column.

    Attributes:
        schema: The schema, with the shard's own names.
        ids: The identities, one per column of ``schema``, in column order; unique without regard to
            case.
    """

    schema: TableSchema
    ids: tuple[str, ...]
    _columns: tuple[ShardColumn, ...] | None = field(
        default=None, init=False, repr=False, compare=False
    )
    _own_columns: tuple[ShardColumn, ...] | None = field(
        default=None, init=False, repr=False, compare=False
    )
    _by_name: Mapping[str, str] | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def columns(self) -> tuple[ShardColumn, ...]:
        """The columns with their identities, in column order; made once."""
        if self._columns is None:
            made = tuple(map(ShardColumn, self.ids, self.schema.columns))
            object.__setattr__(self, "_columns", made)
        assert self._columns is not None
        return self._columns

    @property
    def own_columns(self) -> tuple[ShardColumn, ...]:
        """The columns without origin columns; made once."""
        if self._own_columns is None:
            made = self.columns
            if any(origin_part(column_id) is not None for column_id in self.ids):
                made = tuple(column for column in made if origin_part(column.id) is None)
            object.__setattr__(self, "_own_columns", made)
        assert self._own_columns is not None
        return self._own_columns

    @property
    def by_name(self) -> Mapping[str, str]:
        """Column name in lower case → identity, in column order; made once."""
        if self._by_name is None:
            pairs = zip(self.ids, self.schema.columns, strict=True)
            made = {column.name.lower(): column_id for column_id, column in pairs}
            object.__setattr__(self, "_by_name", made)
        assert self._by_name is not None
        return self._by_name


def name_at_birth(column_id: str) -> str:
    """The name that a column had when it was added; "" for an origin column."""
    return column_id.rpartition("#")[0]


@dataclass(frozen=True, slots=True)
class JoinedColumn:
    """A column of the join.

    Attributes:
        id: The column's identity.
        column: The joined definition, under the column's name in the target. ``default`` None is
            "unset", which is below every default (NULL counts as unset). ``generated`` is set when
            every shard that has the column computes it.
        partial: Whether a shard lacks it.
        derived: Whether one shard computes it and another one does not, or every shard computes it
            of values that are not the same in the target (``formula``).
        converted: Whether a value of some shard does not read alike in the joined type.
        formula: How every shard computes it, when the target does not.
    """

    id: str
    column: Column
    partial: bool
    derived: bool = False
    converted: bool = False
    formula: Generated | None = None

    @property
    def is_in_target(self) -> bool:
        """Whether the target has the column.

        The target does not have a generated column that a shard lacks: a table without the column
        accepts more rows.
        """
        return self.column.generated is None or not self.partial

    @property
    def is_optional(self) -> bool:
        """Whether a row may leave it out."""
        column = self.column
        return self.partial or self.derived or column.nullable or column.default is not None

    @property
    def needs_zero_value(self) -> bool:
        """Whether rows leave the column out, and need a default that no shard has."""
        column = self.column
        unset = not column.nullable and column.default is None and column.generated is None
        return unset and (self.partial or self.derived)

    @property
    def value(self) -> ColumnValue:
        """What the order of the semilattice looks at."""
        column = self.column
        return ColumnValue(
            value_type(column.type),
            column.nullable,
            column.default,
            column.on_update,
            column.generated.expression if column.generated else "",
            column.generated.stored if column.generated else False,
            self.is_optional,
        )


@dataclass(frozen=True, slots=True)
class ColumnValue:
    """A joined column without what the order does not look at (see ``JoinedColumn``)."""

    type: ColumnType
    nullable: bool
    default: Default | None
    on_update: str
    expression: str
    stored: bool
    optional: bool


@made_at_once
@dataclass(frozen=True, slots=True)
class JoinedTable:
    """The join of shards' schemas. It is the same value whatever the order of the shards.

    Attributes:
        columns: Sorted by identity, including those that the target does not have.
        key: Identities of the primary key's columns with prefix lengths (0: the whole column), in
            key order; empty without a primary key.
        indexes: Secondary indexes that every shard has, in the target's names, sorted by name.
        checks: Checks that every shard has, in the target's names, sorted; the name is "" when the
            servers made it up.
        foreign_keys: Foreign keys that every shard has, sorted.
        order: Identities in the order in which columns are added to the target.
        charset, collation: The target's default for columns. They are not part of the value: each
            column names its own.
        unsteady: Checks, and indexes of expressions, that every shard has, and that the join does
            without: a value that passes one on its shard may not pass it in the joined type.
    """

    columns: tuple[JoinedColumn, ...]
    key: tuple[tuple[str, int], ...]
    indexes: tuple[Index, ...]
    checks: tuple[Check, ...]
    foreign_keys: tuple[ForeignKey, ...]
    order: tuple[str, ...] = field(compare=False)
    charset: str = field(compare=False)
    collation: str = field(compare=False)
    unsteady: tuple[Check | Index, ...] = ()

    def column(self, column_id: str) -> JoinedColumn | None:
        """The column with that identity; None when there is none."""
        return next((c for c in self.columns if c.id == column_id), None)

    @property
    def value(self) -> TableValue:
        """What the order of the semilattice looks at."""
        return TableValue(
            tuple((c.id, c.value) for c in self.columns if c.is_in_target),
            self.key,
            tuple(replace(i, name=i.name.lower()) for i in self.indexes),
            tuple(replace(c, name=c.name.lower()) for c in self.checks),
            self.foreign_keys,
        )


@dataclass(frozen=True, slots=True)
class TableValue:
    """A joined table without what the order does not look at (see ``JoinedTable``)."""

    columns: tuple[tuple[str, ColumnValue], ...]
    key: tuple[tuple[str, int], ...]
    indexes: tuple[Index, ...]
    checks: tuple[Check, ...]
    foreign_keys: tuple[ForeignKey, ...]
