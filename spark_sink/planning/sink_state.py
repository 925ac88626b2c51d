"""Everything that a plan depends on, apart from the decisions. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.spark_sink.barrier.applied import RowProgress
from shardmerge.spark_sink.barrier.closing import Closing
from shardmerge.spark_sink.barrier.decisions import StatementKey
from shardmerge.spark_sink.barrier.partitions import Partition, Stream
from shardmerge.spark_sink.barrier.statements import Refused
from shardmerge.spark_sink.barrier.truncations import Truncation
from shardmerge.spark_sink.loading.load_state import Load

from .ordered_partitions import Closure


@dataclass(frozen=True, slots=True)
class SinkState:
    """Everything that a plan depends on, apart from the decisions.

    Attributes:
        executed, refused: Per target, from the journal.
        rows: How far rows are applied.
        safe_ends: Row partition → end offset (exclusive) whose barrier is settled.
        unapplied: The partitions of ``safe_ends`` with rows that are not applied, and maybe others:
            there may be thousands without. None: any may have some.
        busy: Targets on which statements run: nothing else is done with them meanwhile.
        closed: Targets that the sink may not change, and why.
        resting: Shard that has met a row which cannot be applied, and waits until it is tried
            again → the position of that row, or of the gate where the shard waits.
        truncations: Shard → the first TRUNCATE that was met and is not carried out.
        ordered: Stream whose partitions are ordered → its latest closure; None while there is
            none yet.
        loads: Shard → its latest first load.
        load_orders: Shard → versions of the decisions that order it to be loaded; only shards of
            sources whose rows the sink reads itself.
        loaded: Those sources.
        is_loading: Whether a first load is not complete, or may begin.
        passed_over: Shard → position before which its rows are skipped, because a snapshot of its
            first load includes them.
        routes: The routing rules; they say which rows, columns and operations are merged.
        writer_epoch: Of this driver.
    """

    executed: Mapping[TargetTable, Collection[StatementKey]] = field(default_factory=dict)
    refused: Mapping[TargetTable, Mapping[StatementKey, Refused]] = field(default_factory=dict)
    rows: RowProgress = field(default_factory=RowProgress)
    safe_ends: Mapping[Partition, int] = field(default_factory=dict)
    unapplied: Collection[Partition] | None = None
    busy: Collection[TargetTable] = ()
    closed: Mapping[TargetTable, Closing] = field(default_factory=dict)
    resting: Mapping[ShardId, SourcePosition] = field(default_factory=dict)
    truncations: Mapping[ShardId, Truncation] = field(default_factory=dict)
    ordered: Mapping[Stream, Closure | None] = field(default_factory=dict)
    loads: Mapping[ShardId, Load] = field(default_factory=dict)
    load_orders: Mapping[ShardId, Sequence[int]] = field(default_factory=dict)
    loaded: Collection[str] = ()
    is_loading: bool = False
    passed_over: Mapping[ShardId, SourcePosition] = field(default_factory=dict)
    routes: Sequence[RoutingRule] = ()
    writer_epoch: int = 0
