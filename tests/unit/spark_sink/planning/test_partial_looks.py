"""When all ends are asked for, and which ones otherwise."""

from __future__ import annotations

import pytest

from shardmerge.schemas.model.names import ShardId
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.planning.partial_looks import (
    FEW,
    Behind,
    PartialLooks,
    SeenEnds,
    parts_of,
)

MANY = [Partition(f"s1.app.t{n}", 0) for n in range(FEW)]
ONE, OTHER = MANY[:2]


def looked(took_s: float = 0.5) -> PartialLooks:
    looks = PartialLooks()
    assert looks.wanted((), 0, 0.0, is_calm=True) is None
    looks.took(0.0, took_s)
    return looks


def test_few_partitions_are_asked_for_in_every_round() -> None:
    assert looked().wanted(MANY[1:], FEW - 1, 1.0, is_calm=True) is None


def test_of_many_only_those_are_asked_for_in_which_records_arrived() -> None:
    looks = looked()
    assert looks.wanted(MANY, FEW, 1.0, is_calm=True) == frozenset()
    looks.warm([ONE, Partition("p.ddl", 0)], 2.0)
    assert looks.wanted(MANY, FEW, 2.0, is_calm=True) == frozenset({ONE})
    looks.warm([OTHER], 6.0)
    assert looks.wanted(MANY, FEW, 6.9, is_calm=True) == frozenset({ONE, OTHER})
    assert looks.wanted(MANY, FEW, 7.1, is_calm=True) == frozenset({OTHER})


def test_all_are_asked_for_again_after_a_share_of_the_time_that_the_answer_took() -> None:
    looks = looked(took_s=0.5)
    assert looks.wanted(MANY, FEW, 25.4, is_calm=True) is not None
    assert looks.wanted(MANY, FEW, 25.5, is_calm=True) is None


def test_rows_that_were_seen_do_not_put_off_a_question_for_all_ends_for_long() -> None:
    quick, slow = looked(took_s=0.001), looked(took_s=0.5)
    assert not quick.is_due(0.9)
    assert quick.is_due(1.1)
    assert not slow.is_due(25.4)
    assert slow.is_due(25.5)


def test_the_parts_of_a_shared_partition_count() -> None:
    assert looked().wanted([ONE], FEW, 1.0, is_calm=True) == frozenset()


def test_all_are_asked_for_when_most_are_warm() -> None:
    looks = looked()
    looks.warm(MANY[: FEW // 2 - 1], 1.0)
    assert looks.wanted(MANY[:1], FEW, 1.0, is_calm=True) == frozenset(MANY[:1]), "others lack"
    assert looks.wanted(MANY, FEW, 1.0, is_calm=True) is not None
    looks.warm(MANY[: FEW // 2], 1.0)
    assert looks.wanted(MANY, FEW, 1.0, is_calm=True) is None


def test_that_is_sooner_while_something_waits_for_it() -> None:
    looks = looked(took_s=0.5)
    assert looks.wanted(MANY, FEW, 1.9, is_calm=False) is not None
    assert looks.wanted(MANY, FEW, 2.0, is_calm=False) is None


def test_a_shared_partition_stands_for_its_parts() -> None:
    parts = {Partition("m.t", 0, ShardId(source, "app", "t")): source for source in ("s1", "s2")}
    listed, shared = {ONE: "s1", **parts}, {Partition("m.t", 0): list(parts)}
    assert parts_of({ONE}, listed, shared) == {ONE: "s1"}
    assert parts_of({Partition("m.t", 0)}, listed, shared) == parts


def test_partitions_that_have_grown_stay_until_their_ends_are_safe() -> None:
    known = {ONE: "s1", OTHER: "s1", MANY[2]: "s2"}
    ends, safe = {ONE: 5, OTHER: 5, MANY[2]: 5}, {OTHER: 5}
    behind = Behind()
    behind.take(known, ends, safe)
    assert behind.partitions(()) == {ONE: "s1", MANY[2]: "s2"}
    assert behind.partitions({"s2"}) == {ONE: "s1"}, "its barrier is not settled"
    behind.take({OTHER: "s1"}, ends | {OTHER: 6}, safe)
    assert set(behind.partitions(())) == {ONE, OTHER, MANY[2]}, "one was looked at"
    behind.settled("s1", ends | {OTHER: 6}, {ONE: 4, OTHER: 6})
    assert set(behind.partitions(())) == {ONE, MANY[2]}
    behind.keep({ONE})
    assert behind
    behind.settled("s1", ends, {ONE: 5})
    assert not behind


def test_rows_that_end_a_wait_tell_their_ends() -> None:
    seen = SeenEnds()
    assert seen.take({ONE: 11}, {ONE: 10, OTHER: 5}, 1.0, is_calm=True)
    assert not seen.take({ONE: 13}, {ONE: 11}, 1.1, is_calm=True), "never twice in a row"
    assert seen.take({ONE: 13}, {ONE: 12}, 1.2, is_calm=True)


def test_rows_that_were_not_committed_when_ends_were_asked_for_tell_theirs_too() -> None:
    assert SeenEnds().take({ONE: 11}, {ONE: 11}, 1.0, is_calm=True)


@pytest.mark.parametrize(
    ("arrived", "known", "is_calm"),
    [
        ({}, {ONE: 10}, True),
        ({ONE: 11}, {ONE: 10}, False),
        ({ONE: 0}, {ONE: 10}, True),
        ({ONE: 10}, {ONE: 11}, True),
        ({ONE: 11}, {}, True),
        ({ONE: 11, OTHER: 5}, {ONE: 10, OTHER: 6}, True),
    ],
    ids=["nothing came", "something waits", "an error", "more known", "not listed", "of one, too"],
)
def test_otherwise_the_ends_are_asked_for(
    arrived: dict[Partition, int], known: dict[Partition, int], *, is_calm: bool
) -> None:
    assert not SeenEnds().take(arrived, known, 1.0, is_calm=is_calm)


def test_the_commit_marker_behind_a_row_waits_for_the_next_row_or_a_moment() -> None:
    seen, known = SeenEnds(), {ONE: 10, OTHER: 5}
    assert seen.take({ONE: 11}, known, 1.0, is_calm=True)
    assert not seen.take({}, known, 1.1, is_calm=True)
    assert seen.but_markers({ONE: 12, OTHER: 6}, 1.1) == {ONE: 11, OTHER: 6}
    assert seen.but_markers({OTHER: 6}, 1.2) == {OTHER: 6}
    assert seen.but_markers({ONE: 12, OTHER: 6}, 1.5) == {ONE: 12, OTHER: 6}
    assert seen.take({ONE: 13}, {ONE: 12}, 2.0, is_calm=True)
    assert seen.but_markers({ONE: 15}, 2.1) == {ONE: 15}, "another row came"


def test_a_marker_does_not_wait_when_something_waits_for_the_ends() -> None:
    seen = SeenEnds()
    assert seen.take({ONE: 11}, {ONE: 10}, 1.0, is_calm=True)
    assert not seen.take({}, {ONE: 11}, 1.1, is_calm=False)
    assert seen.but_markers({ONE: 12}, 1.1) == {ONE: 12}
