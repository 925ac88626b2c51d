"""Why a shard waits, as one of a few words: a metric's label must not hold free text. Pure."""

from __future__ import annotations

from collections.abc import Container
from enum import StrEnum

from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.records.progress import ShardProgress
from shardmerge.spark_sink.planning.plan import TargetPlan
from shardmerge.spark_sink.planning.progress import Standing


class WaitingKind(StrEnum):
    """See the metric ``SINK_WAITING``."""

    DECISION = "decision"
    ROW = "row"
    TOPIC = "topic"
    PAUSED = "paused"
    TRUNCATE = "truncate"
    BARRIER = "barrier"

    @property
    def is_held(self) -> bool:
        """Whether the shard waits until somebody acts."""
        return self not in (WaitingKind.TRUNCATE, WaitingKind.BARRIER)


def waiting_kind(
    progress: ShardProgress,
    plan: TargetPlan,
    standing: Standing,
    *,
    paused: Container[ShardId],
    unread: bool,
) -> WaitingKind | None:
    """Why a shard waits; None when it does not, or its target was cut over.

    Args:
        progress: What is reported of the shard.
        plan: Its target as it was planned last.
        standing: Why shards wait, besides their gates.
        paused: The paused shards of the target.
        unread: Whether the shard's row topic is not read at all.
    """
    if not progress.waiting or plan.closed is not None:
        return None
    shard, stop = progress.shard, plan.stops.get(progress.shard)
    if unread:
        return WaitingKind.TOPIC
    if shard in standing.holds:
        return WaitingKind.ROW
    if shard in paused:
        return WaitingKind.PAUSED
    truncation = standing.truncations.get(shard)
    if truncation is not None and progress.position == truncation.position:
        return WaitingKind.TRUNCATE
    return WaitingKind.DECISION if stop is not None and stop.held else WaitingKind.BARRIER
