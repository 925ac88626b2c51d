"""What must be true of a barrier's world when everything has arrived and the sink is at rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.records.decisions import Outcome, StatementKind, TargetStatement
from shardmerge.spark_sink.barrier.decisions import Decisions, StatementKey
from shardmerge.spark_sink.barrier.passed_debts import carried_debts
from shardmerge.spark_sink.barrier.shard_gates import Gate
from shardmerge.spark_sink.barrier.statements import bindings, void_debts
from shardmerge.spark_sink.rows.folding.segment_locator import is_behind
from tests.properties.barrier_world import SHARDS, TARGET, BarrierWorld
from tests.toy_kafka import Row, ToySource


def check_statements(world: BarrierWorld, known: Decisions) -> None:
    """No standstill: nothing is left but what stands behind a hold."""
    statements = known.targets[TARGET].statements if TARGET in known.targets else {}
    done = set(world.target.executed)
    if TARGET in known.targets:
        carried = carried_debts(statements, done)
        done |= void_debts(known.targets[TARGET], done) - carried.keys()
        # Of a held shard, values that the target minds may stand behind its gate.
        done |= world.sink.refused.keys() if world.state.held else set()
    left = [key for key in statements if key not in done]
    if not world.sink.stuck:
        assert not left, [statements[key] for key in left]
    else:
        # Debts may wait for a shard that stands for good, and others for those debts.
        for key in left:
            expanding = statements[key].kind is StatementKind.EXPANDING
            assert not expanding or _waits(key, left, statements)


def check_rows(world: BarrierWorld, known: Decisions) -> None:
    """Every row event before a held gate is applied, and none behind it."""
    for source in world.sources.values():
        _check_rows(world, source, known)


def _check_rows(world: BarrierWorld, source: ToySource, known: Decisions) -> None:
    for shard in SHARDS:
        gates = known.targets[TARGET].shards.get(shard) if TARGET in known.targets else None
        if shard.source != source.name or gates is None or shard in world.sink.stuck:
            continue
        held = next((g for g in gates.gates if g.effective_version is None), None)
        rows = [e for e in source.sent if isinstance(e, Row) and e.shard == shard]
        wanted = {r.number for r in rows if held is None or not _is_behind(r, held)}
        got = {r.number for r in rows} & world.target.all_taken
        if world.sink.stuck:
            assert got <= wanted
        else:
            assert got == wanted


def check_cells(world: BarrierWorld, known: Decisions) -> None:
    """The target holds what the last applied event of each key wrote."""
    if TARGET not in known.targets:
        return
    taken, target = world.target.all_taken, world.target
    bound = bindings(known.targets[TARGET], target.executed)
    last: dict[int, Row] = {}
    for source in world.sources.values():
        for event in source.sent:
            if not isinstance(event, Row) or event.number not in taken:
                continue
            if world.was_taken_back(event, known):
                continue
            if event.number in target.passed_over:
                _check_passed_over(event, known)
            else:
                last[event.key] = event
    assert set(target.cells) == {key for key, row in last.items() if row.image is not None}
    for key, row in last.items():
        gate = _gate_of(known, row)
        for shard_column in gate.columns if row.image is not None else ():
            assert row.image is not None
            binding = bound.get(shard_column.id)
            if binding is None or binding.name in target.converted:
                continue
            if _dropped_behind_the_hold(known, row.shard, gate, shard_column.id):
                continue
            if key in target.orphans and binding.name not in target.cells[key]:
                continue
            found = target.cells[key].get(binding.name, "no value")
            assert found == row.image[shard_column.column.name]


def _check_passed_over(row: Row, known: Decisions) -> None:
    """Its shard was held before it, and dropped or taken out after it while it still was."""
    gates = known.targets[TARGET].shards[row.shard].gates
    held = [g for g in gates if g.outcome is Outcome.HOLD and g.position <= row.position]
    ends = {g.version for g in gates if not g.live and g.position > row.position}
    assert held[-1].passed_over or held[-1].released_by in ends


def _gate_of(known: Decisions, row: Row) -> Gate:
    gates = known.targets[TARGET].shards[row.shard].gates
    return [g for g in gates if _is_behind(row, g)][-1]


def _is_behind(row: Row, gate: Gate) -> bool:
    return is_behind(cast(Any, row), row.position, gate.position, gate.began_ms)


def _dropped_behind_the_hold(known: Decisions, shard: ShardId, gate: Gate, column: str) -> bool:
    """Whether the shard gave the column up before its hold was ended: its value goes too.

    So it does where the shard has the column again, or converted it, or a command left it out.
    """
    if gate.released_by is None:
        return False
    if column in gate.left_out:
        return True
    gates = known.targets[TARGET].shards[shard].gates
    later = [g for g in gates if gate.version < g.version <= gate.released_by]
    return any(
        column in (*g.renewed, *g.left_out) or column not in {c.id for c in g.columns}
        for g in later
    )


def _waits(
    key: StatementKey,
    left: Sequence[StatementKey],
    statements: Mapping[StatementKey, TargetStatement],
) -> bool:
    """Whether an earlier open statement has a subject in common with this one."""
    mine = set(statements[key].subjects)
    for other in left:
        theirs = set(statements[other].subjects)
        if other < key and (mine & theirs or "table" in mine | theirs):
            return True
    return False
