"""From a join to the schema that the target's table must have."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from .events import ShardColumn
from .joined import JoinedColumn, JoinedTable
from .model import Check, Column, Default, DefaultKind, Index, IndexKind, IndexPart, TableSchema
from .zero_values import zero_value

NULL_DEFAULT = Default(DefaultKind.NULL)
_MAX_TABLE_CHARACTERS = 64 - len("_chk_4294967295")


@dataclass(frozen=True, slots=True)
class TargetSchema:
    """What the target's table must look like.

    Attributes:
        schema: The table; its columns are those of ``columns``.
        columns: With identities, in the target's order.
        ours: Identities whose default is a zero value that no shard has.
    """

    schema: TableSchema
    columns: tuple[ShardColumn, ...]
    ours: frozenset[str] = field(default=frozenset())


def target_schema(
    joined: JoinedTable,
    previous: Sequence[ShardColumn] = (),
    table: str = "",
    *,
    checks: bool = True,
) -> TargetSchema:
    """The schema that the target's table must have for a join.

    * A NOT NULL column that a row may leave out gets its type's zero value as default.
    * The target never makes up ids: AUTO_INCREMENT is dropped, rows bring their own.
    * Foreign keys are left out: they name tables of a source, and rows of two targets arrive in
      no common order.
    * A check whose name the servers made up is named by its text, so that it keeps its name
      whichever shards come and go.

    Args:
        joined: See ``lattice.join_all``.
        previous: The target's columns before, in the table's order; they keep their places, new
            columns follow in the order in which the first shard has them.
        table: The target table's name, part of made-up check names (they are unique in a
            database).
        checks: Whether the target keeps CHECK constraints (MySQL 8.0.16 and later).
    """
    columns = {c.id: c for c in joined.columns if c.is_in_target}
    kept = [c.id for c in previous if c.id in columns]
    added = [i for i in joined.order if i in columns and i not in set(kept)]
    placed = tuple(ShardColumn(i, _target_column(columns[i])) for i in (*kept, *added))
    key = tuple(IndexPart(columns[i].column.name, length=n or None) for i, n in joined.key)
    schema = TableSchema(
        columns=tuple(c.column for c in placed),
        indexes=(*([Index("PRIMARY", IndexKind.PRIMARY, key)] if key else []), *joined.indexes),
        checks=tuple(_named(check, table) for check in joined.checks) if checks else (),
        charset=joined.charset,
        collation=joined.collation,
    )
    ours = frozenset(c.id for c in columns.values() if c.needs_zero_value)
    return TargetSchema(schema, placed, ours)


def _target_column(joined: JoinedColumn) -> Column:
    column = joined.column
    if joined.needs_zero_value:
        return replace(column, default=zero_value(column.type))
    if column.nullable and column.default is None and column.generated is None:
        return replace(column, default=NULL_DEFAULT)
    return column


def _named(check: Check, table: str) -> Check:
    if check.name:
        return check
    # The form of MySQL's own made-up names, so that it counts as one of them when read back.
    number = zlib.crc32(check.expression.encode())
    return replace(check, name=f"{table[:_MAX_TABLE_CHARACTERS] or 't'}_chk_{number}")
