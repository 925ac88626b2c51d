"""Renames under ``hold``: a shard that renames first waits for the others. Swapped names."""

from __future__ import annotations

import pytest

from shardmerge.schemas.model.policies import Mode, RenamePolicy
from shardmerge.schemas.records.decisions import Outcome
from shardmerge.schemas.records.operator_commands import CommandKind
from tests.unit.agents.sql_line import SqlLine, sql

BASE = "id INT PRIMARY KEY, a INT"


def line(*sources: str) -> SqlLine:
    shards = SqlLine(Mode.OPTIMISTIC, *sources, create=BASE)
    shards.renames = RenamePolicy.HOLD
    return shards


def test_a_rename_waits_until_every_shard_has_made_it() -> None:
    shards = line("s0", "s1", "s2")

    first = shards.alter("s0", "RENAME COLUMN a TO b")
    other = shards.alter("s1", "ADD COLUMN c INT")
    second = shards.alter("s1", "RENAME COLUMN a TO b")
    last = shards.alter("s2", "RENAME COLUMN a TO b")

    assert [d.outcome for d in (first, other, second)] == [
        Outcome.HOLD, Outcome.EMIT, Outcome.HOLD,
    ]  # fmt: skip
    assert "renames 'a' to 'b'" in first.reason
    assert sql(last) == ["RENAME COLUMN `a` TO `b`"]
    assert [s.source for s in last.released] == ["s0", "s1"]
    assert shards.columns == ["b", "c", "id"]


def test_a_rename_is_left_by_renaming_back_and_a_chain_by_its_end() -> None:
    shards = line("s0", "s1")
    shards.alter("s0", "RENAME COLUMN a TO b")

    assert shards.alter("s0", "RENAME COLUMN b TO a").outcome is Outcome.NOOP
    for name in ("b", "c"):
        old = "a" if name == "b" else "b"
        assert shards.alter("s0", f"RENAME COLUMN {old} TO {name}").outcome is Outcome.HOLD
    assert shards.alter("s1", "RENAME COLUMN a TO b").outcome is Outcome.HOLD
    assert sql(shards.alter("s1", "RENAME COLUMN b TO c")) == ["RENAME COLUMN `a` TO `c`"]


def test_other_names_are_a_conflict_that_the_last_rename_ends() -> None:
    shards = line("s0", "s1")
    shards.alter("s0", "RENAME COLUMN a TO b")

    assert shards.alter("s1", "RENAME COLUMN a TO c").outcome is Outcome.HOLD
    assert shards.held == ["s0", "s1"]
    assert sql(shards.alter("s1", "RENAME COLUMN c TO b")) == ["RENAME COLUMN `a` TO `b`"]


def test_a_swap_of_names_is_one_change_of_all() -> None:
    shards = SqlLine(Mode.OPTIMISTIC, "s0", "s1", create=f"{BASE}, b DATE")
    shards.renames = RenamePolicy.HOLD

    assert shards.alter("s0", "RENAME COLUMN a TO b, RENAME COLUMN b TO a").outcome is Outcome.HOLD
    last = shards.alter("s1", "RENAME COLUMN a TO b, RENAME COLUMN b TO a")

    assert last.outcome is Outcome.EMIT
    assert shards.target is not None
    assert [(c.name, c.type.name) for c in shards.target.columns] == [
        ("id", "int"), ("b", "int"), ("a", "date"),
    ]  # fmt: skip


def test_a_rename_can_be_skipped_and_the_shard_that_waits_may_leave() -> None:
    shards = line("s0", "s1", "s2")
    shards.alter("s0", "RENAME COLUMN a TO b")
    shards.alter("s1", "RENAME COLUMN a TO b")

    assert shards.command(CommandKind.SKIP, "s0").outcome is Outcome.NOOP
    assert shards.held == ["s1"]
    gone = shards.drop("s2")
    assert gone.outcome is Outcome.NOOP
    assert shards.drop("s0").statements
    assert shards.columns == ["b", "id"]


@pytest.mark.parametrize("mode", [Mode.OPTIMISTIC, Mode.PESSIMISTIC])
def test_a_decision_that_swaps_two_names_says_so_and_nothing_else(mode: Mode) -> None:
    shards = SqlLine(mode, "s1", "s2", create="id INT PRIMARY KEY, a INT, b INT")
    swap = "RENAME COLUMN a TO b, RENAME COLUMN b TO a"
    first = shards.alter("s1", swap)
    assert not first.statements

    decision = shards.alter("s2", swap)

    assert not decision.warnings
    assert [s.reason for s in decision.statements] == [
        "a shard renamed a to b; its name is _shardmerge_a until no other column is in the way",
        "a shard renamed b to a; the others' rows go to a as well",
        "a shard renamed a to b; the others' rows go to b as well",
    ]
    if mode is Mode.OPTIMISTIC:
        assert len(first.warnings) == 2
        assert all("the target's column stays" in warning for warning in first.warnings)


@pytest.mark.parametrize("columns", ["a INT, b INT", "b INT, a INT"])
def test_a_rename_to_a_name_that_the_same_statement_frees_is_followed_at_once(columns: str) -> None:
    shards = SqlLine(Mode.OPTIMISTIC, "s1", "s2", create=f"id INT PRIMARY KEY, {columns}")

    decision = shards.alter("s1", "RENAME COLUMN a TO b, RENAME COLUMN b TO c")

    assert not decision.warnings
    assert sql(decision) == ["RENAME COLUMN `b` TO `c`", "RENAME COLUMN `a` TO `b`"]
