"""Which decisions order a shard to be loaded. Pure.

Which they are follows from the shard's gates and the pipeline file, so no record has to say it.

* The first decision about a shard orders that its rows are read. A table that was created while the
  connector ran has few rows then, or none. It is read like any other: the argument of
  ``load_rules`` holds for every table.
* The first decision does not order this for a shard whose rows come by Debezium's snapshot, as the
  pipeline file said before. Rows of its topic are applied already, or rows of another shard that
  the same snapshot has described (``debeziums``): the sink stores a shard's load before it applies
  the shard's first row, so such a shard without a load was never to be loaded. What interrupted
  snapshots brought to such shards is settled, and orders nothing either.
* A connector that describes its tables anew begins at another position. What happened between the
  old position and the new one is in no stream. So each such description orders that the shard is
  read anew. Its earlier rows are removed first (``barrier.restarts``).
* An operator can order it (``FixupKind.LOAD``). The shard's rows are removed first, too. A reload
  of another kind is read by Debezium.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.spark_sink.barrier.applied import LoadPlace, RowProgress
from shardmerge.spark_sink.barrier.decisions import StatementKey
from shardmerge.spark_sink.barrier.restarts import open_restart, open_restarts
from shardmerge.spark_sink.barrier.shard_gates import ShardGates

from .load_rules import base_index
from .load_state import Load, LoadKind

Described = tuple[str, SourcePosition | None]
"""A snapshot of a connector: the source's name, and the position of the descriptions."""


def debeziums(
    shards: Iterable[ShardGates],
    loads: Collection[ShardId],
    executed: Collection[StatementKey],
    rows: RowProgress,
) -> set[Described]:
    """The snapshots whose rows Debezium brings.

    Args:
        shards: Of one target.
        loads: Shards that have loads.
        executed: The target's keys in the journal.
        rows: How far rows are applied.
    """
    return {
        (gates.shard.source, gates.described)
        for gates in shards
        if gates.shard not in loads
        and gates.described is not None
        and _has_come(gates, rows)
        and open_restart(gates, executed) is None
    }


def load_orders(
    gates: ShardGates,
    latest: Load | None,
    rows: RowProgress,
    executed: Collection[StatementKey] = (),
    *,
    by_debezium: bool = False,
) -> tuple[int, ...]:
    """The versions of the decisions that order a shard to be loaded, in order.

    Args:
        gates: Of the shard.
        latest: Its latest load.
        rows: How far rows are applied.
        executed: The target's keys in the journal.
        by_debezium: Whether the shard's first rows come by Debezium's snapshot, even if none is
            applied yet (``debeziums``).
    """
    is_loads = latest is not None or not (by_debezium or _has_come(gates, rows))
    indices = gates.restarts if is_loads else open_restarts(gates, executed)
    anew = [gates.gates[index] for index in indices]
    found = [gate.version for gate in anew if gate.loads or not gate.reloads]
    if is_loads:
        found.insert(0, gates.gates[0].version)
    return tuple(found)


def _has_come(gates: ShardGates, rows: RowProgress) -> bool:
    return any(rows.at(partition).offset for partition in rows.partitions_of(gates.shard))


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
    load = Load(shard, target, version, kind, version)
    if latest is None:
        return load
    # Rows of the load before may be there until they are taken out.
    return replace(load, has_rows=latest.has_rows, may_be_mixed=latest.has_mixed_rows)


def load_place(gates: ShardGates, load: Load, reading: int) -> LoadPlace:
    """How a load stands, for the rules of the barrier.

    Args:
        gates: Of the shard.
        load: Its latest load.
        reading: Number of the first reading of watermarks at which the row topic is known to have
            every event that the load's chunks include.
    """
    position = None if load.is_complete else gates.gates[base_index(gates, load)].position
    is_of_one = load.kind is LoadKind.SNAPSHOT or load.is_void
    agrees = is_of_one and not load.has_mixed_rows
    return LoadPlace(load.base, position, 0 if agrees else reading, load.has_rows)
