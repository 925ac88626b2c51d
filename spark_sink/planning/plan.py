"""What the driver does next: statements to run, offset ranges to apply. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from shardmerge.schemas.effects.value_changes import value_change
from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.model.names import (
    ShardId,
    TargetTable,
)
from shardmerge.schemas.model.policies import RowsPolicy
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.pipeline.routing import (
    RoutingRule,
    rule_of,
)
from shardmerge.schemas.records.events import Binding
from shardmerge.spark_sink.barrier.applied import RowProgress
from shardmerge.spark_sink.barrier.decisions import (
    Decisions,
    Gate,
    ShardGates,
    StatementKey,
    TargetDecisions,
)
from shardmerge.spark_sink.barrier.gates import (
    Stop,
    first_stop,
    key_stop,
)
from shardmerge.spark_sink.barrier.partitions import (
    Partition,
    Stream,
    stream_of,
)
from shardmerge.spark_sink.barrier.restarts import (
    CHUNK,
    KEYLESS_CHUNK,
    Restart,
    Stage,
    open_restart,
    restarts_of,
    snapshots_seen,
    undone_upto,
)
from shardmerge.spark_sink.barrier.statements import (
    OpenStatement,
    Refused,
    StatementState,
    bindings,
    executing,
    fixup_stops,
    frontier,
    open_statements,
    rows_stops,
)
from shardmerge.spark_sink.barrier.truncations import Truncation

from .ordered_partitions import (
    Closure,
    closed_ranges,
)
from .ranges import (
    RangeTask,
    Segment,
    ShardStream,
    offsets_in,
)
from .readings import (
    OrderedReading,
    Reading,
    ordered_readings,
    readings,
    share_fairly,
)

_AWAITED = "waits until its table, which has no primary key, is read as a whole (by the watchdog)"
_UNDOING = 1 << 40
"""Numbers of readings from here on are of rows that are taken back."""


@dataclass(frozen=True, slots=True)
class TargetPlan:
    """One target as the plan sees it.

    Attributes:
        frontier: Rows of this version and higher ones wait.
        open: Statements that are not executed, in execution order.
        stops: Per shard the first gate that may not be passed; shards without one flow.
    """

    target: TargetTable
    frontier: int
    open: tuple[OpenStatement, ...]
    stops: Mapping[ShardId, Stop]

    @property
    def ready(self) -> tuple[OpenStatement, ...]:
        """The statements that may run now, in execution order; none while others run."""
        return tuple(s for s in self.open if s.state is StatementState.READY)


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """One step of the sink: the ready statements, and the ranges of targets that have none.

    Attributes:
        emptied: Truncations whose turn has come: every row before them is applied, and no statement
            of the target is ready.
        restarts: Restarts for which something is to be done besides tasks: to begin them, to delete
            their rows by a statement, to end them; or to find out whether they are one.
    """

    targets: tuple[TargetPlan, ...]
    tasks: tuple[RangeTask, ...]
    emptied: tuple[Truncation, ...] = ()
    restarts: tuple[Restart, ...] = ()


@dataclass(frozen=True, slots=True)
class SinkState:
    """Everything that a plan depends on, apart from the decisions.

    Attributes:
        executed, refused: Per target, from the journal.
        rows: How far rows are applied.
        safe_ends: Row partition → end offset (exclusive) whose barrier is settled.
        busy: Targets on which statements run: nothing else is done with them meanwhile.
        resting: Shards that stand at a row which cannot be applied, until it is tried again → the
            place of that row, or of the gate where they stand.
        truncations: Shard → the first TRUNCATE that was met and is not carried out.
        ordered: Streams whose partitions are ordered → what is known to be complete; None
            while that is not known.
        routes: They say what becomes of the rows of a truncated shard.
        writer_epoch: Of this driver.
    """

    executed: Mapping[TargetTable, Collection[StatementKey]] = field(default_factory=dict)
    refused: Mapping[TargetTable, Mapping[StatementKey, Refused]] = field(default_factory=dict)
    rows: RowProgress = field(default_factory=RowProgress)
    safe_ends: Mapping[Partition, int] = field(default_factory=dict)
    busy: Collection[TargetTable] = ()
    resting: Mapping[ShardId, SourcePosition] = field(default_factory=dict)
    truncations: Mapping[ShardId, Truncation] = field(default_factory=dict)
    ordered: Mapping[Stream, Closure | None] = field(default_factory=dict)
    routes: Sequence[RoutingRule] = ()
    writer_epoch: int = 0


def plan(decisions: Decisions, state: SinkState, max_records: int) -> BatchPlan:
    """Choose the statements to run now and the ranges to apply.

    Calling it again after a crash with what is stored gives a plan that goes on from there. A
    target with statements to run has no ranges: rows that wait for them come with a later plan,
    and a statement would only wait for the locks of the others.

    Args:
        decisions: Everything decided, as far as it was read.
        state: Everything else.
        max_records: Bound of the sum of all readings, in offsets; shared fairly.

    Raises:
        ContractError: A partition's safe end lies before what is applied: the topic was made
            anew.
    """
    restarts = _restarts(decisions, state)
    targets = tuple(_plan_target(t, state, restarts) for t in decisions.targets.values())
    plans = {plan.target: plan for plan in targets}

    def has_turn(of: Truncation | Restart) -> bool:
        return (
            not plans[of.target].ready
            and of.target not in state.busy
            and of.shard not in decisions.targets[of.target].paused
            and not _rests(of, state)
        )

    emptied = tuple(
        truncation
        for truncation in state.truncations.values()
        if has_turn(truncation)
        and _lets_rows_pass(restarts, truncation.shard)
        and not truncation.waits_for(state.rows)
    )
    turns = _together(
        [
            r
            for r in restarts.values()
            if has_turn(r)
            and _is_there(decisions, state, r.target)
            # An older reading may not know the partitions: nothing in them would look like done.
            and state.rows.watermarks.seen >= r.gate.seen
        ]
    )
    left = {(r.target, r.gate.version) for r in turns if r.left}
    emptying = {truncation.target for truncation in emptied}
    emptying |= {r.target for r in turns if r.stage is Stage.BEGUN and r.sql is not None}
    wanted: dict[Partition, tuple[TargetTable, ShardId]] = {}
    available: dict[Partition, tuple[int, int]] = {}
    ordered: dict[Stream, dict[Partition, tuple[int, int]]] = {}
    for partition, end in state.safe_ends.items():
        owners = decisions.streams.get(partition.stream, ())
        if len(owners) != 1:
            continue
        target, shard = owners[0]
        if plans[target].ready or target in state.busy or target in emptying:
            continue
        if shard in decisions.targets[target].paused or shard in state.rows.watermarks.strays:
            continue
        if not _lets_rows_pass(restarts, shard):
            continue
        size = _available(partition, end, shard, plans[target].stops.get(shard), state)
        if size > 0:
            wanted[partition] = (target, shard)
            if partition.stream in state.ordered:
                ordered.setdefault(partition.stream, {})[partition] = (end - size, end)
            else:
                available[partition] = (end - size, end)
    streams: dict[ShardId, ShardStream] = {}
    bound: dict[TargetTable, Mapping[str, Binding]] = {}
    tasks = []
    for number, ranges in _shared_out(available, ordered, state, max_records):
        for partition, (start, end) in ranges.items():
            target, shard = wanted[partition]
            closure = state.ordered.get(partition.stream)
            known = decisions.targets[target]
            if target not in bound:
                bound[target] = bindings(known, state.executed.get(target, ()))
            if shard not in streams:
                streams[shard] = _stream(known, shard, plans[target].stops.get(shard), state)
            tasks.append(
                RangeTask(
                    topic=partition.topic,
                    partition=partition.number,
                    start_offset=start,
                    end_offset=end,
                    stream=streams[shard],
                    bindings=bound[target],
                    writer_epoch=state.writer_epoch,
                    reading=number,
                    closure=closure.of(partition) if closure is not None else None,
                )
            )
    undone = [r for r in turns if r.target not in emptying and r.sql is None and r.left]
    for restart in undone:
        if offsets_in(tasks) > max_records:
            break
        known = decisions.targets[restart.target]
        if restart.target not in bound:
            bound[restart.target] = bindings(known, state.executed.get(restart.target, ()))
        tasks += _undoing(known, restart, bound[restart.target], state)
    return BatchPlan(
        targets,
        tuple(tasks),
        emptied,
        tuple(
            r
            for r in turns
            if r.leads
            and (
                r.stage in {Stage.FOUND, Stage.UNPROVEN}
                or (
                    r.stage is Stage.BEGUN
                    and (r.sql is not None or (r.target, r.gate.version) not in left)
                )
            )
        ),
    )


def _rests(of: Truncation | Restart, state: SinkState) -> bool:
    """Whether its shard stands for a while.

    A reload minds nothing but its own gate: whichever row could not be applied before it goes.
    """
    place = state.resting.get(of.shard)
    if isinstance(of, Restart) and of.gate.reloads:
        return place == of.position
    return place is not None


def _together(turns: Sequence[Restart]) -> list[Restart]:
    """Those whose mates have come as far as themselves.

    What deletes rows of all of them at once does so only where one of them has any.
    """
    found: dict[tuple[TargetTable, int], list[Restart]] = {}
    for restart in turns:
        found.setdefault((restart.target, restart.gate.version), []).append(restart)
    kept = [some for some in found.values() if len(some) == len(some[0].mates)]
    return [
        restart if any(mate.left for mate in some) else replace(restart, sql=None)
        for some in kept
        for restart in some
    ]


def _restarts(decisions: Decisions, state: SinkState) -> dict[ShardId, Restart]:
    """Shard → its restart that is not settled; few shards have one."""
    seen = snapshots_seen(decisions, state.executed, state.rows)
    found: dict[ShardId, Restart] = {}
    for target in decisions.targets.values():
        executed = state.executed.get(target.target, ())
        if any(
            open_restart(target.shards[name], executed) is not None for name in target.restarted
        ):
            bound = bindings(target, executed)
            found |= restarts_of(target, executed, state.rows, bound, seen)
    return found


def _is_there(decisions: Decisions, state: SinkState, target: TargetTable) -> bool:
    """Whether the target is made: it keeps the marks of restarts, or has the rows."""
    statements, executed = decisions.targets[target].statements, state.executed.get(target, ())
    return not statements or any(key.ordinal >= 0 for key in executed)


def _lets_rows_pass(restarts: Mapping[ShardId, Restart], shard: ShardId) -> bool:
    restart = restarts.get(shard)
    return restart is None or restart.lets_rows_pass


def _undoing(
    target: TargetDecisions, restart: Restart, bound: Mapping[str, Binding], state: SinkState
) -> list[RangeTask]:
    """The tasks that take rows of a restarted shard back: the last ones of each partition."""
    stream = replace(_stream(target, restart.shard, None, state), stop=None, undoes=True)
    size = CHUNK if all(segment.key for segment in stream.segments) else KEYLESS_CHUNK
    return [
        RangeTask(
            topic=partition.topic,
            partition=partition.number,
            start_offset=max(0, end - size),
            end_offset=end,
            stream=stream,
            bindings=bound,
            writer_epoch=state.writer_epoch,
            reading=_UNDOING + restart.index,
        )
        for partition, end in restart.left
    ]


def _shared_out(
    available: Mapping[Partition, tuple[int, int]],
    ordered: Mapping[Stream, Mapping[Partition, tuple[int, int]]],
    state: SinkState,
    max_records: int,
) -> Iterator[tuple[int, dict[Partition, tuple[int, int]]]]:
    """The number of each reading, and its ranges.

    Args:
        available: What may be read of partitions that are nobody's but their own.
        ordered: The same of the partitions of ordered streams.
        state: See ``plan``.
        max_records: See ``plan``.
    """
    closed = {s: closed_ranges(state.ordered[s], ranges) for s, ranges in ordered.items()}
    found: dict[tuple[Partition, int], Reading | OrderedReading] = {
        **readings(available),
        **ordered_readings({s: ranges for s, ranges in closed.items() if ranges}),
    }
    shares = share_fairly({key: reading.size for key, reading in found.items()}, max_records)
    for key, share in shares.items():
        yield key[1], found[key].first(share)


def _plan_target(
    target: TargetDecisions, state: SinkState, restarts: Mapping[ShardId, Restart]
) -> TargetPlan:
    executed = state.executed.get(target.target, ())
    refused = state.refused.get(target.target, {})
    open_now = open_statements(target, executed, refused, state.rows)
    if target.target in state.busy:
        open_now = tuple(executing(statement) for statement in open_now)
    reached = frontier(target, executed)
    own, later = rows_stops(target, open_now), fixup_stops(target, open_now)
    stops = {}
    for shard in target.shards.values():
        name = shard.shard
        restart = restarts.get(name)
        anew = None if restart is None else (restart.index, restart.reason)
        asked = target.awaited.get(name)
        read = None if asked is None else (shard.upto(asked) - 1, _AWAITED)
        waits = (own.get(name), later.get(name), key_stop(shard, state.rows), anew, read)
        first = min((w for w in waits if w is not None), default=None)
        if (stop := first_stop(shard, reached, first)) is not None:
            stops[name] = stop
    return TargetPlan(target.target, reached, open_now, stops)


def _available(
    partition: Partition, end: int, shard: ShardId, stop: Stop | None, state: SinkState
) -> int:
    """How many offsets of a partition may be read now; 0 for a shard that stands at its stop."""
    standing = state.rows.at(partition)
    if end < standing.offset:
        raise ContractError(
            f"{partition} ends at {end}, but rows up to {standing.offset} are applied",
            hint="the row topic was deleted and made anew: merge its shard again from a snapshot",
        )
    if shard in state.resting:
        return 0
    if stop is not None and _stands_at(standing.next_position, stop.position):
        return 0
    truncation = state.truncations.get(shard)
    if truncation is not None and _stands_at(standing.next_position, truncation.position):
        return 0
    return end - standing.offset


def _stands_at(next_position: SourcePosition | None, stop: SourcePosition) -> bool:
    return next_position is not None and next_position >= stop


def _stream(
    target: TargetDecisions, name: ShardId, stop: Stop | None, state: SinkState
) -> ShardStream:
    shard, segments = target.shards[name], []
    undone = undone_upto(shard, state.executed.get(target.target, ())) if shard.restarts else 0
    for index, gate in enumerate(shard.gates):
        if stop is not None and gate.version == stop.gate.version:
            break
        passed_over = gate.passed_over or (gate.live and not _last_gate(shard, gate).live)
        columns, added = _columns(shard, gate)
        segments.append(
            Segment(
                gate.position,
                columns,
                gate.key,
                gate.live,
                passed_over,
                added,
                undone=index < undone,
                began_ms=gate.began_ms,
            )
        )
    if not segments:
        # The shard's first gate is closed: there is no row before it, but the task finds out.
        assert stop is not None
        gate = stop.gate
        segments.append(Segment(gate.position, gate.columns, gate.key, gate.live))
    truncation = state.truncations.get(name)
    places = [place.position for place in (stop, truncation) if place is not None]
    first = min(places, default=None)
    rule = rule_of(state.routes, name)
    watermarks = state.rows.watermarks
    return ShardStream(
        shard=name,
        target=target.target,
        segments=tuple(segments),
        stop=first,
        stop_began_ms=stop.gate.began_ms if stop is not None and stop.position == first else 0,
        partitions=watermarks.partitions.get(watermarks.topics.topic_of(name), 1),
        keeps_truncated=rule is not None and rule.on_truncate is RowsPolicy.KEEP,
        where=rule.where if rule is not None else "",
        is_part=watermarks.topics.is_shared(name),
        ordered=stream_of(name, watermarks.topics) in state.ordered,
        reads_again=name in target.read_again,
    )


def _columns(
    shard: ShardGates, gate: Gate
) -> tuple[tuple[ShardColumn, ...], tuple[ShardColumn, ...]]:
    """The columns of a segment, and those that the shard has got since, as they were added.

    Behind a gate that was held, the shard may have had a column that it dropped again before it
    was released: its value is dropped with it, and the column has no identity here, also when the
    shard has a column of that name, and so of that identity, again. So it is with a column that it
    converted, and is read again for, and with one that a command left out.
    """
    if gate.released_by is None:
        return gate.columns, ()
    last = _last_gate(shard, gate)
    kept = {column.id for column in gate.columns}.difference(gate.left_out)
    added: dict[str, ShardColumn] = {}
    for later in shard.gates[shard.upto(gate.version) : shard.upto(last.version)]:
        kept.difference_update(later.renewed, later.left_out)
        # After a statement that could not be read the columns are not known.
        if later.columns:
            kept.intersection_update(column.id for column in later.columns)
            added = {
                column.id: _as_added(column, added.get(column.id), later)
                for column in later.columns
                if column.id not in kept
            }
    columns = tuple(
        column if column.id in kept else ShardColumn("", column.column) for column in gate.columns
    )
    without = {"", *last.left_out}
    return columns, tuple(column for column in added.values() if column.id not in without)


def _as_added(column: ShardColumn, known: ShardColumn | None, gate: Gate) -> ShardColumn:
    """A column as it was when the shard's rows got it; ``known``: at the gate before this one.

    A later definition counts where it converted the values, or may have.
    """
    if known is None or column.id in gate.renewed:
        return column
    return column if value_change(known.column, column.column) else known


def _last_gate(shard: ShardGates, gate: Gate) -> Gate:
    """The last of the shard's gates that were opened together with a held one.

    A gate that was not held is its own.
    """
    if gate.released_by is None:
        return gate
    return shard.gates[shard.first_blocked(gate.released_by + 1) - 1]
