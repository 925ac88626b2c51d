"""Which partitions have safe rows that are not applied, kept without looking at all of them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from shardmerge.schemas.model.errors import TargetClosed, TargetError
from shardmerge.spark_sink.barrier.applied import Watermarks
from shardmerge.spark_sink.barrier.barrier import Barriers
from shardmerge.spark_sink.barrier.partitions import IdleParts, Partition
from shardmerge.spark_sink.driver.applied_rows import AppliedRows
from shardmerge.spark_sink.planning.ranges import Advance
from tests.unit.spark_sink.decided import A_ROWS, B_ROWS, TARGET, A

PART = Partition("all", 0, A)


class World:
    """An intake whose safe ends move, and the offsets that the target has stored."""

    def __init__(self) -> None:
        self.barriers = Barriers([])
        self.safe_ends = self.barriers.safe_ends
        self.newly_safe: list[Partition] = []
        self.watermarks, self.looked_at = Watermarks(), dict[Partition, str]()
        self.scans: dict[tuple[str, str], list[int]] = {}
        self.idle, self.is_closed, self.loses_answer = IdleParts(), False, False
        self.decisions = SimpleNamespace(streams={PART.stream: [(TARGET, PART.shard)]})
        self.stored = {A_ROWS: 3}
        control = SimpleNamespace(offsets=lambda: self.stored, rows=dict, move=self.move)
        self.rows = AppliedRows(cast(Any, self), cast(Any, control), epoch=1)
        self.rows.load()

    def move(self, epoch: int, moves: list[Advance], target: object = None) -> None:
        if self.is_closed:
            raise TargetClosed("it was cut over")
        for move in moves:
            assert self.stored.get(move.place, 0) == move.start_offset
            self.stored[move.place] = move.next_offset
        if self.loses_answer:
            raise TargetError("Lost connection during query [2013]", number=2013, retryable=True)

    def rest(self, part: Partition) -> None:
        self.idle.rest(part)

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


def idle_world() -> World:
    """A shard of a shared topic stands at 7, and is stored at 3."""
    world = World()
    world.stored[PART] = 3
    world.rows.load()
    world.idle.bases[PART.whole] = 3
    world.safe({PART: 3})
    world.idle.bases[PART.whole] = 7
    return world


def test_where_an_idle_shard_stands_is_stored_now_and_then() -> None:
    world = idle_world()
    assert world.rows.progress.at(PART).offset == 7
    assert world.rows.progress.stored(PART) == 3
    world.rows.store_idle(100.0)
    assert world.stored[PART] == 7
    world.idle.bases[PART.whole] = 8
    world.rows.store_idle(100.5)
    assert world.stored[PART] == 7, "not so soon again"
    world.rows.store_idle(1e9)
    assert world.stored[PART] == 8
    assert list(world.rows.unapplied) == []


def test_the_offsets_of_a_closed_target_stay() -> None:
    world = idle_world()
    world.is_closed = True
    world.rows.store_idle(100.0)
    assert world.stored[PART] == 3
    world.is_closed = False
    world.rows.store_idle(1e9)
    assert world.stored[PART] == 7


def test_an_idle_shard_is_set_back_from_what_is_stored() -> None:
    world = idle_world()
    world.rows.move([Advance(*PART[:2], 7, 1, TARGET, 0, 0, 0, A)])
    assert world.stored[PART] == 1
    assert world.rows.progress.at(PART).offset == 1
    assert list(world.rows.unapplied) == [PART]


def test_an_idle_shard_that_is_set_back_ends_where_it_was_idle() -> None:
    world = idle_world()
    before = world.safe_ends[PART]
    world.rows.move([Advance(*PART[:2], 7, before + 1, TARGET, 0, 0, 0, A)])
    assert world.safe_ends[PART] == 7, "it has no rows from its own end up to there"


def test_offsets_whose_commit_got_no_answer_are_read_again() -> None:
    world = World()
    back = [Advance(A_ROWS.topic, 0, 3, 1, TARGET, 0, 0, 0)]
    world.loses_answer = True
    with pytest.raises(TargetError, match="Lost connection"):
        world.rows.move(back)
    world.loses_answer = False
    world.rows.renew()
    assert world.rows.progress.at(A_ROWS).offset == 1
    world.rows.move([Advance(A_ROWS.topic, 0, 1, 5, TARGET, 0, 0, 0)])
    assert world.stored[A_ROWS] == 5


def test_idle_shards_go_on_when_the_answer_to_their_commit_is_lost() -> None:
    world = idle_world()
    world.loses_answer = True
    with pytest.raises(TargetError, match="Lost connection"):
        world.rows.store_idle(10.0)
    world.loses_answer = False
    world.rows.renew()
    world.idle.bases[PART.whole] = 9
    world.safe({PART: 9})
    world.rows.store_idle(20.0)
    assert world.stored[PART] == 9
