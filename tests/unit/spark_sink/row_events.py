"""Streams and row events of one shard, and what their fold gives."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import BEGINNING, SourcePosition
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import Column
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.records.decisions import Binding
from shardmerge.spark_sink.planning.ranges import Segment, ShardStream
from shardmerge.spark_sink.rows.folding.keyless import KeylessBatch
from shardmerge.spark_sink.rows.folding.row_batches import Batch
from shardmerge.spark_sink.rows.folding.row_blocks import Block
from shardmerge.spark_sink.rows.folding.row_fold import RowFold
from shardmerge.spark_sink.rows.values.readers import reader
from shardmerge.spark_sink.targets.mysql.lines.encoders import cells_of, limits_of

SHARD = ShardId("s1", "app", "t")
INT, TEXT = ColumnType("int"), ColumnType("varchar", 20)


def at(pos: int, row: int = 0, file: int = 1, epoch: int = 0) -> SourcePosition:
    return SourcePosition(epoch, f"binlog.{file:06d}", pos, row)


def segment(
    start: SourcePosition = BEGINNING, /, key: str = "id", live: bool = True, **columns: Any
):
    """``name=type`` or ``name=(identity, type)``."""
    shard_columns = tuple(
        ShardColumn(*((f"{name}#1", Column(name, spec)) if isinstance(spec, ColumnType)
                      else (spec[0], Column(name, spec[1]))))
        for name, spec in columns.items()
    )  # fmt: skip
    return Segment(start, shard_columns, tuple(key.split()), live)


def fold(*segments: Segment, stop: SourcePosition | None = None, unbound: str = "", **options: Any):
    bindings = {
        c.id: Binding(c.id, c.id.partition("#")[0])
        for s in segments
        for c in s.columns
        if c.id != unbound
    }
    bindings.update(options.pop("bindings", {}))
    stream = ShardStream(
        SHARD, TargetTable("m", "t"), segments, stop, where=options.pop("where", "")
    )
    return RowFold(stream, bindings, **options)


def row(
    op: str, image: object, place: SourcePosition, table: str = "t", before: object = None
) -> bytes:
    """A record's value; the epoch is written as the connector writes it."""
    source = {
        "name": "s1", "db": "app", "table": table,
        "file": place.file, "pos": place.pos, "row": place.row,
    }  # fmt: skip
    side = "before" if op == "d" else "after"
    envelope = {"op": op, "before": before, side: image, "source": source}
    if place.epoch:
        envelope["shardmerge_epoch"] = str(place.epoch)
    return json.dumps(envelope).encode()


def marked(value: bytes) -> bytes:
    """A row event, whoever read it, as Debezium writes it while an incremental snapshot runs."""
    return value.replace(b'"source": {', b'"source": {"snapshot": "incremental", ', 1)


def rows_of(block: Block | None) -> list[dict[str, str | None]]:
    if block is None:
        return []
    return [dict(zip(block.names, row, strict=True)) for row in zip(*texts_of(block), strict=True)]


def texts_of(block: Block) -> list[list[str | None]]:
    """The values of a block, column by column, as texts for a MySQL target."""
    columns = zip(block.forms, block.values, strict=True)
    return [[*cells_of(form, values, None in values)] for form, values in columns]


def mysql_texts(kind: ColumnType, values: Sequence[object]) -> list[str | None]:
    """Values of a column as Debezium's JSON has them → texts for a MySQL target."""
    column = reader(kind, check=limits_of(kind))
    return [*cells_of(column.form, column.read(values), None in values)]


def only(batches: list[Batch | KeylessBatch]) -> Batch:
    (batch,) = batches
    assert isinstance(batch, Batch)
    return batch


def from_where(key: str = "id _from") -> Segment:
    """A segment whose target has the origin column ``_from``."""
    plain = segment(key=key, id=INT, v=TEXT)
    text = Column("_from", ColumnType("varchar", 194), nullable=False)
    found: Segment = replace(plain, columns=(*plain.columns, ShardColumn("@shard", text)))
    return found
