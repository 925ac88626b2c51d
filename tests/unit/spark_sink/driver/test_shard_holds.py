"""The shards that stand at a row which cannot be applied."""

from __future__ import annotations

import pytest

from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.driver.shard_holds import ShardHolds
from shardmerge.spark_sink.planning.ranges import RowHold
from tests.unit.spark_sink.decided import A, B, at

ONE, TWO = Partition("a", 0), Partition("b", 0)


def hold(shard=A, offset=7) -> RowHold:
    return RowHold(shard, at(offset), offset, "Data too long", "widen the column")


@pytest.fixture
def now() -> list[float]:
    return [100.0]


@pytest.fixture
def holds(now: list[float]) -> ShardHolds:
    return ShardHolds(30.0, lambda: now[0])


def test_a_held_shard_rests_until_its_row_is_tried_again(
    holds: ShardHolds, now: list[float]
) -> None:
    holds.hold(ONE, hold())
    now[0] += 29.9
    assert holds.resting() == {A: at(7)}
    now[0] += 0.1
    assert holds.resting() == {}
    assert holds.by_shard() == {A: hold()}, "it is held all the same"


def test_a_row_that_is_refused_again_rests_again(holds: ShardHolds, now: list[float]) -> None:
    holds.hold(ONE, hold())
    now[0] += 40
    holds.hold(ONE, hold(offset=9))
    assert holds.resting() == {A: at(9)}


def test_only_the_partitions_that_are_named_are_released(holds: ShardHolds) -> None:
    holds.hold(ONE, hold())
    holds.hold(TWO, hold(B))
    holds.release([ONE, Partition("c", 0)])
    assert holds.by_shard() == {B: hold(B)}


def test_the_log_tells_of_a_hold_once(holds: ShardHolds, caplog: pytest.LogCaptureFixture) -> None:
    for offset in (7, 7, 9):
        holds.hold(ONE, hold(offset=offset))
    assert [record.__dict__["event"] for record in caplog.records] == ["shard_held"] * 2
