"""Which decisions order a shard to be loaded. Pure.

Which they are follows from the shard's gates and the pipeline file, so no record has to say it.

* The first decision about a shard orders that its rows are read. A table that was created while the
  connector ran has few rows then, or none. It is read like any other: the argument of
  ``load_rules`` holds for every table.
* The first decision does not order this for a shard whose rows came by Debezium's snapshot, before
  the pipeline file said otherwise. Rows of its topic are applied already.
* A connector that describes its tables anew begins at another position. What happened between the
  old position and the new one is in no stream. So each such description orders that the shard is
  read anew. Its earlier rows are removed first (``barrier.restarts``).
* An operator can order it (``FixupKind.LOAD``). The shard's rows are removed first, too. A reload
  of another kind is read by Debezium.
"""

from __future__ import annotations

from dataclasses import replace

from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.spark_sink.barrier.applied import LoadPlace, RowProgress
from shardmerge.spark_sink.barrier.shard_gates import ShardGates

from .load_rules import base_index
from .load_state import Load, LoadKind


def load_orders(gates: ShardGates, latest: Load | None, rows: RowProgress) -> tuple[int, ...]:
    """The versions of the decisions that order a shard to be loaded, in order.

    Args:
        gates: Of the shard.
        latest: Its latest load.
        rows: How far rows are applied.
    """
    anew = [gates.gates[index] for index in gates.restarts]
    found = [gate.version for gate in anew if gate.loads or not gate.reloads]
    came = any(rows.at(partition).offset for partition in rows.partitions_of(gates.shard))
    if latest is not None or not came:
        found.insert(0, gates.gates[0].version)
    return tuple(found)


def new_load(
    shard: ShardId, target: TargetTable, version: int, kind: LoadKind, latest: Load | None
) -> Load:
    """The load that a decision orders, before any of its rows are read.

    Args:
        shard: The shard.
        target: Where its rows go.
        version: The decision's version.
        kind: How it is to be read.
        latest: The shard's load before that; None for its first one.
    """
    has_rows = latest is not None and latest.has_rows
    return replace(Load(shard, target, version, kind, version), has_rows=has_rows)


def load_place(gates: ShardGates, load: Load, reading: int) -> LoadPlace:
    """How a load stands, for the rules of the barrier.

    Args:
        gates: Of the shard.
        load: Its latest load.
        reading: Number of the first reading of watermarks at which the row topic is known to have
            every event that the load's chunks include.
    """
    position = None if load.is_complete else gates.gates[base_index(gates, load)].position
    agrees = load.kind is LoadKind.SNAPSHOT or (load.is_void and not load.has_mixed_rows)
    return LoadPlace(load.base, position, 0 if agrees else reading, load.has_rows)
