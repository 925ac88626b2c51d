"""Changes that an operator skips or replaces: how the shard counts, and what comes of its rows."""

from __future__ import annotations

import pytest

from shardmerge.schemas.model.policies import Mode
from shardmerge.schemas.records.decisions import Outcome, Release
from shardmerge.schemas.records.operator_commands import CommandKind
from tests.unit.agents.sql_line import BASE, SqlLine, in_conflict, shard_of, sql


def test_a_skipped_change_opens_its_shard_and_leaves_the_target() -> None:
    shards = in_conflict()

    answer = shards.command(CommandKind.SKIP, "s1")

    assert (answer.outcome, answer.shard) == (Outcome.NOOP, None)
    assert answer.releases == (Release(shard_of("s1"), answer.version, ("a#1",)),)
    assert "in a are left out" in answer.warnings[0]
    assert shards.held == []
    column = shards.target.column("a") if shards.target else None
    assert column is not None
    assert column.type.name == "int"


def test_what_was_skipped_stays_skipped_until_it_is_changed_again() -> None:
    shards = in_conflict()
    shards.command(CommandKind.SKIP, "s1")

    assert sql(shards.alter("s1", "ADD COLUMN b INT")) == ["ADD COLUMN `b` int"]
    assert shards.alter("s1", "MODIFY a VARCHAR(9)").outcome is Outcome.HOLD
    assert shards.alter("s1", "MODIFY a INT").outcome is Outcome.NOOP
    shard = shards.state.shards[shard_of("s1")]
    assert (shard.hold, shard.actual) == (None, None)


def test_a_skipped_drop_keeps_the_column_until_the_others_drop_it() -> None:
    shards = SqlLine(Mode.PESSIMISTIC, "s0", "s1", create=BASE)
    shards.alter("s0", "DROP COLUMN a")

    shards.command(CommandKind.SKIP, "s0")

    assert shards.held == []
    assert shards.columns == ["a", "id"]
    assert sql(shards.alter("s1", "DROP COLUMN a")) == ["DROP COLUMN `a`"]
    assert shards.held == []


def test_a_replaced_change_counts_as_the_other_statement() -> None:
    shards = in_conflict()

    answer = shards.command(CommandKind.REPLACE, "s1", "ALTER TABLE t MODIFY a BIGINT, ADD e INT")

    assert sql(answer) == ["MODIFY COLUMN `a` bigint", "ADD COLUMN `e` int"]
    assert answer.released == (shard_of("s1"),)
    assert sql(shards.alter("s0", "MODIFY a BIGINT")) == []


@pytest.mark.parametrize(
    ("argument", "reason"),
    [
        ("ALTER TABLE t MODIFY a DATE", "date"),
        ("ALTER TABLE t DROP COLUMN nope", "nope"),
        ("DROP TABLE t", "no ALTER TABLE"),
        ("ALTER TABEL t", "TABEL"),
    ],
)
def test_a_replacement_that_does_not_fit_is_refused(argument: str, reason: str) -> None:
    shards = in_conflict()

    answer = shards.command(CommandKind.REPLACE, "s1", argument)

    assert answer.outcome is Outcome.REFUSED
    assert reason in answer.reason
    assert answer.hint
    assert shards.held == ["s1"]


@pytest.mark.parametrize(
    "then",
    ["ADD INDEX k (c)", "ADD CHECK (c > 1)", "ADD COLUMN d INT AS (c + 1) STORED, ADD KEY k (d)"],
)
def test_what_names_a_skipped_column_does_not_count_either(then: str) -> None:
    shards = SqlLine(Mode.PESSIMISTIC, "s0", "s1", "s2", create=BASE)
    shards.alter("s1", "ADD COLUMN c INT")
    shards.alter("s1", then)
    shards.alter("s0", "ADD COLUMN o INT")
    shards.command(CommandKind.SKIP, "s0")

    shards.command(CommandKind.SKIP, "s1")

    assert (shards.held, shards.columns) == ([], ["a", "id"])


def arrived(columns: str, mode: Mode = Mode.OPTIMISTIC) -> SqlLine:
    """A shard s1 that came with these columns, in conflict with what s0 has."""
    shards = SqlLine(mode, "s0", create="id INT PRIMARY KEY, a INT, b INT NOT NULL DEFAULT 5")
    assert shards.create("s1", columns).outcome is Outcome.HOLD
    return shards


