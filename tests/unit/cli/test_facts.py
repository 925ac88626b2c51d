from __future__ import annotations

from dataclasses import replace
from typing import Any

from shardmerge.connectors.debezium.signals import Notice
from shardmerge.connectors.kafka.observer import Facts, SourceEvent
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.records.decisions import Decision, Fixup, FixupKind, Outcome, Release
from shardmerge.schemas.records.schema_changes import ChangeId

TARGET = TargetTable("merged", "t")
ONE, TWO = ShardId("s1", "app", "t_1"), ShardId("s2", "app", "t_1")


def decision(version: int, shard: ShardId, outcome: Outcome, **fields: Any) -> Decision:
    base: dict[str, Any] = {"id": ChangeId(shard.source, version)}
    position = SourcePosition(0, "binlog.1", version, 0)
    return Decision(
        **{**base, **fields}, target=TARGET, version=version, shard=shard, position=position,
        outcome=outcome,
    )  # fmt: skip


def facts(*decisions: Decision, events: tuple[SourceEvent, ...] = ()) -> Facts:
    return Facts({"s1": events}, decisions, {}, {}, {})


def test_a_held_shard_is_held_until_a_decision_releases_it() -> None:
    hold = decision(1, ONE, Outcome.HOLD)
    assert facts(hold).held(TARGET) == {ONE: hold}
    release = decision(2, TWO, Outcome.EMIT, releases=(Release(ONE, 1),))
    assert facts(release, hold).held(TARGET) == {}


def test_a_shard_that_is_held_again_stands_at_its_first_gate() -> None:
    first, second = decision(1, ONE, Outcome.HOLD), decision(2, ONE, Outcome.HOLD)
    assert facts(second, first).held(TARGET) == {ONE: first}


def test_a_shard_lives_until_it_leaves() -> None:
    came = [decision(1, TWO, Outcome.EMIT), decision(2, ONE, Outcome.HOLD)]
    assert facts(*came).live(TARGET) == [ONE, TWO]
    assert facts(decision(3, TWO, Outcome.NOOP, live=False), *came).live(TARGET) == [ONE]
    taken_out = replace(decision(3, TWO, Outcome.NOOP, leaves=(TWO,)), shard=None)
    assert facts(taken_out, *came).live(TARGET) == [ONE]
    assert facts(decision(4, TWO, Outcome.EMIT), taken_out, *came).live(TARGET) == [ONE, TWO]


def test_an_event_is_decided_when_all_its_decisions_are_there() -> None:
    events = (SourceEvent("s1", 4, "app", "x"), SourceEvent("s1", 6, "other", "y"))
    halves = [
        decision(number + 1, ONE, Outcome.NOOP, id=ChangeId("s1", 4, number, 2))
        for number in range(2)
    ]
    assert facts(events=events).undecided("s1", ["app"], 9) == [events[0]]
    assert facts(halves[0], events=events).undecided("s1", ["app"], 9) == [events[0]]
    assert facts(*halves, events=events).undecided("s1", ["app"], 9) == []
    assert facts(events=events).undecided("s1", ["app"], 3) == []


def test_a_shard_is_unread_until_its_table_was_read_as_often_as_it_was_asked_for() -> None:
    fixups = (
        Fixup(ONE, FixupKind.SNAPSHOT, ("c",), "differs"),
        Fixup(TWO, FixupKind.ACCEPT, ("c",), "differs"),
    )
    asked = tuple(decision(version, ONE, Outcome.EMIT, fixups=fixups) for version in (1, 2))
    scan = Notice("s1", "x", "TABLE_SCAN_COMPLETED", "SUCCEEDED", "app.t_1")
    other = Notice("s2", "x", "TABLE_SCAN_COMPLETED", "SUCCEEDED", "app.t_1")
    failed = Notice("s1", "x", "TABLE_SCAN_COMPLETED", "SQL_EXCEPTION", "app.t_1")
    cases: tuple[tuple[tuple[Notice, ...], list[ShardId]], ...] = (
        ((), [ONE]),
        ((scan, other), [ONE]),
        ((scan, failed), [ONE]),
        ((scan, scan), []),
    )
    for notices, unread in cases:
        assert Facts({}, asked, {}, {}, {}, notices).unread(TARGET) == unread
