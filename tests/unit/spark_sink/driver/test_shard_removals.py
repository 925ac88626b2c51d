"""Rows of shards that go: what becomes of the shard when the target ends, or refuses, it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from shardmerge.schemas.model.errors import TargetError, TargetLost, WriterReplaced
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.barrier.truncations import Truncation
from shardmerge.spark_sink.driver.shard_holds import ShardHolds
from shardmerge.spark_sink.driver.shard_removals import ShardRemovals
from shardmerge.spark_sink.driver.statement_runs import RemovalResult
from shardmerge.spark_sink.targets.interface import taken_over
from tests.unit.spark_sink.decided import TARGET, A, at

ROWS = Partition("s1.app.a", 0)


def truncation(offset: int) -> Truncation:
    return Truncation(TARGET, A, ROWS, offset, at(offset), 1, 1)


@pytest.fixture
def holds() -> ShardHolds:
    return ShardHolds(30.0)


@pytest.fixture
def removals(holds: ShardHolds) -> ShardRemovals:
    nothing = cast(Any, SimpleNamespace())
    return ShardRemovals(
        nothing, nothing, nothing, nothing,
        intake=nothing, outcomes=nothing, rows=nothing, holds=holds,
    )  # fmt: skip


def test_the_first_truncate_of_a_shard_is_carried_out_first(removals: ShardRemovals) -> None:
    removals.meet(truncation(7))
    removals.meet(truncation(9))
    assert removals.truncations == {A: truncation(7)}
    removals.meet(truncation(5))
    assert removals.truncations == {A: truncation(5)}


@pytest.mark.parametrize(
    ("error", "what"),
    [
        (TargetError("a foreign key forbids it", number=1451, hint="drop it"), "refuses it"),
        (TargetError("Lost connection [2013]", retryable=True), "cannot do it now"),
    ],
)
def test_a_shard_whose_rows_the_target_does_not_delete_is_held(
    removals: ShardRemovals, holds: ShardHolds, error: TargetError, what: str
) -> None:
    removals.meet(truncation(7))
    removals.take(RemovalResult(truncation(7), 5, error))
    hold = holds.by_shard()[A]
    assert (hold.offset, hold.hint) == (7, error.hint)
    assert hold.reason == f"TRUNCATE TABLE: the target {what}: {error.message}"
    assert removals.truncations == {}, "the task that meets the event again begins anew"


@pytest.mark.parametrize("error", [taken_over(3, 2), TargetLost("Spark's JVM is gone")])
def test_a_sink_that_lost_its_target_holds_nobody(
    removals: ShardRemovals, holds: ShardHolds, error: TargetLost
) -> None:
    with pytest.raises(type(error)):
        removals.take(RemovalResult(truncation(7), 5, error))
    assert holds.by_shard() == {}
    assert isinstance(taken_over(3, 2), WriterReplaced)