@pytest.mark.parametrize("mode", Mode)
def test_a_shard_that_arrived_in_conflict_counts_with_what_fits_when_it_is_skipped(
    mode: Mode,
) -> None:
    shards = arrived("id INT PRIMARY KEY, a DATE, b INT NOT NULL DEFAULT 6, c INT, KEY (a)", mode)

    answer = shards.command(CommandKind.SKIP, "s1")
    shards.mode = Mode.OPTIMISTIC

    # The default is another one, the values are not.
    assert answer.releases == (Release(shard_of("s1"), answer.version, ("a#1",)),)
    assert (shards.held, shards.columns) == ([], ["a", "b", "c", "id"])
    later = shards.alter("s1", "ADD KEY kc (c)")
    assert [c.id for c in later.columns] == ["id#1", "", "b#1", "c#1"]


def test_a_shard_that_arrived_in_conflict_counts_as_a_statement_would_make_it() -> None:
    shards = arrived("id INT PRIMARY KEY, a DATE, b INT NOT NULL DEFAULT 5")

    answer = shards.command(
        CommandKind.REPLACE, "s1", "ALTER TABLE t DROP COLUMN a, ADD COLUMN e INT NOT NULL"
    )

    assert answer.releases == (Release(shard_of("s1"), answer.version, ("a#1",)),)
    assert sql(answer) == ["ADD COLUMN `e` int"]


def test_a_shard_whose_key_is_another_one_can_only_be_taken_out() -> None:
    shards = arrived("id DATE PRIMARY KEY, a INT")

    skipped = shards.command(CommandKind.SKIP, "s1")

    assert skipped.outcome is Outcome.REFUSED
    assert "id" in skipped.reason
    assert "leave" in skipped.hint
    assert shards.command(CommandKind.LEAVE, "s1").outcome is Outcome.NOOP
    assert shards.held == []


@pytest.mark.parametrize(
    ("action", "target"),
    [
        ("MODIFY a BIGINT NOT NULL", "MODIFY COLUMN `a` bigint NOT NULL"),
        ("MODIFY a INT NULL", "MODIFY COLUMN `a` int"),
        ("MODIFY a DATE NOT NULL", "ALTER COLUMN `a` SET DEFAULT '0'"),
        ("DROP COLUMN a", "ALTER COLUMN `a` SET DEFAULT '0'"),
        ("DROP KEY u", "DROP INDEX `u`"),
    ],
)
def test_a_target_takes_the_rows_of_a_shard_whose_change_was_skipped(
    action: str, target: str
) -> None:
    create = "id INT PRIMARY KEY, a INT NOT NULL, e INT, UNIQUE KEY u (e)"
    shards = SqlLine(Mode.PESSIMISTIC, "s0", "s1", create=create)
    shards.alter("s0", action)

    answer = shards.command(CommandKind.SKIP, "s0")

    assert sql(answer) == [target]
    assert shards.held == []


def test_a_column_that_no_other_shard_has_stays_when_a_change_of_it_is_discarded() -> None:
    shards = SqlLine(Mode.PESSIMISTIC, "s0", "s1", "s2", create=BASE)
    shards.alter("s0", "MODIFY a DATE")
    shards.alter("s1", "ADD COLUMN x INT")
    shards.alter("s2", "MODIFY a DATE")
    shards.command(CommandKind.UNLOCK_DISCARD, "s1")
    shards.command(CommandKind.LEAVE, "s1")

    assert shards.columns == ["a", "id"]


def test_the_others_may_follow_what_was_skipped() -> None:
    shards = SqlLine(Mode.OPTIMISTIC, "s0", "s1", "s2", create=BASE)
    shards.alter("s1", "MODIFY a DATE")
    shards.command(CommandKind.SKIP, "s1")

    shards.alter("s0", "MODIFY a DATE")
    shards.alter("s2", "MODIFY a DATE")

    assert shards.held == []


