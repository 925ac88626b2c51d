"""What the driver does next: statements to run, offset ranges to apply. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.spark_sink.barrier.closing import Closing
from shardmerge.spark_sink.barrier.decisions import Decisions, TargetDecisions
from shardmerge.spark_sink.barrier.gates import Stop, first_stop, key_stop
from shardmerge.spark_sink.barrier.partitions import Partition, Stream
from shardmerge.spark_sink.barrier.restarts import Restart
from shardmerge.spark_sink.barrier.row_stops import fixup_stops, rows_stops
from shardmerge.spark_sink.barrier.statements import (
    OpenStatement,
    StatementState,
    awaiting_opening,
    executing,
    frontier,
    open_statements,
)
from shardmerge.spark_sink.barrier.truncations import Truncation
from shardmerge.spark_sink.loading.load_estimate import LOADED_FIRST, load_text
from shardmerge.spark_sink.loading.load_rules import stream_stop

from .range_tasks import RangeTasks, shared_out
from .ranges import RangeTask, offsets_in
from .restart_turns import Turns, lets_rows_pass, open_restarts
from .sink_state import SinkState

_AWAITED = "waits until its table, which has no primary key, is read as a whole (by the watchdog)"


@dataclass(frozen=True, slots=True)
class TargetPlan:
    """One target as the plan sees it.

    Attributes:
        frontier: Rows of this version and higher ones wait.
        open: Statements that are not executed, in execution order.
        stops: Shard → the first gate that may not be passed; a shard without one is not held up.
        blocked: Shard with a first load → index of the first gate that may not be passed for any
            reason but the load; the number of gates when there is none (``load_rules``).
        closed: Why the sink may not change the target; None when it may.
    """

    target: TargetTable
    frontier: int
    open: tuple[OpenStatement, ...]
    stops: Mapping[ShardId, Stop]
    blocked: Mapping[ShardId, int] = field(default_factory=dict)
    closed: Closing | None = None

    @property
    def ready(self) -> tuple[OpenStatement, ...]:
        """The statements that may run now, in execution order; none while others run."""
        return tuple(s for s in self.open if s.state is StatementState.READY)


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """One step of the sink: the ready statements, and the ranges of targets that have none.

    Attributes:
        due_truncations: Truncations whose turn has come: every row before them is applied, and no
            statement of the target is ready.
        restarts: Restarts that need something besides tasks: to begin or end the restart, to
            delete its rows by a statement, or to find out whether a snapshot read rows there.
    """

    targets: tuple[TargetPlan, ...]
    tasks: tuple[RangeTask, ...]
    due_truncations: tuple[Truncation, ...] = ()
    restarts: tuple[Restart, ...] = ()


def plan(decisions: Decisions, state: SinkState, max_records: int) -> BatchPlan:
    """Choose the statements to run now and the ranges to apply.

    After a crash, a call with the stored state gives a plan that goes on from there. A target with
    statements to run has no ranges. Rows that wait for the statements come with a later plan, and
    other rows would only hold locks that the statements wait for.

    Args:
        decisions: Everything decided, as far as it was read.
        state: Everything else that a plan depends on.
        max_records: Bound of the sum of all readings, in offsets; shared fairly. Each reading has
            at least one offset.

    Raises:
        ContractError: A partition's safe end lies before what is applied: the topic was made
            anew.
    """
    restarts = open_restarts(decisions, state)
    targets = tuple(_plan_target(t, state, restarts) for t in decisions.targets.values())
    plans = {plan.target: plan for plan in targets}
    ready = frozenset(plan.target for plan in targets if plan.ready)
    turns = Turns(decisions, state, restarts, ready)
    without_rows = {*state.busy, *state.closed}
    available: dict[Partition, tuple[int, int]] = {}
    ordered: dict[Stream, dict[Partition, tuple[int, int]]] = {}
    for partition in state.unapplied if state.unapplied is not None else state.safe_ends:
        end = state.safe_ends[partition]
        if end == state.rows.at(partition).offset:
            continue
        owners = decisions.streams.get(partition.stream, ())
        if len(owners) != 1:
            continue
        target, shard = owners[0]
        if target in ready or target in without_rows or target in turns.emptying:
            continue
        if shard in decisions.targets[target].paused or shard in state.rows.watermarks.strays:
            continue
        if not lets_rows_pass(restarts, shard):
            continue
        size = _available(partition, end, shard, plans[target].stops.get(shard), state)
        if size <= 0:
            continue
        if partition.stream in state.ordered:
            ordered.setdefault(partition.stream, {})[partition] = (end - size, end)
        else:
            available[partition] = (end - size, end)
    making = RangeTasks(decisions, state)
    tasks = []
    for number, ranges in shared_out(available, ordered, state, max_records):
        for partition, offsets in ranges.items():
            [(target, shard)] = decisions.streams[partition.stream]
            stop = plans[target].stops.get(shard)
            tasks.append(making.applying(partition, offsets, stop, number))
    most = max(max_records, offsets_in(tasks))
    for restart in turns.taken_back:
        if offsets_in(tasks) > most:
            break
        tasks += making.undoing(restart)
    return BatchPlan(targets, tuple(tasks), turns.due_truncations, turns.to_carry_out)


def _plan_target(
    target: TargetDecisions, state: SinkState, restarts: Mapping[ShardId, Restart]
) -> TargetPlan:
    executed = state.executed.get(target.target, ())
    refused = state.refused.get(target.target, {})
    open_now = open_statements(target, executed, refused, state.rows)
    if (why := state.closed.get(target.target)) is not None:
        waiting = tuple(awaiting_opening(statement, why) for statement in open_now)
        return TargetPlan(target.target, frontier(target, executed), waiting, {}, closed=why)
    if target.target in state.busy:
        open_now = tuple(executing(statement) for statement in open_now)
    reached = frontier(target, executed)
    own, later = rows_stops(target, open_now), fixup_stops(target, open_now)
    stops, blocked = {}, {}
    named = own.keys() | later.keys() | restarts.keys() | state.loads.keys()
    named |= target.awaited.latest().keys() | target.key_changed.keys()
    # Mostly nothing concerns a shard, and there may be thousands.
    for name in dict.fromkeys((*target.stopped_at(reached), *(named & target.shards.keys()))):
        shard = target.shards[name]
        restart = restarts.get(name)
        anew = None if restart is None else (restart.index, restart.reason)
        asked = target.awaited.since(name)
        read = None if asked is None else (shard.upto(asked) - 1, _AWAITED)
        waits = (
            (own.get(name), "SM-1603"),
            (later.get(name), "SM-1604"),
            (key_stop(shard, state.rows), "SM-1602"),
            (anew, "SM-1609"),
            (read, "SM-1614"),
        )
        first = min(((*wait, code) for wait, code in waits if wait is not None), default=None)
        if (load := state.loads.get(name)) is not None:
            index = shard.first_blocked(reached)
            blocked[name] = index if first is None else min(index, first[0])
            loaded = stream_stop(shard, load, state.load_orders.get(name, ()))
            if loaded is not None and (first is None or loaded <= first[0]):
                first = (loaded, load_text(load), LOADED_FIRST)
        if (stop := first_stop(shard, reached, first)) is not None:
            stops[name] = stop
    return TargetPlan(target.target, reached, open_now, stops, blocked)


def _available(
    partition: Partition, end: int, shard: ShardId, stop: Stop | None, state: SinkState
) -> int:
    """How many offsets of a partition may be read now; 0 for a shard that waits at its stop."""
    standing = state.rows.at(partition)
    if end < standing.offset:
        raise ContractError(
            f"{partition} ends at {end}, but rows up to {standing.offset} are applied",
            hint="the row topic was deleted and made anew: merge its shard again from a snapshot",
            code="SM-2116",
        )
    if shard in state.resting:
        return 0
    if stop is not None and _stands_at(standing.next_position, stop.rows_from):
        return 0
    truncation = state.truncations.get(shard)
    if truncation is not None and _stands_at(standing.next_position, truncation.position):
        return 0
    return end - standing.offset


def _stands_at(next_position: SourcePosition | None, stop: SourcePosition) -> bool:
    return next_position is not None and next_position >= stop
