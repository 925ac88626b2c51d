"""Loads and gates for the tests of this room."""

from __future__ import annotations

from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import BEGINNING, SourcePosition
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import Column
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.records.decisions import Outcome
from shardmerge.spark_sink.barrier.shard_gates import Gate, ShardGates
from shardmerge.spark_sink.loading.load_state import Load, LoadKind

SHARD, TARGET = ShardId("s1", "app", "t"), TargetTable("merged", "t")


def at(pos: int) -> SourcePosition:
    return SourcePosition(0, "binlog.000001", pos, 0)


def load(kind: LoadKind = LoadKind.CHUNKS, *boundaries: str, shard: ShardId = SHARD) -> Load:
    """A load at version 1, cut into chunks."""
    return Load(shard, TARGET, 1, kind, 1).plan(*((edge,) for edge in boundaries))


def done(load: Load, *numbers: int, before: int = 100, rows: int = 10) -> Load:
    """The load when some of its chunks are done; ``before``: see ``Chunk.read_before``."""
    for number in numbers:
        load = load.begin(number).finish(number, rows, 0, at(before))
    return load


def gates(*positions: int, dropped: int = 0, key: str = "id", new_key: int = 0) -> ShardGates:
    """The gate of the description, and one at each position, with versions from 1 on.

    Args:
        positions: Of the gates behind the first one.
        dropped: The position at which the table is dropped; 0 for never.
        key: The key's column.
        new_key: The position from which on the key is a BIGINT; 0 for never.
    """
    found = ShardGates(SHARD)
    for version, place in enumerate((BEGINNING, *map(at, positions)), 1):
        kind = "bigint" if new_key and place >= at(new_key) else "int"
        columns = (ShardColumn(f"{key}#1", Column(key, ColumnType(kind))),)
        live = not dropped or place != at(dropped)
        found.append(
            Gate(version, place, Outcome.EMIT, columns if live else (), (key,), live, version)
        )
    return found
