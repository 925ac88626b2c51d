from __future__ import annotations

from dataclasses import replace
from typing import Any

from shardmerge.agents.status.view import StatusView
from shardmerge.agents.status.view_metrics import view_samples
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.records.decisions import Decision, Outcome, Release
from shardmerge.schemas.records.schema_changes import ChangeId

T = TargetTable("merged", "t")


def decision(version: int, table: str, outcome: Outcome, **more: Any) -> Decision:
    place = SourcePosition(0, "binlog.000001", version, 0)
    shard = ShardId("s1", "app", table)
    made = Decision(
        ChangeId("s1", version), T, version, shard, place, outcome, ts_ms=version * 1000
    )
    return replace(made, **more)


def values(view: StatusView, now_ms: int) -> dict[tuple[str, ...], object]:
    return {
        (s.family.name.removeprefix("shardmerge_agents_"), *s.labels[1:]): s.value
        for s in view_samples(view, now_ms)
    }


def test_held_shards_are_told_by_kind_and_a_conflict_has_an_age_until_it_is_released() -> None:
    view = StatusView()
    view.apply(decision(1, "a", Outcome.EMIT))
    view.apply(decision(2, "b", Outcome.HOLD, conflict="column a: INT, DATE", code="SM-1203"))
    view.apply(decision(3, "c", Outcome.HOLD))
    found = values(view, 10_000)
    assert found["shards", "live"] == 1
    assert found["shards", "held"] == 2
    assert found["held_shards", "conflict", "SM-1203"] == found["held_shards", "other", ""] == 1
    assert found["held_shards", "conflict", ""] == 0
    assert found["conflict_seconds",] == 8.0
    assert found["decisions_total", "hold"] == 2
    assert found["decided_version",] == 3
    release = Release(ShardId("s1", "app", "b"), 2)
    view.apply(decision(4, "a", Outcome.NOOP, releases=(release,)))
    found = values(view, 20_000)
    assert ("held_shards", "conflict", "SM-1203") not in found
    assert found["held_shards", "conflict", ""] == 0
    assert found["held_shards", "other", ""] == 1
    assert found["conflict_seconds",] == 0.0


def test_a_paused_shard_and_one_that_left_are_counted_as_such() -> None:
    view = StatusView()
    for version, table in enumerate("abc", 1):
        view.apply(decision(version, table, Outcome.EMIT))
    pauses, leaves = (ShardId("s1", "app", "a"),), (ShardId("s1", "app", "b"),)
    view.apply(replace(decision(4, "c", Outcome.NOOP), pauses=pauses, leaves=leaves))
    found = values(view, 0)
    assert [found["shards", state] for state in ("live", "held", "paused", "left")] == [1, 0, 1, 1]
