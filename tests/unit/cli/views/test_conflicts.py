"""Conflicts: each reason once, with both sides."""

from __future__ import annotations

from shardmerge.cli.views.conflicts import conflicts
from shardmerge.cli.views.shapes import Side

from .pictures import ONE, TWO, conflicting, locked, log, picture, recorded


def test_no_shard_is_held_without_a_conflict() -> None:
    made = recorded()
    assert list(conflicts(picture(made), log(made))) == []


def test_both_sides_of_a_conflict_are_told_with_their_shards() -> None:
    made = conflicting()
    made.execute("s1", "CREATE TABLE tbl3 (id INT PRIMARY KEY, a INT)")
    (found,) = conflicts(picture(made), log(made))
    assert (found.kind, found.about, found.held) == ("conflict", "column a, type", (str(TWO),))
    assert found.sides == (Side("int", (str(ONE), "s1/shop.tbl3")), Side("date", (str(TWO),)))
    assert found.since.startswith("2023-11-14T22:13:20.")
    assert found.hint == "make the type of a agree on all shards, or drop a where it is wrong"


def test_shards_that_are_held_for_one_reason_come_together() -> None:
    made = conflicting()
    made.execute("s2", "CREATE TABLE tbl4 (id INT PRIMARY KEY, a DATE)")
    found = list(conflicts(picture(made), log(made)))
    assert [shard for each in found for shard in each.held] == [str(TWO), "s2/shop.tbl4"]
    assert {(each.kind, each.about) for each in found} == {("conflict", "column a, type")}


def test_a_wait_for_the_lock_and_an_unreadable_statement_are_no_contradiction() -> None:
    made = locked()
    (lock,) = conflicts(picture(made), log(made))
    assert (lock.kind, lock.about, lock.sides) == ("lock", "", ())
    made = recorded(("s1", "ALTER TABLE tbl1 FROBNICATE a"))
    (unreadable,) = conflicts(picture(made), log(made))
    assert (unreadable.kind, unreadable.sides) == ("unreadable", ())
