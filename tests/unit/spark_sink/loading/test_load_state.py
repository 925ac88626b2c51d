from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from shardmerge.spark_sink.loading.chunk_ranges import KeyRange
from shardmerge.spark_sink.loading.load_state import Attempt, Chunk, ChunkState, Load, LoadKind
from tests.unit.spark_sink.loading.loads import SHARD, TARGET, at, done, load


def states(of: Load) -> str:
    return "".join(chunk.state.value[0] for chunk in of.chunks)


def test_a_load_is_complete_when_all_is_read_and_proven() -> None:
    one = load(LoadKind.CHUNKS, "5")
    assert not one.is_read
    one = done(one, 0, 1)
    assert one.is_read
    assert not one.is_complete
    assert one.proven().is_complete


def test_a_snapshot_is_complete_when_it_is_copied() -> None:
    one = done(load(LoadKind.SNAPSHOT), 0, before=7).proven()
    assert one.position == at(7)
    assert not one.is_complete
    assert one.copied().is_complete


def test_chunks_can_be_planned_one_after_the_other() -> None:
    one = Load(SHARD, TARGET, 1, LoadKind.CHUNKS, 1).plan_next(("5",))
    assert not one.is_planned
    assert one.planned_to == ("5",)
    one = one.plan_next(None)
    assert [c.range for c in one.chunks] == [KeyRange(None, ("5",)), KeyRange(("5",), None)]
    assert one.is_planned


def test_what_is_not_planned_is_not_read() -> None:
    one = Load(SHARD, TARGET, 1, LoadKind.CHUNKS, 1).plan_next(("5",))
    assert not done(one, 0).is_read
    assert not Load(SHARD, TARGET, 1, LoadKind.CHUNKS, 1).is_read


def test_a_chunk_is_accepted_once_and_at_its_base_only() -> None:
    one = load(LoadKind.CHUNKS, "5")
    assert not one.accepts(Attempt(0, 1, 0))
    assert not one.accepts(Attempt(0, 1, 1))
    one = one.begin(0)
    assert one.chunks[0].given == Attempt(0, 1, 1)
    assert one.accepts(Attempt(0, 1, 1))
    assert not one.accepts(Attempt(0, 1, 2))
    assert not one.accepts(Attempt(0, 2, 1))
    assert not one.accepts(Attempt(1, 1, 1))
    assert not one.accepts(Attempt(2, 1, 1))
    assert not one.finish(0, 3, 4, at(9)).accepts(Attempt(0, 1, 1))
    assert not one.give_back(0).accepts(Attempt(0, 1, 1))
    assert not one.end_void(2, at(9)).accepts(Attempt(0, 2, 1))


def test_a_chunk_given_out_again_behind_another_base_refuses_the_first_reader() -> None:
    one = load().begin(0).move(2, at(50)).begin(0)
    assert not one.accepts(Attempt(0, 1, 1))
    assert one.accepts(Attempt(0, 2, 2))


@pytest.mark.parametrize(
    "planned_again",
    [
        lambda one: one.give_back(0),
        lambda one: one.give_all_back(),
        lambda one: one.give_back(0).split(0, ("3",)),
        # Its chunks are others, with the same numbers.
        lambda one: one.give_back(0).read_as(LoadKind.SNAPSHOT).plan(),
    ],
)
def test_a_chunk_given_out_again_at_the_same_base_refuses_the_first_reader(
    planned_again: Callable[[Load], Load],
) -> None:
    first = load(LoadKind.CHUNKS, "5").begin(0)
    again = planned_again(first).begin(0)
    assert not again.accepts(first.chunks[0].given)
    assert again.accepts(again.chunks[0].given)
    assert again.chunks[0].given.base == first.chunks[0].given.base


def test_a_new_driver_gives_out_again_what_was_given_out() -> None:
    one = done(load(LoadKind.CHUNKS, "3", "6"), 0).begin(1)
    assert states(one) == "drp"
    assert states(one.give_all_back()) == "dpp"


@pytest.mark.parametrize(("before", "expected"), [(50, "dpp"), (51, "ppp")])
def test_a_base_keeps_chunks_that_were_read_before_the_change(before: int, expected: str) -> None:
    one = done(load(LoadKind.CHUNKS, "3", "6"), 0, before=before).begin(1)
    moved = one.move(2, at(50))
    assert states(moved) == expected
    assert moved.base == 2
    assert moved.begin(1).chunks[1].base == 2


