"""Columns of shards that a route leaves out: the target never has them. Pure."""

from __future__ import annotations

from shardmerge.schemas.ddl.expressions import column_names
from shardmerge.schemas.model.errors import UnsupportedDDL
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.names import matches
from shardmerge.schemas.model.shard_columns import Lineage
from shardmerge.schemas.model.tables import Check, Column, ForeignKey, Index, TableSchema


def without_columns(schema: TableSchema, pattern: str) -> TableSchema:
    """A schema without the columns that match the pattern.

    Indexes, checks and foreign keys that name such a column are left out too: then the target
    accepts more.

    Args:
        schema: A shard's schema.
        pattern: Regular expression for whole column names, without regard to case; "" leaves out
            nothing.

    Raises:
        UnsupportedDDL: The primary key, or a generated column that stays, needs such a column.
    """
    gone = _left_out(schema, pattern)
    if not gone:
        return schema
    key = schema.primary_key
    if key is not None and not gone.isdisjoint(columns_named(key)):
        raise UnsupportedDDL(
            f"the primary key needs a column that the route leaves out ({', '.join(sorted(gone))})",
            hint="let leave_out not match the columns of the primary key",
            code="SM-1110",
        )
    kept = tuple(c for c in schema.columns if c.name.lower() not in gone)
    for column in kept:
        if used := gone & columns_named(column):
            raise UnsupportedDDL(
                f"{column.name} is computed from {', '.join(sorted(used))}, which the route leaves "
                "out",
                hint=f"leave out {column.name} too",
                code="SM-1111",
            )
    return replace(
        schema,
        columns=kept,
        indexes=tuple(i for i in schema.indexes if gone.isdisjoint(columns_named(i))),
        checks=tuple(c for c in schema.checks if gone.isdisjoint(columns_named(c))),
        foreign_keys=tuple(k for k in schema.foreign_keys if gone.isdisjoint(columns_named(k))),
    )


def columns_named(part: Column | Index | Check | ForeignKey) -> frozenset[str]:
    """The columns, in lower case, that a part of a table needs.

    For a foreign key these are columns of its own table; for a column, the columns that it is
    computed from.
    """
    match part:
        case Column():
            names = column_names(part.generated.expression) if part.generated else ()
        case Index():
            named = (name for p in part.parts for name in column_names(p.expression))
            names = (*part.columns, *named)
        case Check():
            names = column_names(part.expression)
        case ForeignKey():
            names = part.columns
    return frozenset(name.lower() for name in names)


def lineage_without(
    lineage: tuple[Lineage, ...], before: TableSchema | None, after: TableSchema | None
) -> tuple[Lineage, ...]:
    """The lineage of the columns that are not left out.

    Args:
        lineage: The lineage with all columns.
        before: The schema before the change, without the columns that are left out.
        after: The schema after the change, likewise.

    Raises:
        UnsupportedDDL: The change renamed a column that is left out to a name that is not.
    """
    if before is None or after is None:
        return ()
    found = tuple(entry for entry in lineage if after.column(entry.name) is not None)
    for entry in found:
        if entry.before and before.column(entry.before) is None:
            raise UnsupportedDDL(
                f"{entry.before}, which the route leaves out, was renamed to {entry.name}",
                hint="rename it back, then add a column of that name",
                code="SM-1112",
            )
    return found


def is_left_out(column: str, pattern: str) -> bool:
    """Whether a route leaves out a column of that name; ``pattern`` is its ``leave_out``."""
    return bool(pattern) and matches(pattern, column)


def _left_out(schema: TableSchema, pattern: str) -> frozenset[str]:
    return frozenset(c.name.lower() for c in schema.columns if is_left_out(c.name, pattern))
