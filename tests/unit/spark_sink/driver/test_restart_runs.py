"""Where the hold of a shard is kept whose rows are to be taken out of the target."""

from __future__ import annotations

import pytest

from shardmerge.schemas.records.decisions import Outcome
from shardmerge.spark_sink.barrier.applied import RowProgress, Watermarks
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.barrier.restarts import Restart, Stage
from shardmerge.spark_sink.barrier.shard_gates import Gate
from shardmerge.spark_sink.driver.restart_runs import held_at
from tests.unit.spark_sink.decided import TARGET, A, at


@pytest.mark.parametrize("partitions", [{}, {"s1.app.a": 3}])
def test_a_shard_is_held_at_its_first_partition_even_before_its_topic_is_made(
    partitions: dict[str, int],
) -> None:
    """A table without rows has no topic, and its shard can lead those that are reloaded."""
    gate = Gate(1, at(5), Outcome.EMIT, (), ("id#1",), live=True, seen=1, reloads=True)
    restart = Restart(TARGET, A, gate, 0, Stage.BEGUN, mates=(A,))
    progress = RowProgress({}, Watermarks(partitions=partitions))
    assert held_at(restart, progress) == Partition("s1.app.a", 0)
