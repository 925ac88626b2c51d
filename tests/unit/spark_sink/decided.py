"""Short names for decisions, as the tests of the planning side write them."""

from __future__ import annotations

from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import Column
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.records.decisions import (
    Binding,
    Decision,
    Outcome,
    Release,
    StatementKind,
    TargetStatement,
)
from shardmerge.schemas.records.schema_changes import ChangeId
from shardmerge.spark_sink.barrier.applied import Applied, RowProgress, Watermarks
from shardmerge.spark_sink.barrier.decisions import Decisions, StatementKey
from shardmerge.spark_sink.barrier.partitions import Partition

TARGET = TargetTable("merged", "t")
A, B, C = (ShardId("s1", "app", name) for name in "abc")
A_ROWS, B_ROWS = Partition("s1.app.a", 0), Partition("s1.app.b", 0)
EXPANDING, CONTRACTING, SWITCHING, ROWS = StatementKind


def at(pos: int) -> SourcePosition:
    return SourcePosition(0, "binlog.000001", pos, 0)


def column(name: str) -> ShardColumn:
    return ShardColumn(f"{name}#1", Column(name, ColumnType("int")))


def statement(
    kind: StatementKind, *subjects: str, binds: tuple[Binding, ...] = ()
) -> TargetStatement:
    return TargetStatement(f"ALTER {kind} {subjects}", kind, "", subjects, binds)


def rows_statement(shard: ShardId, kind: StatementKind = ROWS) -> TargetStatement:
    return TargetStatement("DELETE", kind, "", (f"rows:{shard}",), shard=shard)


def decision(
    version: int,
    shard: ShardId,
    pos: int,
    *statements: TargetStatement,
    hold: bool = False,
    releases: tuple[ShardId, ...] = (),
    offset: int | None = None,
    ordinal: int = 0,
    count: int = 1,
    live: bool = True,
    snapshot: bool = False,
    columns: tuple[str, ...] = ("id",),
    renewed: tuple[str, ...] = (),
) -> Decision:
    emitted = Outcome.EMIT if statements else Outcome.NOOP
    return Decision(
        ChangeId(shard.source, version if offset is None else offset, ordinal, count),
        TARGET, version, shard, at(pos), Outcome.HOLD if hold else emitted, statements,
        reason="it conflicts" if hold else "", hint="undo it" if hold else "",
        columns=tuple(column(name) for name in columns), key=("id",), live=live,
        releases=tuple(Release(shard, version) for shard in releases), snapshot=snapshot,
        renewed=renewed,
    )  # fmt: skip


def ignored(source: str, offset: int) -> Decision:
    return Decision(ChangeId(source, offset), None, 0, None, at(offset), Outcome.IGNORED)


def folded(*records: Decision) -> Decisions:
    decisions = Decisions()
    for record in records:
        decisions.add(record)
    return decisions


def key(version: int, ordinal: int = 0) -> StatementKey:
    return StatementKey(version, ordinal)


def rows(
    applied: dict[Partition, Applied] | None = None,
    ends: dict[Partition, int] | None = None,
    seen: int = 100,
) -> RowProgress:
    """Everything applied to ``ends`` where ``applied`` says nothing else."""
    ends = {A_ROWS: 10, B_ROWS: 10} if ends is None else ends
    stands = {partition: Applied(end) for partition, end in ends.items()} | (applied or {})
    return RowProgress(stands, Watermarks(seen, {partition.topic: 1 for partition in ends}, ends))
