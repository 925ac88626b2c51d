"""The table that a target must be, given the join of its shards' schemas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .events import ShardColumn
from .lattice import JoinedColumn, JoinedTable
from .model import Column, Default, DefaultKind, Index, IndexKind, IndexPart, TableSchema
from .zero_values import zero_value


@dataclass(frozen=True, slots=True)
class TargetSchema:
    """A target's schema: the table, and its columns with identities in the same order."""

    schema: TableSchema
    columns: tuple[ShardColumn, ...]


def target_schema(joined: JoinedTable, previous: Sequence[ShardColumn] = ()) -> TargetSchema:
    """The table that accepts exactly the join's rows.

    A column that some shard lacks gets its type's zero value as default if it is NOT NULL and no
    shard gives it one (where a type has none, the column becomes nullable: it accepts more).
    The target never counts (AUTO_INCREMENT) and has no foreign keys: its rows come with every
    value, in another order than the parents' rows. Checks are left out as well: they would
    accept less, and which of them a target can express is its own question.

    Args:
        previous: The target's columns so far: their order is kept, new ones come after.
    """
    by_id = {column.id: column for column in joined.columns}
    ordered = dict.fromkeys([c.id for c in previous if c.id in by_id])
    ordered.update(dict.fromkeys(joined.order))
    key = {column_id for column_id, _ in joined.key}
    columns = tuple(
        ShardColumn(column_id, _target_column(by_id[column_id], in_key=column_id in key))
        for column_id in ordered
    )
    indexes: tuple[Index, ...] = joined.indexes
    if joined.key:
        parts = tuple(
            IndexPart(by_id[column_id].column.name, length=length or None)
            for column_id, length in joined.key
        )
        indexes = (Index("PRIMARY", IndexKind.PRIMARY, parts), *indexes)
    return TargetSchema(
        TableSchema(tuple(c.column for c in columns), indexes, charset=joined.charset), columns
    )


def _target_column(joined: JoinedColumn, *, in_key: bool) -> Column:
    column = joined.column
    if in_key or column.generated is not None:
        return column
    if joined.partial and not column.nullable and column.default is None:
        zero = zero_value(column.type)
        if zero is None:
            return replace(column, nullable=True, default=Default(DefaultKind.NULL))
        return replace(column, default=zero)
    if column.nullable and column.default is None:
        return replace(column, default=Default(DefaultKind.NULL))
    return column
