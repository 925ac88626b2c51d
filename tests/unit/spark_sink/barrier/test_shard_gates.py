"""Gates of a shard: which are passed from which version on."""

from __future__ import annotations

from dataclasses import replace

from shardmerge.schemas.model.origin import Origin, OriginColumn, OriginPart
from tests.unit.spark_sink.decided import TARGET, A, B, decision, folded


def test_every_gate_of_a_hold_opens_with_the_decision_that_releases():
    known = folded(
        decision(1, A, 10),
        decision(2, A, 20, hold=True),
        decision(3, A, 30, hold=True),
        decision(4, B, 5, releases=(A,)),
        decision(5, A, 50),
    )
    gates = known.targets[TARGET].shards[A].gates
    assert [gate.effective_version for gate in gates] == [1, 4, 4, 5]
    assert [known.targets[TARGET].shards[A].first_blocked(v) for v in (1, 2, 4, 5, 6)] == [
        0, 1, 1, 3, 4,
    ]  # fmt: skip


def test_a_held_gate_blocks_everything_behind_it():
    known = folded(decision(1, A, 10), decision(2, A, 20, hold=True), decision(3, A, 30))
    assert known.targets[TARGET].shards[A].first_blocked(1_000) == 1


def test_releasing_a_shard_that_is_not_known_opens_nothing():
    known = folded(decision(1, A, 10, hold=True), decision(2, A, 20, releases=(B,)))
    assert known.targets[TARGET].shards[A].gates[0].effective_version is None


def test_a_rebuilt_table_s_origin_columns_are_those_of_all_gates():
    apart = Origin((OriginColumn(OriginPart.SHARD, "_shard"),), in_keys=True)
    renewal = replace(decision(4, B, 40), origin=apart)
    later = replace(decision(5, A, 50), key=("id", "_shard"))
    known = folded(decision(1, A, 10), decision(2, A, 20), decision(3, B, 30), renewal)
    known.add(replace(later, columns=known.targets[TARGET].shards[A].gates[-1].columns))
    for shard in (A, B):
        gates = known.targets[TARGET].shards[shard]
        assert {gate.key for gate in gates.gates} == {("id", "_shard")}
        assert {gate.columns[-1].id for gate in gates.gates} == {"@shard"}
        assert gates.key_changes == [], "message keys have no origin columns"
