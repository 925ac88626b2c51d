"""Columns that every shard dropped and added again for values that the old ones cannot become."""

from __future__ import annotations

import pytest

from shardmerge.schemas.model.policies import ExistingRows, Mode, RenamePolicy
from shardmerge.schemas.records.decisions import Decision, FixupKind, Outcome, StatementKind
from tests.unit.agents.sql_line import SqlLine, shard_of, sql

BASE = "id INT PRIMARY KEY, b VARCHAR(20)"
ANEW = "DROP COLUMN b, ADD COLUMN b DATETIME"
MADE_ANEW = ["DROP COLUMN `b`", "ADD COLUMN `b` datetime"]


def reread(decision: Decision) -> list[tuple[str, FixupKind, tuple[str, ...]]]:
    return [(f.shard.source, f.kind, f.columns) for f in decision.fixups]


@pytest.mark.parametrize("mode", list(Mode))
def test_the_target_makes_the_column_anew_when_every_shard_has(mode: Mode) -> None:
    shards = SqlLine(mode, "s0", "s1", "s2", create=BASE)

    assert [shards.alter(s, ANEW).outcome for s in ("s0", "s1")] == [Outcome.HOLD] * 2
    last = shards.alter("s2", ANEW)

    assert sql(last) == MADE_ANEW
    assert last.statements[0].kind is StatementKind.SWITCHING
    assert [s.source for s in last.released] == ["s0", "s1"]
    # The rows of all hold what the target's ADD COLUMN put into them.
    assert last.fixups == ()


def test_in_two_statements_while_another_change_follows() -> None:
    shards = SqlLine(Mode.OPTIMISTIC, "s0", "s1", create=BASE)
    for action in ("DROP COLUMN b", "ADD COLUMN b DATETIME", "ADD COLUMN c INT"):
        shards.alter("s0", action)
    assert shards.held == ["s0"]

    shards.alter("s1", "DROP COLUMN b")

    assert (shards.columns, shards.held) == (["b", "c", "id"], [])
    assert sql(shards.decisions[-1])[:2] == [*MADE_ANEW]


def test_a_conflict_that_the_other_shard_yields_to_makes_it_anew() -> None:
    shards = SqlLine(Mode.OPTIMISTIC, "s0", "s1", create="a INT")
    shards.alter("s1", "ADD COLUMN b FLOAT")
    assert shards.alter("s0", "ADD COLUMN b DATETIME").outcome is Outcome.HOLD

    assert sql(shards.alter("s1", "DROP COLUMN b")) == MADE_ANEW


def test_a_shard_that_converts_is_read_again() -> None:
    shards = SqlLine(Mode.OPTIMISTIC, "s0", "s1", create=BASE)
    shards.alter("s0", ANEW)

    last = shards.alter("s1", "MODIFY COLUMN b DATETIME")

    assert sql(last) == MADE_ANEW
    assert reread(last) == [("s1", FixupKind.SNAPSHOT, ("b",))]


@pytest.mark.parametrize("why", ["policy", "no key"])
def test_where_it_cannot_be_the_target_converts(why: str) -> None:
    base = BASE if why == "policy" else "id INT, b VARCHAR(20)"
    shards = SqlLine(Mode.OPTIMISTIC, "s0", "s1", create=base)
    if why == "policy":
        shards.existing_rows = ExistingRows.ACCEPT
    shards.alter("s0", ANEW)

    assert sql(shards.alter("s1", "MODIFY COLUMN b DATETIME")) == ["MODIFY COLUMN `b` datetime"]


def test_when_all_convert_the_target_does() -> None:
    shards = SqlLine(Mode.OPTIMISTIC, "s0", "s1", create=BASE)
    shards.alter("s0", "MODIFY COLUMN b DATETIME")

    assert sql(shards.alter("s1", "MODIFY COLUMN b DATETIME")) == ["MODIFY COLUMN `b` datetime"]


@pytest.mark.parametrize(
    "base",
    [
        "b VARCHAR(20)",
        "id INT PRIMARY KEY, b VARCHAR(20), c INT AS (b + 1), d INT, CHECK (d <> c)",
    ],
)
def test_what_stands_on_the_column_keeps_it(base: str) -> None:
    shards = SqlLine(Mode.OPTIMISTIC, "s0", create=base)

    made = shards.alter("s0", "DROP COLUMN b, ADD COLUMN b DATETIME NOT NULL")

    assert sql(made) == ["MODIFY COLUMN `b` datetime NOT NULL"]


def test_an_index_on_the_column_goes_and_comes_with_it() -> None:
    shards = SqlLine(Mode.OPTIMISTIC, "s0", create=f"{BASE}, KEY k (b)")

    # The server keeps an index whose column is dropped and added again in one statement.
    made = shards.alter("s0", ANEW)

    assert sql(made) == ["DROP INDEX `k`", *MADE_ANEW, "ADD INDEX `k` (`b`)"]


