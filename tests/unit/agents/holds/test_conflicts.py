"""Conflicts: each reason once, with both sides."""

from __future__ import annotations

from shardmerge.agents.holds.conflicts import conflicts
from shardmerge.agents.holds.shapes import ShownConflict, Side
from tests.recorded import Recorded
from tests.unit.cli.views.pictures import ONE, TWO, conflicting, locked, log, picture, recorded


def told(made: Recorded) -> list[ShownConflict]:
    of = log(made)
    return list(conflicts(of.state, picture(made).decided_ms(of.target)))


def test_no_shard_is_held_without_a_conflict() -> None:
    made = recorded()
    assert told(made) == []


def test_both_sides_of_a_conflict_are_told_with_their_shards() -> None:
    made = conflicting()
    made.execute("s1", "CREATE TABLE tbl3 (id INT PRIMARY KEY, a INT)")
    (found,) = told(made)
    assert (found.kind, found.about, found.held) == ("conflict", "column a, type", (str(TWO),))
    assert found.sides == (Side("int", (str(ONE), "s1/shop.tbl3")), Side("date", (str(TWO),)))
    assert found.since.startswith("2023-11-14T22:13:20.")
    assert found.hint == "make the type of a agree on all shards, or drop a where it is wrong"


def test_shards_that_are_held_for_one_reason_come_together() -> None:
    made = conflicting()
    made.execute("s2", "CREATE TABLE tbl4 (id INT PRIMARY KEY, a DATE)")
    found = told(made)
    assert [shard for each in found for shard in each.held] == [str(TWO), "s2/shop.tbl4"]
    assert {(each.kind, each.about) for each in found} == {("conflict", "column a, type")}


def test_a_wait_for_the_lock_and_an_unreadable_statement_are_no_contradiction() -> None:
    made = locked()
    (lock,) = told(made)
    assert (lock.kind, lock.about, lock.sides) == ("lock", "", ())
    made = recorded(("s1", "ALTER TABLE tbl1 FROBNICATE a"))
    (unreadable,) = told(made)
    assert (unreadable.kind, unreadable.sides) == ("unreadable", ())
