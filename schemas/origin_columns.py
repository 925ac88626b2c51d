"""The schema that a shard counts with when its target has origin columns. Pure."""

from __future__ import annotations

from dataclasses import replace

from .events import ShardColumn
from .joined import ShardSchema
from .model import Column, Index, IndexPart
from .origin import Origin, OriginColumn, origin_part
from .types import ColumnType


def with_origin(schema: ShardSchema, origin: Origin) -> ShardSchema:
    """The schema with the origin columns that it lacks, and, if wanted, with them in its keys.

    One whose name the shard has for a column of its own is left out: such a schema cannot be joined
    (``moves.join_target``).
    """
    missing = [
        column
        for column in origin.columns
        if column.part.column_id not in schema.ids and schema.schema.column(column.name) is None
    ]
    if not missing:
        return schema
    table = schema.schema
    parts = tuple(IndexPart(column.name) for column in missing) if origin.in_keys else ()
    table = replace(
        table,
        columns=(*table.columns, *map(_column, missing)),
        indexes=tuple(_extended(index, parts) for index in table.indexes),
    )
    return ShardSchema(table, (*schema.ids, *(c.part.column_id for c in missing)))


def of_shard(columns: tuple[ShardColumn, ...]) -> tuple[ShardColumn, ...]:
    """The columns that the shard itself has."""
    return tuple(column for column in columns if origin_part(column.id) is None)


def _extended(index: Index, parts: tuple[IndexPart, ...]) -> Index:
    return replace(index, parts=(*index.parts, *parts)) if index.is_unique else index


def _column(column: OriginColumn) -> Column:
    # Compared byte by byte: tables `t` and `T` are two.
    kind = ColumnType("varchar", column.part.characters, charset="utf8mb4", collation="utf8mb4_bin")
    return Column(column.name, kind, nullable=False)