@pytest.mark.parametrize("policy", list(RenamePolicy))
def test_a_rename_to_the_name_that_another_shard_has_is_its_column(policy: RenamePolicy) -> None:
    shards = SqlLine(Mode.OPTIMISTIC, "s0", "s1", create="id INT PRIMARY KEY, a INT")
    shards.create("s2", "id INT PRIMARY KEY, n INT")
    shards.renames = policy

    first = shards.alter("s0", "RENAME COLUMN a TO n")
    last = shards.alter("s1", "RENAME COLUMN a TO n")

    assert (first.outcome, sql(last)) == (Outcome.NOOP, ["DROP COLUMN `a`"])
    for source, decision in (("s0", first), ("s1", last)):
        assert reread(decision) == [(source, FixupKind.SNAPSHOT, ("n",))]
        shard = shards.state.shards[shard_of(source)]
        assert shard.real is not None
        assert shard.real.ids == ("id#1", "n#1")


def test_a_rename_to_another_shards_name_of_another_type_stays_what_it_was() -> None:
    shards = SqlLine(Mode.OPTIMISTIC, "s0", create="id INT PRIMARY KEY, a INT")
    shards.create("s1", "id INT PRIMARY KEY, n DATETIME")

    renamed = shards.alter("s0", "RENAME COLUMN a TO n")

    assert "stays 'a'" in renamed.warnings[0]
    assert shards.columns == ["a", "id", "n"]


def test_a_rename_to_the_name_that_only_a_held_shard_has_is_its_column() -> None:
    shards = SqlLine(Mode.OPTIMISTIC, "s0", create="id INT PRIMARY KEY, a INT, d DATE")
    assert shards.create("s1", "id INT PRIMARY KEY, a DATE, n DATE").outcome is Outcome.HOLD

    renamed = shards.alter("s0", "RENAME COLUMN d TO n")

    assert sql(renamed) == ["ADD COLUMN `n` date", "DROP COLUMN `d`"]
    assert reread(renamed) == [("s0", FixupKind.SNAPSHOT, ("n",))]


def test_rows_that_wait_lose_what_their_shard_dropped_and_added_again() -> None:
    shards = SqlLine(Mode.OPTIMISTIC, "s0", "s1", create=f"{BASE}, c INT")
    first = shards.alter("s0", ANEW)
    again = shards.alter("s0", "DROP COLUMN c, ADD COLUMN c DATE, ADD COLUMN d INT")

    # Rows of before the gate do not wait, and the target has not got d.
    assert (first.renewed, again.renewed) == ((), ("c#1",))
    assert shards.alter("s0", "DROP COLUMN d").renewed == ()


def test_a_column_that_a_held_shard_converts_is_made_anew_and_read_again() -> None:
    shards = SqlLine(Mode.OPTIMISTIC, "s0", "s1", create=f"{BASE}, c INT")
    shards.alter("s0", "MODIFY COLUMN b DATE")
    converted = shards.alter("s0", "MODIFY COLUMN c VARCHAR(3)")
    shards.alter("s1", "MODIFY COLUMN c VARCHAR(3)")

    last = shards.alter("s1", "MODIFY COLUMN b DATE")

    assert (converted.renewed, last.renewed) == (("c#1",), ("b#1",))
    assert sql(last) == [
        "DROP COLUMN `b`",
        "DROP COLUMN `c`",
        "ADD COLUMN `b` date",
        "ADD COLUMN `c` varchar(3) CHARACTER SET utf8mb4",
    ]
    assert sorted((s, sorted(columns)) for s, _, columns in reread(last)) == [
        ("s0", ["b", "c"]),
        ("s1", ["b", "c"]),
    ]


@pytest.mark.parametrize("policy", [RenamePolicy.MAP, RenamePolicy.HOLD])
def test_a_name_that_fits_only_later_is_found_with_the_next_change(policy: RenamePolicy) -> None:
    shards = SqlLine(Mode.OPTIMISTIC, "s0", create="id INT PRIMARY KEY, a INT")
    shards.create("s1", "id INT PRIMARY KEY, n VARCHAR(9)")
    shards.renames = policy
    shards.alter("s0", "RENAME COLUMN a TO n")

    fitting = shards.alter("s0", "MODIFY COLUMN n VARCHAR(9)")

    assert reread(fitting) == [("s0", FixupKind.SNAPSHOT, ("n",))]
    assert (shards.columns, shards.held) == (["id", "n"], [])


