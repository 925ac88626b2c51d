"""Builds what the sink publishes about a target: a ``SinkProgress`` record. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.pipeline.topics import row_topic
from shardmerge.schemas.records.drift import MET_CODE, Difference
from shardmerge.schemas.records.progress import (
    FailureProgress,
    ShardProgress,
    SinkProgress,
    StatementProgress,
)
from shardmerge.spark_sink.barrier.applied import RowProgress
from shardmerge.spark_sink.barrier.barrier import open_transaction
from shardmerge.spark_sink.barrier.closing import Closing
from shardmerge.spark_sink.barrier.decisions import Decisions
from shardmerge.spark_sink.barrier.gates import Stop
from shardmerge.spark_sink.barrier.partitions import Partition, stream_of
from shardmerge.spark_sink.barrier.statements import OpenStatement, StatementState
from shardmerge.spark_sink.barrier.truncations import Truncation
from shardmerge.spark_sink.loading.load_estimate import LOADED_FIRST

from .plan import TargetPlan
from .ranges import RowHold

CLOSED = Closing.CUT_OVER.code
"""The code of rows that are not applied because their target was cut over."""


class Trouble(NamedTuple):
    """Why a first load does not go on, what the operator can do, and the reason's code."""

    reason: str
    hint: str
    code: str


@dataclass(frozen=True, slots=True)
class Standing:
    """Why shards wait, besides their gates.

    Attributes:
        holds: Shard → the row that could not be applied.
        missing: Source → what its barrier waits for; only sources whose barrier waits.
        unreadable: Whole partition → the offset at which a transaction is open in it.
        stage: What the target reports about the statement that it executes.
        is_busy: Whether a statement, or the removal of a truncated shard's rows, runs on the
            target.
        truncations: Shard → the first TRUNCATE that was met and is not carried out, in the order
            in which due ones are carried out.
        failure: Why the target's latest batch did not end; None when it did.
        key_collisions: Shard → how many of its rows replaced other rows; only shards with some.
        load_troubles: Shard whose first load does not go on → why.
        drift: In what the target's table differs from what was decided.
    """

    holds: Mapping[ShardId, RowHold] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    unreadable: Mapping[Partition, int] = field(default_factory=dict)
    stage: str = ""
    is_busy: bool = False
    truncations: Mapping[ShardId, Truncation] = field(default_factory=dict)
    failure: FailureProgress | None = None
    key_collisions: Mapping[ShardId, int] = field(default_factory=dict)
    load_troubles: Mapping[ShardId, Trouble] = field(default_factory=dict)
    drift: tuple[Difference, ...] = ()


def progress_of(
    decisions: Decisions, plan: TargetPlan, rows: RowProgress, standing: Standing, row_count: int
) -> SinkProgress:
    """The record of one target; equal input gives equal records, so that only changes are sent.

    Args:
        decisions: Everything decided.
        plan: The target as it was planned last.
        rows: How far rows are applied.
        standing: Why shards wait, besides their gates.
        row_count: Rows applied to the target so far.
    """
    shards = decisions.targets[plan.target].shards
    running = _running(decisions, plan, rows, standing)
    return SinkProgress(
        target=plan.target,
        executed_version=plan.frontier - 1,
        rows=row_count,
        open=tuple(_statement(s, standing.stage) for s in plan.open),
        shards=tuple(
            _progress(s, decisions, plan, rows, standing, running=running) for s in sorted(shards)
        ),
        failure=standing.failure,
        drift=standing.drift,
    )


def _progress(
    shard: ShardId,
    decisions: Decisions,
    plan: TargetPlan,
    rows: RowProgress,
    standing: Standing,
    *,
    running: OpenStatement | Truncation | None,
) -> ShardProgress:
    offset = parked = 0
    for partition in rows.partitions_of(shard):
        applied = rows.at(partition).offset
        offset += applied
        parked += max(rows.watermarks.end(partition) - applied, 0)
    if parked == 0 and plan.closed is None and _is_plain(shard, decisions, plan, rows, standing):
        found = ShardProgress(shard, offset)
    else:
        found = _shard(shard, decisions, plan, rows, standing, offset=offset, running=running)
    overwritten = standing.key_collisions.get(shard, 0)
    if not parked and not overwritten:
        return found
    return replace(found, parked=parked, overwritten=overwritten)


