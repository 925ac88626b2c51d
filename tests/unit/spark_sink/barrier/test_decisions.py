from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import BEGINNING
from shardmerge.spark_sink.barrier.decisions import Decisions
from shardmerge.spark_sink.barrier.partitions import Stream
from tests.unit.spark_sink.decided import TARGET, A, B, C, at, decision, folded, ignored


def test_a_decision_stands_at_the_position_of_its_change():
    known = folded(decision(1, A, 10), decision(2, B, 20), decision(3, A, 30))
    gates = known.targets[TARGET].shards[A].gates
    assert [(gate.version, gate.position) for gate in gates] == [(1, at(10)), (3, at(30))]


def test_the_first_description_of_a_snapshot_holds_for_every_row():
    known = folded(decision(1, A, 50, snapshot=True), decision(2, A, 60, snapshot=True))
    assert [g.position for g in known.targets[TARGET].shards[A].gates] == [BEGINNING, at(60)]


def test_a_repeated_record_is_harmless():
    known = folded(decision(1, A, 10))
    assert known.add(decision(1, A, 10)) is False
    assert known.seen == 1


def test_the_same_key_with_other_content_breaks_the_contract():
    known = folded(decision(1, A, 10))
    with pytest.raises(ContractError, match="two different decisions"):
        known.add(decision(1, A, 11))


def test_decisions_behind_a_gap_wait_until_it_is_filled():
    known = folded(decision(1, A, 10))
    assert known.add(decision(3, A, 30)) is False
    assert known.targets[TARGET].version == 1
    assert not known.is_decided("s1", 3)
    assert known.add(decision(2, B, 20)) is True
    assert known.targets[TARGET].version == 3
    assert known.is_decided("s1", 3)


def test_a_change_is_decided_when_all_its_decisions_are_there():
    known = folded(decision(1, A, 10, offset=7, ordinal=0, count=2))
    assert not known.is_decided("s1", 7)
    known.add(decision(2, B, 10, offset=7, ordinal=1, count=2))
    assert known.is_decided("s1", 7)


def test_an_ignored_change_is_decided_too():
    assert folded(ignored("s1", 4)).is_decided("s1", 4)
    assert not folded(ignored("s1", 4)).is_decided("s2", 4)


def test_a_gate_before_its_predecessor_breaks_the_contract():
    known = folded(decision(1, A, 10))
    with pytest.raises(ContractError, match="before the gate"):
        known.add(decision(2, A, 9))


def test_two_targets_count_their_versions_apart():
    other = replace(decision(1, B, 5), target=TargetTable("merged", "u"))
    known = folded(decision(1, A, 10), other)
    assert {target.version for target in known.targets.values()} == {1}


def test_two_shards_of_one_topic_are_both_named():
    dotted = ShardId("s1", "app", "a b"), ShardId("s1", "app", "a_b")
    known = folded(decision(1, dotted[0], 1), decision(2, dotted[1], 2))
    assert [shard for _, shard in known.streams[Stream("s1.app.a_b")]] == list(dotted)


def test_nothing_is_known_at_first():
    assert Decisions().targets == {}
    assert not Decisions().is_decided("s1", 0)


def test_only_the_shards_behind_the_frontier_are_found_and_those_that_are_held() -> None:
    decisions = folded(decision(1, A, 10), decision(2, B, 20), decision(3, C, 30))
    target = decisions.targets[TARGET]
    assert target.stopped_at(4) == []
    assert target.stopped_at(2) == [C, B]
    decisions.add(decision(4, A, 40, hold=True))
    assert target.stopped_at(5) == [A]
    decisions.add(decision(5, B, 50, releases=(A,)))
    assert target.stopped_at(6) == []
    assert set(target.stopped_at(5)) == {A, B}
    assert set(target.stopped_at(3)) == {A, B, C}
