"""A shard's schema with the target's origin columns, as the join takes it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.origin import (
    Origin,
    OriginColumn,
    OriginPart,
    origin_part,
    without_origin,
)
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import Column, Index, IndexKind, IndexPart, TableSchema

from .joined import ShardSchema


def with_origin(schema: ShardSchema, origin: Origin) -> ShardSchema:
    """The schema with the origin columns that it lacks; with ``in_keys``, also in its unique keys.

    Only a schema without a primary key gets the position, as its primary key. When the shard itself
    has a column with the name of an origin column, that origin column is not added: such a schema
    cannot be joined (``target_moves.join_target``).
    """
    if not origin.columns:
        return schema
    table = schema.schema
    wanted = origin.columns if table.primary_key is None else origin.of_shard
    missing = [
        column
        for column in wanted
        if column.column_id not in schema.ids and table.column(column.name) is None
    ]
    if not missing:
        return schema
    shard = [IndexPart(c.name) for c in missing if c.part is not OriginPart.POSITION]
    indexes = [_extended(index, shard if origin.in_keys else ()) for index in table.indexes]
    place = [IndexPart(c.name) for c in missing if c.part is OriginPart.POSITION]
    if place:
        indexes.insert(0, Index("PRIMARY", IndexKind.PRIMARY, tuple(place)))
    table = replace(table, columns=(*table.columns, *map(_column, missing)), indexes=tuple(indexes))
    return ShardSchema(table, (*schema.ids, *(c.column_id for c in missing)))


def having_origin(schema: ShardSchema, origin: Origin) -> ShardSchema:
    """The schema with these origin columns instead of those that it has."""
    own = ShardSchema(own_schema(schema), tuple(without_origin(schema.ids)))
    return with_origin(own, origin)


def row_columns(
    columns: Sequence[ShardColumn], key: Sequence[str], origin: Origin
) -> tuple[tuple[ShardColumn, ...], tuple[str, ...]]:
    """A shard's columns and key as ``having_origin`` gives them.

    Args:
        columns: The columns with which its rows are written; none if they are not known.
        key: The names of its primary key's columns.
        origin: The origin columns that the rows get.
    """
    if not columns:
        return (), tuple(key)
    foreign = {item.column.name for item in columns if origin_part(item.id) is not None}
    own = of_shard(tuple(columns))
    names = {item.column.name.lower() for item in own}
    own_key = tuple(name for name in key if name not in foreign)
    added = [
        column
        for column in (origin.of_shard if own_key else origin.columns)
        if column.name.lower() not in names
    ]
    places = [column.name for column in added if column.part is OriginPart.POSITION]
    ends = [c.name for c in added if c.part is not OriginPart.POSITION] if origin.in_keys else []
    new_key = (*own_key, *ends) if own_key else tuple(places)
    made = (ShardColumn(column.column_id, _column(column)) for column in added)
    return (*own, *made), new_key


def own_schema(schema: ShardSchema) -> TableSchema:
    """The schema that the shard itself has: what ``with_origin`` added is removed."""
    foreign = {c.column.name.lower() for c in schema.columns if origin_part(c.id) is not None}
    if not foreign:
        return schema.schema
    table = schema.schema
    shortened = [
        replace(index, parts=tuple(p for p in index.parts if p.column.lower() not in foreign))
        for index in table.indexes
    ]
    return replace(
        table,
        columns=tuple(c for c in table.columns if c.name.lower() not in foreign),
        indexes=tuple(index for index in shortened if index.parts),
    )


def of_shard(columns: tuple[ShardColumn, ...]) -> tuple[ShardColumn, ...]:
    """The columns that the shard itself has."""
    return tuple(column for column in columns if origin_part(column.id) is None)


def _extended(index: Index, parts: Sequence[IndexPart]) -> Index:
    return replace(index, parts=(*index.parts, *parts)) if index.is_unique else index


def _column(column: OriginColumn) -> Column:
    return Column(column.name, column.column_type, nullable=False)
