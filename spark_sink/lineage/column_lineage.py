"""Which columns of shards a target's column gets its values from, as OpenLineage's facet. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from openlineage.client.generated.column_lineage_dataset import (
    ColumnLineageDatasetFacet,
    Fields,
    InputField,
    Transformation,
)

from shardmerge.schemas.model.mysql_text import column_type
from shardmerge.schemas.model.tables import Column

from .dataset_names import DatasetName, DatasetNames
from .reports import ShardFeed, TargetTableNow

_CONDITION = Transformation("INDIRECT", "FILTER", masking=False)


def column_lineage(
    table: TargetTableNow,
    feeds: Iterable[ShardFeed],
    names: DatasetNames,
    filters: Iterable[tuple[ShardFeed, tuple[str, ...]]] = (),
    producer: str = "",
) -> ColumnLineageDatasetFacet:
    """The facet for these shards.

    A target's column that no shard feeds is there without inputs: an origin column, which holds
    the shard's name, a generated column, and one that no shard of ``feeds`` has.

    Args:
        table: The target's table.
        feeds: What the shards feed it with.
        names: How the shards' tables are named.
        filters: Shards with the columns on which the condition of their route depends.
        producer: Who says so, a URI.
    """
    columns = {column.name: column for column in table.columns}
    inputs: dict[str, list[InputField]] = {name: [] for name in columns}
    for feed in feeds:
        place = names.of_shard(feed.shard)
        for item in feed.columns:
            name = table.names.get(item.id)
            if not item.id or item.id.startswith("@") or item.id in feed.left_out or name is None:
                continue
            how = _transformation(item.column, columns.get(name))
            inputs.setdefault(name, []).append(_field(place, item.column.name, how))
    return ColumnLineageDatasetFacet(
        {name: Fields(found) for name, found in inputs.items()},
        [
            _field(names.of_shard(feed.shard), column, _CONDITION)
            for feed, columns_ in filters
            for column in columns_
        ],
        producer=producer,
    )


def _field(place: DatasetName, column: str, how: Transformation) -> InputField:
    return InputField(place.namespace, place.name, column, [how])


def _transformation(column: Column, target: Column | None) -> Transformation:
    """Values go over as they are; under another type the same values have another form."""
    before = column_type(column.type)
    after = before if target is None else column_type(target.type)
    if before == after:
        return Transformation("DIRECT", "IDENTITY", masking=False)
    return Transformation("DIRECT", "TRANSFORMATION", f"{before} as {after}", masking=False)
