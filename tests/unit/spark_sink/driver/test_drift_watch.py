"""When the target's tables are looked at, and what counts of what is found."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from shardmerge.schemas.model.errors import TargetError
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.records.drift import Difference, DriftKind
from shardmerge.spark_sink.barrier.decisions import StatementKey
from shardmerge.spark_sink.driver.drift_watch import DriftWatch
from shardmerge.spark_sink.targets.drift_interface import Look

T, U = TargetTable("m", "t"), TargetTable("m", "u")
EXECUTED = {T: {StatementKey(1, 0)}, U: {StatementKey(1, 0)}}
INDEX = Difference("index:i", DriftKind.HARMLESS, "", "INDEX `i` (`a`)")
MUST = Difference("column:c", DriftKind.REFUSES, "", "`c` int NOT NULL")


class Store:
    """Keeps in memory; fails when told to."""

    def __init__(self) -> None:
        self.kept: dict[TargetTable, tuple[Difference, ...]] = {}
        self.fails = False

    def load(self) -> dict[TargetTable, tuple[Difference, ...]]:
        return dict(self.kept)

    def keep(self, epoch: int, target: TargetTable, differences: Sequence[Difference]) -> None:
        if self.fails:
            raise TargetError("away", retryable=True, code="SM-3111")
        assert epoch == 7
        self.kept[target] = tuple(differences)


class Looks:
    """Answers with what is set; compares all tables."""

    def __init__(self) -> None:
        self.answer: dict[TargetTable, tuple[Difference, ...]] = {T: (), U: ()}
        self.left = 0
        self.error: Exception | None = None
        self.unchanged: set[TargetTable] = set()
        self.failed: dict[TargetTable, Exception] = {}
        self.asked: list[Mapping[TargetTable, int]] = []

    def look(self, tables: Mapping[TargetTable, int]) -> Look:
        self.asked.append(dict(tables))
        if self.error is not None:
            raise self.error
        compared = {t: self.answer[t] for t in tables if t in self.answer}
        return Look(compared, self.left, frozenset(self.unchanged), dict(self.failed))

    def close(self) -> None:
        pass


class World:
    """A watch with a clock that a test moves."""

    def __init__(self, interval_s: float = 60) -> None:
        self.now = 100.0
        self.store, self.looks = Store(), Looks()
        self.watch = DriftWatch(
            self.store, lambda: self.looks, interval_s, 7,
            clock=lambda: self.now, now_ms=lambda: round(self.now * 1000),
        )  # fmt: skip

    def look(self, busy: frozenset[TargetTable] = frozenset()) -> None:
        """Begin the look that is due, and take it."""
        count = len(self.looks.asked)
        self.watch.step(EXECUTED, busy)
        deadline = time.monotonic() + 10
        while len(self.looks.asked) == count and time.monotonic() < deadline:
            time.sleep(0.001)
        assert len(self.looks.asked) == count + 1
        while self.watch.looks and time.monotonic() < deadline:
            self.watch.step({}, busy)
        assert not self.watch.looks

    def look_after(self, seconds: float) -> None:
        """Look once when so much time has passed."""
        self.now += seconds
        self.look()


def test_a_difference_is_kept_with_the_times_between_which_it_came() -> None:
    world = World()
    world.look()
    assert world.watch.differences == {}
    world.now += 60
    world.looks.answer[T] = (MUST,)
    world.look()
    [found] = world.watch.differences[T]
    assert (found.clear_ms, found.since_ms) == (100_000, 160_000)
    assert world.store.kept == {T: (found,)}
    world.now += 60
    world.look()
    assert world.watch.differences == {T: (found,)}


def test_what_ended_is_told_no_more() -> None:
    world = World()
    world.looks.answer[T] = (MUST, INDEX)
    world.look()
    assert [each.clear_ms for each in world.watch.differences[T]] == [0, 0]
    world.looks.answer[T] = ()
    world.now += 60
    world.look()
    assert (world.watch.differences, world.store.kept) == ({}, {T: ()})


def test_a_look_waits_for_its_time() -> None:
    world = World()
    world.look()
    world.watch.step(EXECUTED, ())
    assert len(world.looks.asked) == 1
    world.watch.ended()
    world.now += 1
    world.look()


def test_a_look_that_left_tables_is_followed_by_another_one() -> None:
    world = World()
    world.looks.left = 3
    world.look()
    world.now += 1
    world.look()


def test_a_busy_target_is_not_looked_at() -> None:
    world = World()
    world.look(frozenset({U}))
    assert world.looks.asked == [{T: 0}]


def test_a_table_on_which_a_statement_began_meanwhile_does_not_count() -> None:
    world = World()
    world.looks.answer[T] = world.looks.answer[U] = (MUST,)
    world.watch.step(EXECUTED, ())
    world.watch.begun(T)
    deadline = time.monotonic() + 10
    while world.watch.looks and time.monotonic() < deadline:
        world.watch.step({}, {T})
    assert set(world.watch.differences) == {U}
    world.now += 60
    world.look()
    assert world.looks.asked[-1] == {T: 1, U: 0}
    assert set(world.watch.differences) == {T, U}


@pytest.mark.parametrize("error", [TargetError("away", retryable=True), ValueError("a defect")])
def test_a_look_that_fails_stops_nothing_and_is_repeated(error: Exception) -> None:
    world = World()
    world.looks.error = error
    world.look()
    world.looks.error = None
    world.looks.answer[T] = (MUST,)
    world.now += 60
    world.look()
    assert set(world.watch.differences) == {T}


def test_what_could_not_be_kept_is_compared_again() -> None:
    world = World()
    world.looks.answer[T] = (MUST,)
    world.store.fails = True
    with pytest.raises(TargetError, match="away"):
        world.look()
    world.store.fails = False
    world.now += 60
    world.look()
    assert world.looks.asked[-1] == {T: 1, U: 1}
    assert set(world.watch.differences) == {T}


def test_without_a_store_or_an_interval_nothing_is_looked_at() -> None:
    world = World(interval_s=0)
    world.watch.load()
    world.watch.step(EXECUTED, ())
    assert (world.looks.asked, world.watch.looks) == ([], False)


def test_a_sink_that_starts_again_keeps_the_times() -> None:
    world = World()
    known = replace(MUST, since_ms=7, clear_ms=3)
    world.store.kept[T] = (known,)
    world.watch.load()
    world.looks.answer[T] = (INDEX, MUST)
    world.look()
    index, must = world.watch.differences[T]
    assert must == known
    assert (index.since_ms, index.clear_ms) == (100_000, 0)


CHECK = Difference("check:k", DriftKind.REFUSES, "", "CHECK (`a` > 0)")


def test_a_table_that_was_not_compared_was_not_seen_as_decided() -> None:
    world = World()
    world.look()
    del world.looks.answer[T]
    world.now += 60
    world.look()
    world.looks.answer[T] = (MUST,)
    world.now += 60
    world.look()
    [found] = world.watch.differences[T]
    assert (found.clear_ms, found.since_ms) == (100_000, 220_000)


def test_an_unchanged_fingerprint_proves_only_what_fingerprints_show() -> None:
    world = World()
    world.look()
    del world.looks.answer[T]
    world.looks.unchanged = {T}
    world.now += 60
    world.look()
    world.looks.answer[T], world.looks.unchanged = (CHECK, MUST), set()
    world.now += 60
    world.look()
    assert {d.subject: d.clear_ms for d in world.watch.differences[T]} == {
        "check:k": 100_000, "column:c": 160_000,
    }  # fmt: skip


def test_what_an_unchanged_fingerprint_did_not_show_came_after_the_last_comparison() -> None:
    world = World()
    world.look()
    del world.looks.answer[T]
    world.looks.unchanged = {T}
    world.now += 60
    world.look()
    world.looks.answer[T] = (MUST,)
    world.now += 60
    world.look()
    assert [d.clear_ms for d in world.watch.differences[T]] == [100_000]


def test_a_table_whose_comparison_fails_is_told_and_the_others_are_kept() -> None:
    world = World()
    world.looks.answer = {T: (MUST,), U: ()}
    world.look()
    del world.looks.answer[T]
    world.looks.answer[U] = (INDEX,)
    world.looks.failed = {T: TargetError("SELECT command denied", number=1142, code="SM-3111")}
    for _ in range(2):
        world.now += 60
        world.look()
        must, unread = world.watch.differences[T]
        assert (must.subject, must.since_ms) == ("column:c", 100_000)
        assert (unread.subject, unread.kind, unread.code) == ("table", DriftKind.UNREAD, "SM-6805")
        assert "SELECT command denied" in unread.found
        assert (unread.clear_ms, unread.since_ms) == (100_000, 160_000)
    assert [d.subject for d in world.watch.differences[U]] == ["index:i"]
    world.looks.failed, world.looks.answer[T] = {}, (MUST,)
    world.look_after(60)
    assert world.watch.differences[T] == (must,)


def test_a_table_that_somebody_keeps_locked_is_no_difference() -> None:
    world = World()
    world.look()
    del world.looks.answer[T]
    world.looks.failed = {T: TargetError("lock wait timeout", retryable=True)}
    world.look_after(60)
    assert T not in world.watch.differences
    world.looks.failed, world.looks.answer[T] = {}, (MUST,)
    world.look_after(60)
    assert [d.clear_ms for d in world.watch.differences[T]] == [100_000]