def test_an_order_plans_every_chunk_again() -> None:
    assert states(done(load(LoadKind.CHUNKS, "3"), 0).move(2, at(500), anew=True)) == "pp"


def test_another_key_is_cut_anew() -> None:
    moved = done(load(LoadKind.CHUNKS, "3"), 0).move(2, at(500), new_key=True)
    assert moved.chunks == ()
    assert not moved.is_planned


def test_a_snapshot_begins_anew_behind_another_base() -> None:
    moved = done(load(LoadKind.SNAPSHOT), 0).move(2, at(500))
    assert moved.chunks == ()
    assert moved.position is None
    assert not moved.is_read


@pytest.mark.parametrize(
    "goes_on",
    [
        lambda one: one,
        lambda one: one.move(2, at(50)),
        lambda one: one.move(2, at(500), anew=True),
        lambda one: one.move(2, at(500), new_key=True),
        lambda one: one.move(2, at(500), new_key=True).read_as(LoadKind.SNAPSHOT),
    ],
    ids=["stays", "moves", "anew", "new key", "snapshot"],
)
def test_rows_of_different_moments_stay_so_whatever_the_load_does_next(
    goes_on: Callable[[Load], Load],
) -> None:
    assert goes_on(done(load(), 0)).end_void(3, at(900)).has_mixed_rows
    # The answer to a COMMIT may have been lost.
    assert goes_on(load().begin(0).give_back(0)).end_void(3, at(900)).has_mixed_rows
    assert not goes_on(load()).end_void(3, at(900)).has_mixed_rows
    # An earlier version has stored it.
    stored = replace(done(load(), 0), may_be_mixed=False)
    assert goes_on(stored).end_void(3, at(900)).has_mixed_rows


def test_rows_of_one_moment_are_not_mixed() -> None:
    assert not done(load(LoadKind.SNAPSHOT), 0).has_mixed_rows


def test_a_load_that_begins_again_is_a_snapshot_before_which_rows_go() -> None:
    again = load(LoadKind.CHUNKS, "3").begin(0).give_back(0).begin_again()
    assert (again.kind, again.chunks, again.is_planned) == (LoadKind.SNAPSHOT, (), False)
    assert (again.clears, again.has_mixed_rows) == (True, True)
    assert again.move(2, at(50)).clears, "nothing is deleted yet"
    assert again.cleared() == replace(again, clears=False)


def test_a_table_that_is_gone_leaves_nothing_to_read() -> None:
    one = load(LoadKind.CHUNKS, "3").begin(0).end_void(2, at(9))
    assert one.is_complete
    assert one.running == ()
    assert one.position is None
    assert load(LoadKind.SNAPSHOT).end_void(2, at(9)).position == at(9)


def test_a_chunk_that_is_too_large_is_split() -> None:
    one = done(load(LoadKind.CHUNKS, "3", "6"), 2).begin(1).split(1, ("5",))
    assert states(one) == "ppdp"
    assert [c.number for c in one.chunks] == [0, 1, 2, 3]
    assert [c.range.low for c in one.chunks] == [None, ("3",), ("6",), ("5",)]
    assert [c.range.high for c in one.chunks] == [("3",), ("5",), None, ("6",)]


def test_a_split_does_not_change_where_planning_goes_on() -> None:
    one = Load(SHARD, TARGET, 1, LoadKind.CHUNKS, 1).plan_next(("5",)).split(0, ("2",))
    assert one.plan_next(("9",)).chunks[2].range == KeyRange(("5",), ("9",))


def test_a_load_is_paused_and_resumed() -> None:
    one = load()
    assert one.pause().is_paused
    assert one.pause().resume() == one


def test_a_planned_chunk_remembers_nothing() -> None:
    one = done(load(), 0).move(2, at(1))
    assert one.chunks == (Chunk(0, KeyRange()),)
    forgotten = replace(one, base=1, has_rows=False, attempts=0, may_be_mixed=False)
    assert forgotten == load()
    assert one.chunks[0].state is ChunkState.PLANNED