def _is_plain(
    shard: ShardId, decisions: Decisions, plan: TargetPlan, rows: RowProgress, standing: Standing
) -> bool:
    """Whether nothing is said of a shard without rows that wait, as of most of thousands."""
    return (
        shard not in plan.stops
        and shard not in standing.holds
        and shard not in standing.truncations
        and shard not in rows.watermarks.strays
        and shard not in decisions.targets[plan.target].paused
        and len(decisions.streams[stream_of(shard, decisions.topics)]) == 1
    )


def with_times(record: SinkProgress, before: SinkProgress | None, now_ms: int) -> SinkProgress:
    """The record with the time at which each of its states was first seen.

    Args:
        record: The new record, without times.
        before: The target's previous record, with times; None for the first record.
        now_ms: Milliseconds since 1970.
    """
    known_statements = before.open if before else ()
    statements = {(s.version, s.ordinal, s.state): s.since_ms for s in known_statements}
    shards = {s.shard: s for s in before.shards} if before else {}

    def stands_since(shard: ShardProgress) -> int:
        if not shard.waiting:
            return 0
        known = shards.get(shard.shard)
        if known is None or not known.waiting or known.position != shard.position:
            return now_ms
        return known.since_ms

    failure = record.failure
    if failure is not None:
        known = before.failure if before else None
        # A lower count than before means that the failures began anew in between.
        goes_on = known is not None and known.times <= failure.times
        failure = replace(failure, since_ms=known.since_ms if known and goes_on else now_ms)
    return replace(
        record,
        failure=failure,
        open=tuple(
            replace(s, since_ms=statements.get((s.version, s.ordinal, s.state), now_ms))
            for s in record.open
        ),
        shards=tuple(
            replace(s, since_ms=stands_since(s)) if s.waiting else s for s in record.shards
        ),
    )


def _statement(open_statement: OpenStatement, stage: str) -> StatementProgress:
    # A ready statement is executed at once, so it is reported as executing.
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
        detail=stage if state is StatementState.EXECUTING else open_statement.detail,
        code="" if state is StatementState.EXECUTING else open_statement.code,
    )


def _shard(
    shard: ShardId,
    decisions: Decisions,
    plan: TargetPlan,
    rows: RowProgress,
    standing: Standing,
    *,
    offset: int,
    running: OpenStatement | Truncation | None,
) -> ShardProgress:
    if (why := plan.closed) is not None:
        reason = f"its rows stay in Kafka, because {why.clause}"
        return ShardProgress(shard, offset, reason, why.hint, code=why.code)
    if reason := reason_unread(decisions, shard):
        hint = "write the routing rules, or name the tables, so that each topic has one shard"
        return ShardProgress(shard, offset, reason, hint, code="SM-1610")
    if shard in rows.watermarks.strays:
        return ShardProgress(shard, offset, *_stray(decisions, shard), code="SM-1611")
    if (hold := standing.holds.get(shard)) is not None:
        return ShardProgress(shard, offset, hold.reason, hold.hint, hold.position, code=hold.code)
    if shard in decisions.targets[plan.target].paused:
        return ShardProgress(
            shard,
            offset,
            "paused by an operator, or by its route",
            f"shardmerge command resume --pipeline FILE --shard {shard}",
            code="SM-1613",
        )
    stop = plan.stops.get(shard)
    truncation = standing.truncations.get(shard)
    if truncation is not None and (
        stop is None or (not stop.held and truncation.position <= stop.position)
    ):
        what = _at_truncate(truncation, rows, running)
        at = truncation.position
        return ShardProgress(shard, offset, what, position=at, code="SM-1607")
    is_loaded = stop is not None and stop.code == LOADED_FIRST
    if stop is not None and is_loaded and (trouble := standing.load_troubles.get(shard)):
        return ShardProgress(
            shard, offset, trouble.reason, trouble.hint, stop.position, code=trouble.code
        )
    if stop is not None and (stop.held or is_loaded or rows.is_parked(shard)):
        reason, hint, code = _why(stop, plan)
        return ShardProgress(shard, offset, reason, hint, stop.position, code=code)
    if shard.source in standing.missing and rows.is_parked(shard):
        what = f"waits for {standing.missing[shard.source]}"
        return ShardProgress(shard, offset, what, code="SM-1605")
    for partition in rows.partitions_of(shard):
        if partition.whole in standing.unreadable and rows.is_parked(shard):
            what = open_transaction(partition, standing.unreadable[partition.whole])
            hint = _OPEN_TRANSACTION_HINT
            return ShardProgress(shard, offset, f"waits for {what}", hint, code="SM-1606")
    if running is not None and rows.is_parked(shard):
        return ShardProgress(shard, offset, _behind(running), code="SM-1608")
    return ShardProgress(shard, offset)


