"""Which partitions have safe rows that are not applied, kept without looking at all of them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from shardmerge.spark_sink.barrier.applied import Watermarks
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.driver.applied_rows import AppliedRows
from shardmerge.spark_sink.planning.ranges import Advance
from tests.unit.spark_sink.decided import A_ROWS, B_ROWS, TARGET


class World:
    """An intake whose safe ends move, and the offsets that the target has stored."""

    def __init__(self) -> None:
        self.safe_ends: dict[Partition, int] = {}
        self.barriers = SimpleNamespace(safe_ends=self.safe_ends)
        self.newly_safe: list[Partition] = []
        self.watermarks, self.looked_at = Watermarks(), dict[Partition, str]()
        self.scans: dict[tuple[str, str], list[int]] = {}
        self.stored = {A_ROWS: 3}
        control = SimpleNamespace(offsets=lambda: self.stored, rows=dict, move=self.move)
        self.rows = AppliedRows(cast(Any, self), cast(Any, control), epoch=1)
        self.rows.load()

    def move(self, epoch: int, moves: list[Advance]) -> None:
        for move in moves:
            self.stored[move.place] = move.next_offset

    def safe(self, ends: dict[Partition, int]) -> None:
        """The ends of some partitions are safe since this round."""
        self.safe_ends.update(ends)
        self.newly_safe = list(ends)
        self.rows.look()


def test_only_partitions_with_safe_rows_that_are_not_applied_are_planned_for() -> None:
    world = World()
    world.safe({A_ROWS: 3, B_ROWS: 5})
    assert list(world.rows.unapplied) == [B_ROWS]
    world.rows.move([Advance(B_ROWS.topic, 0, 0, 5, TARGET, 1, 1, 0)])
    assert list(world.rows.unapplied) == []
    world.safe({A_ROWS: 4})
    assert list(world.rows.unapplied) == [A_ROWS]
    world.stored[A_ROWS] = 4
    world.rows.load()
    assert list(world.rows.unapplied) == [], "a task has committed it, and its answer was lost"


def test_rows_that_are_taken_back_are_planned_for_again() -> None:
    world = World()
    world.safe({A_ROWS: 3})
    world.rows.move([Advance(A_ROWS.topic, 0, 3, 0, TARGET, 0, 0, 0)])
    assert list(world.rows.unapplied) == [A_ROWS]