def test_a_change_of_the_key_cannot_be_skipped_since_rows_have_it() -> None:
    shards = SqlLine(Mode.OPTIMISTIC, "s0", "s1", create="id INT, k INT, PRIMARY KEY (id, k)")
    narrow = "DROP PRIMARY KEY, ADD PRIMARY KEY (id)"
    shards.alter("s0", narrow)

    answer = shards.command(CommandKind.SKIP, "s0")

    assert (answer.outcome, shards.held) == (Outcome.REFUSED, ["s0"])
    assert "its primary key would be another one than its rows have" in answer.reason
    last = shards.alter("s1", f"{narrow}, DROP COLUMN k")
    assert shards.held == []
    assert "DROP PRIMARY KEY, ADD PRIMARY KEY (`id`)" in sql(last)


def test_without_a_key_a_column_that_the_target_had_from_the_shard_cannot_be_left_out() -> None:
    shards = SqlLine(Mode.PESSIMISTIC, "s0", "s1", create="id INT, a INT")
    shards.alter("s0", "MODIFY a DATE")
    assert "all columns" in shards.command(CommandKind.SKIP, "s0").reason
    shards.alter("s0", "MODIFY a INT")
    shards.alter("s0", "ADD COLUMN b INT")

    answer = shards.command(CommandKind.SKIP, "s0")
    shards.alter("s0", "ADD KEY (id)")

    assert answer.releases[0].left_out == ("b#1",)
    assert shards.state.shards[shard_of("s0")].left_out == {"b#1"}


@pytest.mark.parametrize("key", ["ADD PRIMARY KEY (id, a)", "ADD UNIQUE (id)"])
def test_what_was_skipped_of_a_new_key_counts_again(key: str) -> None:
    shards = SqlLine(Mode.OPTIMISTIC, "s0", "s1", create="id INT PRIMARY KEY, a INT NOT NULL")
    shards.alter("s0", "MODIFY a DATE NOT NULL")
    shards.command(CommandKind.SKIP, "s0")

    changed = shards.alter("s0", f"DROP PRIMARY KEY, {key}")

    assert changed.outcome is Outcome.HOLD
    shards.drop("s1")
    shard = shards.state.shards[shard_of("s0")]
    assert (shards.held, shard.actual, shard.left_out) == ([], None, frozenset())


def test_comments_of_a_conflicting_change_come_with_its_release() -> None:
    shards = SqlLine(Mode.OPTIMISTIC, "s0", "s1", create=BASE)
    shards.alter("s0", "MODIFY a POINT COMMENT 'x', ADD b INT COMMENT 'y'")
    assert shards.held == ["s0"]
    shards.alter("s1", "MODIFY a POINT")
    assert shards.held == [] and shards.target is not None
    assert {c.name: c.comment for c in shards.target.columns} == {"id": "", "a": "x", "b": "y"}


@pytest.mark.parametrize("other", ["7", "NULL"])
def test_a_skipped_default_leaves_no_values_out(other: str) -> None:
    shards = SqlLine(Mode.PESSIMISTIC, "s0", "s1", create="id INT PRIMARY KEY, a INT DEFAULT 1")
    shards.alter("s0", f"ALTER a SET DEFAULT {other}")
    answer = shards.command(CommandKind.SKIP, "s0")
    assert answer.releases == (Release(shard_of("s0"), answer.version - 1),)
    assert answer.warnings == ()


@pytest.mark.parametrize("mode", list(Mode))
def test_values_pass_that_the_targets_column_takes_and_only_its_default_is_another_one(
    mode: Mode,
) -> None:
    shards = SqlLine(mode, "s0", "s1", create=BASE)
    shards.alter("s0", "ADD c VARCHAR(20) DEFAULT 'x'")
    shards.alter("s1", "ADD c VARCHAR(10) DEFAULT 'y'")
    if mode is Mode.PESSIMISTIC:
        shards.command(CommandKind.UNLOCK_EXECUTE, "s0")

    answer = shards.command(CommandKind.SKIP, "s1")

    assert [(r.shard, r.left_out) for r in answer.releases] == [(shard_of("s1"), ())]
    assert shards.held == []
    assert not any("left out" in warning for warning in answer.warnings)
    column = shards.target.column("c") if shards.target else None
    assert column is not None and column.default is not None and column.default.text == "x"
