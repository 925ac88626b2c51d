"""Which shards wait until their tables are read as a whole."""

from __future__ import annotations

import itertools
from typing import Any

from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import BEGINNING
from shardmerge.schemas.records.awaited_readings import AwaitedReadings
from shardmerge.schemas.records.decisions import Decision, Fixup, FixupKind, Outcome
from shardmerge.schemas.records.reloads import Reload
from shardmerge.schemas.records.schema_changes import ChangeId

TARGET = TargetTable("m", "t")
A, B = ShardId("s1", "app", "t"), ShardId("s2", "app", "t")


def decision(version: int, *asked: ShardId, shard: ShardId = A, **more: Any) -> Decision:
    fixups = tuple(Fixup(name, FixupKind.WHOLE, ("c",), "no key") for name in asked)
    id_ = ChangeId("s1", version)
    return Decision(id_, TARGET, version, shard, BEGINNING, Outcome.EMIT, fixups=fixups, **more)


def reloads(*shards: ShardId) -> tuple[Reload, ...]:
    return tuple(Reload(shard, BEGINNING, 7) for shard in shards)


def folded(*decisions: Decision) -> AwaitedReadings:
    readings = AwaitedReadings()
    for one in decisions:
        readings.take(one)
    return readings


def test_a_shard_waits_from_the_first_decision_that_asks_and_is_read_for_the_last() -> None:
    readings = folded(decision(3, A), decision(5, A))
    assert (readings.since(A), readings.since(B)) == (3, None)
    assert readings.latest() == {A: 5}


def test_an_answer_ends_what_was_asked_before_it() -> None:
    readings = folded(decision(3, A, B), decision(4, reloads=reloads(A)))
    assert (readings.since(A), readings.latest()) == (None, {B: 3})
    readings.take(decision(6, A))
    assert readings.since(A) == 6


def test_a_decision_that_answers_a_shard_and_asks_again_leaves_it_waiting() -> None:
    readings = folded(decision(3, A), decision(4, A, reloads=reloads(A)))
    assert (readings.since(A), readings.latest()) == (4, {A: 4})


def test_a_shard_that_is_dropped_or_taken_out_waits_no_more() -> None:
    assert folded(decision(3, A, B), decision(4, live=False)).latest() == {B: 3}
    assert folded(decision(3, A, B), decision(4, leaves=(B,))).latest() == {A: 3}


def test_neither_order_nor_repetition_matters() -> None:
    records = [
        decision(1, A, B),
        decision(2, reloads=reloads(A, B)),
        decision(3, A),
        decision(4, A, B),
        decision(5, shard=B, live=False),
    ]
    for order in itertools.permutations(records):
        readings = folded(*order, *order[:2])
        assert (readings.since(A), readings.latest()) == (3, {A: 4})