def test_a_shard_that_comes_with_a_name_that_held_ones_gave_has_their_column() -> None:
    shards = SqlLine(Mode.OPTIMISTIC, "s0", "s1", create="id INT PRIMARY KEY, a INT")
    shards.renames = RenamePolicy.HOLD
    shards.alter("s0", "RENAME COLUMN a TO n")

    assert shards.create("s2", "id INT PRIMARY KEY, n INT").outcome is Outcome.HOLD
    last = shards.alter("s1", "RENAME COLUMN a TO n")

    assert (sql(last), shards.held) == (["RENAME COLUMN `a` TO `n`"], [])


def test_a_rename_while_held_is_followed_at_the_release() -> None:
    shards = SqlLine(Mode.OPTIMISTIC, "s0", "s1", create="id INT PRIMARY KEY, a INT, b INT")
    shards.alter("s0", "MODIFY COLUMN b DATE")
    shards.alter("s0", "RENAME COLUMN a TO n")

    # Only then does no shard call the column by the name that the target has for it.
    released = shards.drop("s1")

    assert (shards.columns, shards.held) == (["b", "id", "n"], [])
    assert "RENAME COLUMN `a` TO `n`" in sql(released)


def test_a_shard_that_comes_under_the_old_name_has_the_renamed_column() -> None:
    shards = SqlLine(Mode.OPTIMISTIC, "s0", "s1", create="id INT PRIMARY KEY, a INT")
    shards.alter("s0", "RENAME COLUMN a TO n")

    assert shards.create("s2", "id INT PRIMARY KEY, a INT").outcome is Outcome.NOOP

    assert shards.columns == ["id", "n"]
    for source in ("s1", "s2"):
        assert shards.alter(source, "RENAME COLUMN a TO n").outcome is Outcome.NOOP
    # Nobody calls it so any more: it is a new one.
    assert sql(shards.create("s3", "id INT PRIMARY KEY, a INT, n INT")) == ["ADD COLUMN `a` int"]


@pytest.mark.parametrize(
    ("wide", "back"), [("a BIGINT", "a INT"), ("a INT NULL", "a INT NOT NULL")], ids=str
)
def test_what_a_held_shard_wrote_into_a_column_that_it_narrows_again_is_of_no_use(
    wide: str, back: str
) -> None:
    shards = SqlLine(Mode.PESSIMISTIC, "s0", "s1", create=f"id BIGINT PRIMARY KEY, {back}")
    assert shards.alter("s0", f"MODIFY {wide}, MODIFY id BIGINT").outcome is Outcome.HOLD

    released = shards.alter("s0", f"MODIFY {back}")

    assert [release.shard for release in released.releases] == [shard_of("s0")]
    assert released.renewed == ("a#1",)
    assert [(f.kind, f.columns) for f in released.fixups] == [(FixupKind.SNAPSHOT, ("a",))]


def test_a_rows_key_is_never_left_out() -> None:
    shards = SqlLine(Mode.PESSIMISTIC, "s0", "s1", create="id INT PRIMARY KEY")
    shards.alter("s0", "MODIFY id BIGINT")
    assert shards.alter("s0", "MODIFY id INT").renewed == ()


def test_what_a_shard_left_in_the_column_that_it_dropped_is_not_converted() -> None:
    shards = SqlLine(Mode.OPTIMISTIC, "s0", "s1", create="id INT PRIMARY KEY, a INT")
    shards.alter("s0", "DROP COLUMN a")

    moved = shards.alter("s1", "MODIFY a DATE")

    assert sql(moved) == ["DROP COLUMN `a`", "ADD COLUMN `a` date"]
    assert reread(moved) == [("s1", FixupKind.SNAPSHOT, ("a",))]


def test_a_column_that_others_never_had_is_converted() -> None:
    shards = SqlLine(Mode.OPTIMISTIC, "s0", "s1")
    shards.alter("s1", "ADD COLUMN a INT")
    assert sql(shards.alter("s1", "MODIFY a DATE")) == ["MODIFY COLUMN `a` date"]


def test_a_held_shard_is_read_again_when_it_is_released() -> None:
    """Its values went with the column; until then its rows stand at the gate."""
    shards = SqlLine(Mode.OPTIMISTIC, "s0", "s1", "s2", create="id INT PRIMARY KEY, e ENUM('a')")
    shards.alter("s1", "MODIFY COLUMN e ENUM('a', 'b')")
    shards.alter("s2", "ADD COLUMN x DATE")
    assert shards.alter("s0", "ADD COLUMN x INT").outcome is Outcome.HOLD

    anew = shards.alter("s1", "DROP COLUMN e, ADD COLUMN e ENUM('a', 'c')")
    released = shards.alter("s0", "DROP COLUMN x")

    assert sql(anew)[0] == "DROP COLUMN `e`"
    assert reread(anew) == [("s2", FixupKind.SNAPSHOT, ("e",))]
    assert anew.warnings[-1] == (
        "rows that s0/app.t had before lack e, until the shard is held no longer: then they are "
        "read again"
    )
    assert reread(released) == [("s0", FixupKind.SNAPSHOT, ("e",))]
