"""The values of the semilattice: what is joined, what a join is, what a conflict is."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import Check, Column, Default, ForeignKey, Index, TableSchema
from shardmerge.schemas.model.types import ColumnType

from .type_join import value_type


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two schemas have no join. A result, not an error: it is stored, shown and resolved.

    Attributes:
        path: Where, from outside in, such as ``("column c", "type")``.
        left, right: Both sides, as people write them; ``left`` sorts first, whatever the order
            of the shards.
        reason: Why they have no join.
        resolve: What would end the conflict.
    """

    path: tuple[str, ...]
    left: str
    right: str
    reason: str
    resolve: str

    def __str__(self) -> str:
        return f"{', '.join(self.path)}: {self.left} and {self.right}: {self.reason}"


@dataclass(frozen=True, slots=True)
class ShardSchema:
    """A shard's schema with the identity of each column.

    Attributes:
        schema: Names in it are the shard's own.
        ids: One per column of ``schema``, in column order; unique without regard to case.
    """

    schema: TableSchema
    ids: tuple[str, ...]
    _hash: int | None = field(default=None, init=False, repr=False, compare=False)

    def __hash__(self) -> int:
        """Computed once: the hash of a table is that of everything in it."""
        if self._hash is None:
            object.__setattr__(self, "_hash", hash((self.schema, self.ids)))
        assert self._hash is not None
        return self._hash

    @property
    def columns(self) -> tuple[ShardColumn, ...]:
        """The columns with their identities, in column order."""
        return tuple(map(ShardColumn, self.ids, self.schema.columns))

    @property
    def by_name(self) -> dict[str, str]:
        """Column name in lower case → identity, in column order."""
        return {
            column.name.lower(): column_id
            for column_id, column in zip(self.ids, self.schema.columns, strict=True)
        }


def name_at_birth(column_id: str) -> str:
    """The name with which the column of an identity came; "" for an origin column's."""
    return column_id.rpartition("#")[0]


@dataclass(frozen=True, slots=True)
class JoinedColumn:
    """A column of the join.

    Attributes:
        column: Under its name in the target. ``default`` None is "unset", which is below every
            default (NULL counts as unset); ``generated`` is set when every shard that has the
            column computes it.
        partial: Whether a shard lacks it.
        derived: Whether a shard computes it.
    """

    id: str
    column: Column
    partial: bool
    derived: bool = False

    @property
    def is_in_target(self) -> bool:
        """A generated column that a shard lacks is left out: missing is more compatible."""
        return self.column.generated is None or not self.partial

    @property
    def is_optional(self) -> bool:
        """Whether a row may leave it out."""
        column = self.column
        return self.partial or self.derived or column.nullable or column.default is not None

    @property
    def needs_zero_value(self) -> bool:
        """Whether only a default of our own lets rows leave it out."""
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


@dataclass(frozen=True, slots=True)
class JoinedTable:
    """The join of shards' schemas. Equal joins are equal values, in whatever order they came.

    Attributes:
        columns: Sorted by identity; also those that the target leaves out.
        key: Identities of the primary key's columns with prefix lengths (0: whole), in key
            order; empty without one.
        indexes: Those of every shard but the primary key, in the target's names, by name.
        checks: Those of every shard, in the target's names, sorted; the name is "" when the
            servers made it up.
        foreign_keys: Those of every shard, sorted.
        order: Identities in the order in which columns come into the target.
        charset, collation: The target's default for columns, not part of the value: each
            column says its own.
    """

    columns: tuple[JoinedColumn, ...]
    key: tuple[tuple[str, int], ...]
    indexes: tuple[Index, ...]
    checks: tuple[Check, ...]
    foreign_keys: tuple[ForeignKey, ...]
    order: tuple[str, ...] = field(compare=False)
    charset: str = field(compare=False)
    collation: str = field(compare=False)

    def column(self, column_id: str) -> JoinedColumn | None:
        """The column of that identity."""
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
