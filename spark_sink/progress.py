"""What the sink tells the world of a target: a ``SinkProgress`` record. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shardmerge.schemas.events import ShardProgress, SinkProgress, StatementProgress
from shardmerge.schemas.names import ShardId
from shardmerge.schemas.topics import row_topic

from .applied import RowProgress
from .decisions import Decisions
from .gates import Stop
from .plan import TargetPlan
from .ranges import RowHold
from .statements import OpenStatement, StatementState


@dataclass(frozen=True, slots=True)
class Standing:
    """Why shards stand, besides their gates.

    Attributes:
        holds: Rows that could not be applied, by shard.
        missing: Source → what its barrier waits for, where it does.
    """

    holds: Mapping[ShardId, RowHold] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)


def progress_of(
    decisions: Decisions, plan: TargetPlan, rows: RowProgress, standing: Standing, row_count: int
) -> SinkProgress:
    """The record of one target; equal input gives equal records, so that only changes are sent.

    Args:
        decisions: Everything decided.
        plan: The target as it was planned last.
        rows: How far rows are applied.
        standing: Why shards stand, besides their gates.
        row_count: Rows applied to the target so far.
    """
    shards = decisions.targets[plan.target].shards
    return SinkProgress(
        target=plan.target,
        executed_version=plan.frontier - 1,
        rows=row_count,
        open=tuple(_statement(s) for s in plan.open),
        shards=tuple(_shard(s, decisions, plan, rows, standing) for s in sorted(shards)),
    )


def _statement(open_statement: OpenStatement) -> StatementProgress:
    # A ready one is executed at once.
    state = open_statement.state
    if open_statement.is_refused:
        state = StatementState.REFUSED
    elif state is StatementState.READY:
        state = StatementState.EXECUTING
    return StatementProgress(
        version=open_statement.key.version,
        ordinal=open_statement.key.ordinal,
        sql=open_statement.statement.sql,
        kind=open_statement.statement.kind,
        state=state.value,
        detail=open_statement.detail,
    )


def _shard(
    shard: ShardId, decisions: Decisions, plan: TargetPlan, rows: RowProgress, standing: Standing
) -> ShardProgress:
    offset = sum(rows.at(partition).offset for partition in rows.partitions_of(shard))
    if reason := contradiction(decisions, shard):
        hint = "write the routing rules, or name the tables, so that each topic has one shard"
        return ShardProgress(shard, offset, reason, hint)
    if (hold := standing.holds.get(shard)) is not None:
        return ShardProgress(shard, offset, hold.reason, hold.hint, hold.position)
    if shard in decisions.targets[plan.target].paused:
        return ShardProgress(
            shard,
            offset,
            "paused by an operator, or by its route",
            f"shardmerge command resume --shard {shard}",
        )
    stop = plan.stops.get(shard)
    if stop is not None and (stop.held or rows.is_parked(shard)):
        reason, hint = _why(stop, plan)
        return ShardProgress(shard, offset, reason, hint, stop.position)
    if shard.source in standing.missing and rows.is_parked(shard):
        return ShardProgress(shard, offset, f"waits for {standing.missing[shard.source]}")
    return ShardProgress(shard, offset)


def contradiction(decisions: Decisions, shard: ShardId) -> str:
    """Why a shard's row topic is not read at all; "" when it is."""
    topic = row_topic(shard)
    owners = decisions.topics[topic]
    others = sorted({str(other) for _, other in owners if other != shard})
    if others:
        return f"its row topic {topic} also holds the rows of {', '.join(others)}"
    if len(owners) > 1:
        return f"it is routed to {' and to '.join(sorted(str(target) for target, _ in owners))}"
    return ""


def _why(stop: Stop, plan: TargetPlan) -> tuple[str, str]:
    """Reason and hint for a closed gate."""
    if not stop.held:
        for waiting in plan.open:
            if waiting.is_refused and waiting.key.version == plan.frontier:
                return (
                    f"{stop.reason}; the target refuses {waiting.statement.sql!r}: "
                    f"{waiting.detail}",
                    "change what the target refuses; the statement is tried again",
                )
    return stop.reason, stop.hint
