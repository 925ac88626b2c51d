"""The schemas of a shard's rows, up to the first gate that they may not pass. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from shardmerge.schemas.effects.value_changes import value_change
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.position import BEGINNING, SourcePosition
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.pipeline.routing import rule_of
from shardmerge.spark_sink.barrier.decisions import TargetDecisions
from shardmerge.spark_sink.barrier.gates import Stop
from shardmerge.spark_sink.barrier.partitions import stream_of
from shardmerge.spark_sink.barrier.restarts import undone_upto
from shardmerge.spark_sink.barrier.shard_gates import Gate, ShardGates

from .ranges import Segment, ShardStream
from .sink_state import SinkState


def shard_stream(
    target: TargetDecisions,
    name: ShardId,
    stop: Stop | None,
    state: SinkState,
    *,
    undoes: bool = False,
) -> ShardStream:
    """What a task has to know of a shard's rows: its schemas, gate by gate, and where to stop.

    Where the binlog went back, the rows before the gate are those that are applied. So the rows to
    be applied have the schema behind the gate, whatever their positions.

    Args:
        target: The shard's target.
        name: The shard.
        stop: The first gate that its rows may not pass; None when they may pass all.
        state: See ``SinkState``.
        undoes: See ``ShardStream``; then ``stop`` is None.
    """
    shard, segments = target.shards[name], []
    first = 0 if undoes else max(shard.went_back, 0)
    undone = undone_upto(shard, state.executed.get(target.target, ())) if shard.restarts else 0
    for index, gate in enumerate(shard.gates[first:], first):
        if stop is not None and gate.version == stop.gate.version:
            break
        passed_over = gate.passed_over or (gate.live and not _last_gate(shard, gate).live)
        described = _described(shard, gate)
        columns, added = _columns(shard, gate, described)
        segments.append(
            Segment(
                BEGINNING if first and index == first else gate.position,
                columns,
                described.key,
                gate.live,
                passed_over,
                added,
                undone=index < undone,
                began_ms=gate.began_ms,
            )
        )
    if not segments:
        # The shard's first gate is closed. No row should stand before it; the task checks that.
        assert stop is not None
        gate = stop.gate
        segments.append(Segment(gate.position, gate.columns, gate.key, gate.live))
    truncation = state.truncations.get(name)
    places = [] if stop is None else [stop.rows_from]
    if truncation is not None and not undoes:
        places.append(truncation.position)
    end = min(places, default=None)
    rule = rule_of(state.routes, name)
    watermarks = state.rows.watermarks
    return ShardStream(
        shard=name,
        target=target.target,
        segments=_behind(segments, state.passed_over.get(name)),
        stop=end,
        stop_began_ms=stop.gate.began_ms if stop is not None and stop.rows_from == end else 0,
        undoes=undoes,
        partitions=watermarks.partitions.get(watermarks.topics.topic_of(name), 1),
        keeps_truncated=rule is not None and rule.keeps_truncated,
        where=rule.where if rule is not None else "",
        is_part=watermarks.topics.is_shared(name),
        ordered=stream_of(name, watermarks.topics) in state.ordered,
        reads_again=name in target.read_again,
        ignored=frozenset(rule.ignore) if rule is not None else frozenset(),
        groups=tuple(rule.group_values(name).items()) if rule is not None else (),
    )


def _behind(segments: Sequence[Segment], place: SourcePosition | None) -> tuple[Segment, ...]:
    """The segments, with all rows before a position passed over."""
    before = [segment for segment in segments if place is not None and segment.start < place]
    if place is None or not before:
        return tuple(segments)
    after = segments[len(before) :]
    found = [replace(segment, passed_over=True) for segment in before]
    if not after or after[0].start > place:
        found.append(replace(before[-1], start=place, began_ms=0))
    return (*found, *after)


def _described(shard: ShardGates, gate: Gate) -> Gate:
    """The gate with the columns of the rows behind a gate: mostly the gate itself.

    Behind statements that could not be read the columns are not known until the table is described
    anew, which opens the gates. The description counts from the first of them on: a row that has
    other columns is refused. It says nothing of a table that was dropped meanwhile.
    """
    if gate.columns or gate.released_by is None:
        return gate
    last = _last_gate(shard, gate)
    for later in shard.gates[shard.upto(gate.version) : shard.upto(last.version)]:
        if later.columns or not later.live:
            return later if later.live else gate
    return gate


def _columns(
    shard: ShardGates, gate: Gate, described: Gate
) -> tuple[tuple[ShardColumn, ...], tuple[ShardColumn, ...]]:
    """The columns of a segment, and the columns that the shard got before its release, as added.

    Between a held gate and its release the shard may have dropped a column. Then the values of the
    column are not applied: it has no identity here, even if the shard has got a column of the same
    name, and so of the same identity, again. The same is done with a column whose conversion on the
    shard made a new reading of the shard necessary, and with a column that a command left out.
    """
    if gate.released_by is None:
        return gate.columns, ()
    last = _last_gate(shard, gate)
    kept = {column.id for column in described.columns}.difference(gate.left_out)
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
        column if column.id in kept else ShardColumn("", column.column)
        for column in described.columns
    )
    without = {"", *last.left_out}
    return columns, tuple(column for column in added.values() if column.id not in without)


def _as_added(column: ShardColumn, known: ShardColumn | None, gate: Gate) -> ShardColumn:
    """A column as it was when the shard's rows got it; ``known``: the same at the gate before.

    A later definition replaces the earlier one if it converted the values, or may have.
    """
    if known is None or column.id in gate.renewed:
        return column
    return column if value_change(known.column, column.column) else known


def _last_gate(shard: ShardGates, gate: Gate) -> Gate:
    """The last of the shard's gates that were opened together with a held gate.

    For a gate that was never held it is the gate itself.
    """
    if gate.released_by is None:
        return gate
    return shard.gates[shard.first_blocked(gate.released_by + 1) - 1]
