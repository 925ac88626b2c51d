"""Rows written over others: how many a transaction has, and what the sink tells of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.records.decisions import Fixup, FixupKind
from shardmerge.spark_sink.barrier.applied import Reached, RowProgress, Watermarks
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.planning.plan import plan
from shardmerge.spark_sink.planning.sink_state import SinkState
from shardmerge.spark_sink.rows.folding.key_collisions import (
    TELL_S,
    CollisionCount,
    KeyCollisions,
    ShardWrites,
)
from shardmerge.spark_sink.rows.folding.row_batches import Batch
from tests.unit.spark_sink.decided import A_ROWS, TARGET, A, B, decision, folded, rows
from tests.unit.spark_sink.row_events import INT, at, fold, row, segment

BATCH = Batch(("id",), None, ())


@pytest.mark.parametrize(
    ("growth", "grown", "found"),
    [
        (5, [5], 0), (5, [3], 2), (5, [2, 1], 2), (-1, [-1], 0), (0, [-2], 2), (0, [], 0),
        (-1, [0], 0), (3, [4, 3], 0), (None, [0], 0), (5, [None], 0), (5, [1, None], 0),
    ],
)  # fmt: skip
def test_what_a_table_lacks_in_growth_was_overwritten(
    growth: int | None, grown: list[int | None], found: int
) -> None:
    following = iter([*grown, 77])
    assert ShardWrites([BATCH] * len(grown), growth).key_collisions(following) == found
    assert next(following) == 77, "what comes after is of other shards"


def test_the_partitions_of_a_shard_grow_together() -> None:
    folds = [fold(segment(id=INT)), fold(segment(id=INT))]
    for number, f in enumerate(folds):
        assert f.add(0, row("c", {"id": number}, at(100)))
    writes = ShardWrites.of(folds)
    assert (writes.growth, len(writes.batches)) == (2, 1)
    unknown = fold(segment(id=INT), where="id > 0")
    assert ShardWrites.of([*folds, unknown]).growth is None


def test_rows_are_summed_up_and_told_now_and_then() -> None:
    found, progress = KeyCollisions(), rows()
    assert found.due(progress, 0.0) == []
    found.take(TARGET, A, 0, progress)
    assert found.rows == {}
    found.take(TARGET, A, 3, progress)
    assert found.due(progress, 1.0) == [CollisionCount(TARGET, A, 3)]
    found.take(TARGET, A, 2, progress)
    found.take(TARGET, B, 1, progress)
    assert found.due(progress, 2.0) == [CollisionCount(TARGET, B, 1)]
    assert found.due(progress, 1.0 + TELL_S) == [CollisionCount(TARGET, A, 5)]
    assert found.due(progress, 9 * TELL_S) == [], "nothing came"
    assert found.rows == {A: 5, B: 1}


def two_partitions(*reached: int, number: int = 4) -> RowProgress:
    places = [Partition("s1.app.a", n) for n in range(2)]
    marks = Watermarks(9, {"s1.app.a": 2}, dict.fromkeys(places, 10), number=number)
    return RowProgress({}, marks, {p: Reached(9, n) for p, n in zip(places, reached, strict=False)})


def test_of_several_partitions_it_counts_when_no_truncate_can_be_left_before_it() -> None:
    found = KeyCollisions()
    found.take(TARGET, A, 3, two_partitions(4, 4))
    found.take(TARGET, A, 1, two_partitions(4, 4))
    found.take(TARGET, A, 2, two_partitions(5, 4, number=5))
    for progress in (two_partitions(4, 4), two_partitions(6), two_partitions(6, 4)):
        assert found.due(progress, 0.0) == []
    assert found.due(two_partitions(6, 5), 0.0) == [CollisionCount(TARGET, A, 4)]
    assert found.due(two_partitions(6, 6), TELL_S) == [CollisionCount(TARGET, A, 6)]
    assert found.rows == {A: 6}


def test_what_an_emptied_shard_had_pending_is_forgotten() -> None:
    found = KeyCollisions()
    found.take(TARGET, A, 3, two_partitions(4, 4))
    found.forget(A)
    found.forget(B)
    assert found.due(two_partitions(9, 9), 0.0) == []
    assert found.rows == {}


def test_a_shard_with_fix_ups_is_read_again() -> None:
    fixup = Fixup(A, FixupKind.SNAPSHOT, ("id",), "an operator asked for it")
    for fixups, again in (((fixup,), True), ((), False), ((replace(fixup, shard=B),), False)):
        known = folded(
            decision(1, A, 0), decision(2, B, 0), replace(decision(3, B, 5), fixups=fixups)
        )
        state = SinkState(
            {TARGET: set()}, rows=rows({A_ROWS: rows().at(Partition("none", 0))}),
            safe_ends={A_ROWS: 5},
        )  # fmt: skip
        [task] = plan(known, state, 100).tasks
        assert (task.stream.shard, task.stream.reads_again) == (A, again)


def test_a_shard_without_a_topic_has_nothing_to_wait_for_but_a_reading() -> None:
    found, other = KeyCollisions(), ShardId("s9", "app", "z")
    found.take(TARGET, other, 3, rows())
    assert found.due(rows(), 0.0) == []
