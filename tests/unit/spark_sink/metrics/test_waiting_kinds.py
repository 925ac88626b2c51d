from __future__ import annotations

import pytest

from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.records.decisions import Outcome
from shardmerge.schemas.records.progress import ShardProgress
from shardmerge.spark_sink.barrier.gates import Stop
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.barrier.shard_gates import Gate
from shardmerge.spark_sink.barrier.truncations import Truncation
from shardmerge.spark_sink.metrics.waiting_kinds import WaitingKind, waiting_kind
from shardmerge.spark_sink.planning.plan import TargetPlan
from shardmerge.spark_sink.planning.progress import Standing
from shardmerge.spark_sink.planning.ranges import RowHold

SHARD, TARGET = ShardId("s1", "app", "t"), TargetTable("merged", "t")
PLACE = SourcePosition(0, "binlog.000001", 100, 0)


def kind(
    *,
    waiting: str = "why",
    stop: Stop | None = None,
    standing: Standing | None = None,
    paused: bool = False,
    unread: bool = False,
) -> WaitingKind | None:
    plan = TargetPlan(TARGET, 1, (), {SHARD: stop} if stop else {})
    progress = ShardProgress(SHARD, 0, waiting, position=PLACE)
    return waiting_kind(
        progress, plan, standing or Standing(), paused=[SHARD] if paused else [], unread=unread
    )


def stop(held: bool) -> Stop:
    return Stop(Gate(1, PLACE, Outcome.HOLD, (), (), True, 1), held, "why", "", "", PLACE)


HOLD = Standing(holds={SHARD: RowHold(SHARD, PLACE, 5, "why", "")})
TRUNCATED = Standing(
    truncations={SHARD: Truncation(TARGET, SHARD, Partition("t", 0), 5, PLACE, 1, 1)}
)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"waiting": ""}, None),
        ({}, WaitingKind.BARRIER),
        ({"stop": stop(False)}, WaitingKind.BARRIER),
        ({"stop": stop(True)}, WaitingKind.DECISION),
        ({"standing": TRUNCATED}, WaitingKind.TRUNCATE),
        ({"paused": True, "stop": stop(True)}, WaitingKind.PAUSED),
        ({"standing": HOLD, "paused": True}, WaitingKind.ROW),
        ({"standing": HOLD, "unread": True}, WaitingKind.TOPIC),
    ],
)
def test_a_wait_has_one_kind(given, expected) -> None:
    assert kind(**given) is expected


def test_a_shard_is_held_when_it_waits_until_somebody_acts() -> None:
    held = {each for each in WaitingKind if each.is_held}
    assert held == set(WaitingKind) - {WaitingKind.TRUNCATE, WaitingKind.BARRIER}
