"""What the sink tells the world of a target: a ``SinkProgress`` record. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from shardmerge.schemas.events import ShardProgress, SinkProgress, StatementProgress
from shardmerge.schemas.names import ShardId
from shardmerge.schemas.topics import row_topic

from .applied import Applied
from .barrier import Partition
from .decisions import Decisions
from .plan import SinkState, TargetPlan
from .ranges import RowHold
from .statements import StatementState


def progress_of(
    decisions: Decisions,
    plan: TargetPlan,
    state: SinkState,
    holds: Mapping[ShardId, RowHold],
    rows: int,
    missing: Mapping[str, str],
) -> SinkProgress:
    """The record of one target; equal input gives equal records, so that only changes are sent.

    Args:
        holds: Rows that could not be applied, by shard.
        rows: Rows applied to the target so far.
        missing: Source → what its barrier waits for, where it does.
    """
    target = decisions.targets[plan.target]
    return SinkProgress(
        target=plan.target,
        executed_version=plan.frontier - 1,
        rows=rows,
        open=tuple(
            StatementProgress(
                version=s.key.version,
                ordinal=s.key.ordinal,
                sql=s.statement.sql,
                kind=s.statement.kind,
                # A ready one is executed at once: what is seen of it is that it waits its turn.
                state=(StatementState.WAITING if s.state is StatementState.READY else s.state),
                detail=s.detail,
            )
            for s in plan.open
        ),
        shards=tuple(
            _shard(shard, plan, decisions, state, holds, missing) for shard in sorted(target.shards)
        ),
    )


def _shard(
    shard: ShardId,
    plan: TargetPlan,
    decisions: Decisions,
    state: SinkState,
    holds: Mapping[ShardId, RowHold],
    missing: Mapping[str, str],
) -> ShardProgress:
    topic = row_topic(shard)
    partitions = [(topic, number) for number in range(state.watermarks.partitions.get(topic, 0))]
    standing = [state.applied.get(partition, Applied(0)) for partition in partitions]
    offset = sum(applied.offset for applied in standing)
    others = [str(s) for _, s in decisions.topics[topic] if s != shard]
    stop = plan.stops.get(shard)
    if len(decisions.topics[topic]) > 1:
        reason = (
            f"its row topic {topic} also holds the rows of {', '.join(others)}"
            if others
            else "routing rules give it more than one target"
        )
        hint = "name the tables, or write the routing rules, so that each has a topic of its own"
        return ShardProgress(shard, offset, reason, hint)
    if (hold := holds.get(shard)) is not None:
        return ShardProgress(shard, offset, hold.reason, hold.hint, hold.position)
    if stop is not None and (stop.held or _is_parked(partitions, state)):
        reason, hint = stop.reason, stop.hint
        refused = next(
            (
                s
                for s in plan.open
                if s.state is StatementState.REFUSED and s.key.version == plan.frontier
            ),
            None,
        )
        if not stop.held and refused is not None:
            reason += f", whose statement the target refused: {refused.detail}"
            hint = "change what the target refuses; the statement is tried again"
        return ShardProgress(shard, offset, reason, hint, stop.position)
    if shard.source in missing and _is_parked(partitions, state):
        return ShardProgress(shard, offset, f"waits for {missing[shard.source]}")
    return ShardProgress(shard, offset)


def _is_parked(partitions: list[Partition], state: SinkState) -> bool:
    """Whether rows are there that are not applied, as far as the last reading tells."""
    return any(
        state.applied.get(p, Applied(0)).offset < state.watermarks.ends.get(p, 0)
        for p in partitions
    )