def _running(
    decisions: Decisions, plan: TargetPlan, rows: RowProgress, standing: Standing
) -> OpenStatement | Truncation | None:
    """The statement or deletion that runs on the target while its rows wait; None for nothing.

    A statement that became ready while a truncated shard's rows are deleted counts as running.
    """
    if not standing.is_busy:
        return None
    for statement in plan.open:
        if statement.state in (StatementState.READY, StatementState.EXECUTING):
            return statement
    paused = decisions.targets[plan.target].paused
    ready = [
        t
        for t in standing.truncations.values()
        if t.target == plan.target and not t.waits_for(rows)
    ]
    # A shard may have been paused after the deletion of its rows began.
    return min(ready, key=lambda t: t.shard in paused, default=None)


def _at_truncate(
    truncation: Truncation, rows: RowProgress, running: OpenStatement | Truncation | None
) -> str:
    """Why a shard waits at its TRUNCATE."""
    if running == truncation:
        return "it was truncated: its rows in the target are being deleted"
    if waits := truncation.waits_for(rows):
        return (
            "it was truncated: its rows are deleted when the rows from before the TRUNCATE are "
            f"applied, waits for {waits}"
        )
    return _behind(running) if running else "it was truncated: its rows are deleted next"


def _behind(running: OpenStatement | Truncation) -> str:
    """What rows wait for while something runs on their target."""
    if isinstance(running, Truncation):
        return f"waits while the rows of the truncated shard {running.shard} are being deleted"
    key = running.key
    name = f"{key.version}.{key.ordinal}"
    return f"waits for the end of statement {name}, which executes on the target"


_OPEN_TRANSACTION_HINT = (
    "see whether the source's connector runs; kafka-transactions.sh find-hanging lists "
    "transactions that nobody will end"
)


def reason_unread(decisions: Decisions, shard: ShardId) -> str:
    """Why a shard's row topic is not read at all; "" when it is."""
    stream = stream_of(shard, decisions.topics)
    topic, owners = stream.topic, decisions.streams[stream]
    others = sorted({str(other) for _, other in owners if other != shard})
    if others:
        return f"its row topic {topic} also holds the rows of {', '.join(others)}"
    if len(owners) > 1:
        return f"it is routed to {' and to '.join(sorted(str(target) for target, _ in owners))}"
    return ""


def _stray(decisions: Decisions, shard: ShardId) -> tuple[str, str]:
    """Reason and hint for a shard that has rows outside the topic that its route names."""
    own, topic = row_topic(shard), decisions.topics.topic_of(shard)
    if decisions.topics.misses(shard):
        return (
            f"its route expects its rows in {topic}, but Debezium writes them to another topic: it "
            f"matches the routes' expressions with the topic name {own}, not with the table's name",
            "write the routes that have a row_topic so that their expressions match topic names as "
            "they match table names, deploy the connectors and take a new snapshot",
        )
    return (
        f"its route's row_topic expects its rows in {topic}, but there are rows in {own}",
        "a running pipeline keeps the row_topic of its routes, and its connectors are those of its "
        f"pipeline file; if another pipeline left the rows behind, delete topic {own}",
    )


def _why(stop: Stop, plan: TargetPlan) -> tuple[str, str, str]:
    """Reason, hint and code for a closed gate."""
    if not stop.held:
        for waiting in plan.open:
            if waiting.is_refused and waiting.key.version == plan.frontier:
                if waiting.code == MET_CODE:
                    hint = f"see `shardmerge drift show {plan.target} --pipeline FILE`"
                    return f"{stop.reason}; {waiting.detail}", hint, MET_CODE
                return (
                    f"{stop.reason}; the target refuses {waiting.statement.sql!r}: "
                    f"{waiting.detail}",
                    "change what the target refuses; the statement is tried again",
                    "SM-1612",
                )
    return stop.reason, stop.hint, stop.code
