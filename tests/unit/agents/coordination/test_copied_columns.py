"""Renames under ``copy``: the target has a column under both names until all have renamed it."""

from __future__ import annotations

import pytest

from shardmerge.schemas.model.origin import NO_ORIGIN, Origin, OriginColumn, OriginPart
from shardmerge.schemas.model.policies import Mode, RenamePolicy
from shardmerge.schemas.records.decisions import Decision, FixupKind, Outcome, StatementKind
from shardmerge.schemas.records.operator_commands import CommandKind
from tests.unit.agents.sql_line import SHARD_COLUMN, SqlLine, shard_of, sql

BASE = "id INT PRIMARY KEY, a INT"
RENAME = "RENAME COLUMN a TO b"
COPY = "UPDATE `merged`.`t` SET `b` = `a`, `a` = NULL WHERE `a` IS NOT NULL"
PLACED = Origin((OriginColumn(OriginPart.POSITION, "_p"),))
COPY_BACK = "UPDATE `merged`.`t` SET `a` = `b` WHERE `a` IS NULL AND `b` IS NOT NULL"


def line(
    *sources: str,
    create: str = BASE,
    mode: Mode = Mode.OPTIMISTIC,
    origin: Origin = NO_ORIGIN,
) -> SqlLine:
    shards = SqlLine(mode, *sources, create=create, origin=origin)
    shards.renames = RenamePolicy.COPY
    return shards


def bound(shards: SqlLine) -> dict[str, str]:
    """Identity → column, when everything that was emitted is executed."""
    found: dict[str, str] = {}
    for decision in shards.decisions:
        for statement in decision.statements:
            found |= {b.column_id: b.name for b in statement.binds}
    return found


def definitions(shards: SqlLine) -> dict[str, str]:
    assert shards.target is not None
    return {
        c.name: f"{c.type.name}{'' if c.nullable else ' NOT NULL'} {c.default and c.default.text}"
        for c in shards.target.columns
    }


def reread(decision: Decision) -> list[tuple[str, tuple[str, ...]]]:
    assert all(f.kind is FixupKind.SNAPSHOT for f in decision.fixups)
    return [(f.shard.source, f.columns) for f in decision.fixups]


def test_the_first_rename_keeps_the_old_name_for_the_others_and_the_last_one_copies() -> None:
    shards = line("s0", "s1", "s2")

    first, second, last = (shards.alter(name, RENAME) for name in ("s0", "s1", "s2"))

    assert sql(first) == ["RENAME COLUMN `a` TO `b`", "ADD COLUMN `a` int"]
    assert second.outcome is Outcome.NOOP
    assert sql(last) == [COPY, "DROP COLUMN `a`"]
    copy, drop = last.statements
    assert (copy.kind, drop.kind) == (StatementKind.ROWS, StatementKind.CONTRACTING)
    assert copy.shard is None
    assert set(copy.subjects) == {"column:a", "column:b"}
    assert not [d.fixups for d in shards.decisions if d.fixups]
    assert shards.columns == ["b", "id"]
    assert shards.state.copies == ()


def test_rows_of_either_name_have_a_column_at_every_moment() -> None:
    shards = line("s0", "s1")
    first = shards.alter("s0", RENAME)

    after_the_rename = {b.column_id: b.name for b in first.statements[0].binds}
    assert after_the_rename == {"b#1": "b", "a#1": "b"}
    assert bound(shards) | {"id#1": "id"} == {"id#1": "id", "a#1": "a", "b#1": "b"}
    shards.alter("s1", RENAME)
    assert bound(shards) == {"id#1": "id", "a#1": "", "b#1": "b"}


def test_both_columns_hold_the_values_of_either_shard_and_null_means_null() -> None:
    shards = line("s0", "s1", create="id INT PRIMARY KEY, a INT DEFAULT 5")

    first = shards.alter("s0", "CHANGE a b BIGINT DEFAULT 5")
    assert definitions(shards) == {"id": "int NOT NULL None", "b": "bigint ", "a": "bigint "}
    # Rows of before their shard had the column get its default: it stays until they have come.
    assert sql(first)[0] == "ALTER COLUMN `a` SET DEFAULT NULL"
    assert [s.kind for s in first.statements] == [
        StatementKind.SWITCHING, StatementKind.EXPANDING, StatementKind.EXPANDING,
        StatementKind.EXPANDING,
    ]  # fmt: skip
    last = shards.alter("s1", "CHANGE a b BIGINT DEFAULT 5")
    assert sql(last) == [COPY, "ALTER COLUMN `b` SET DEFAULT '5'", "DROP COLUMN `a`"]
    # No row waits for the default, which must not come before the values are copied.
    assert last.statements[1].kind is StatementKind.CONTRACTING


def test_a_column_that_needs_a_value_has_a_default_until_it_is_everywhere() -> None:
    shards = line("s0", "s1", create="id INT PRIMARY KEY, a INT NOT NULL")
    change = "CHANGE a b INT NOT NULL"

    assert sql(shards.alter("s0", change)) == [
        "RENAME COLUMN `a` TO `b`", "ALTER COLUMN `b` SET DEFAULT '0'", "ADD COLUMN `a` int",
    ]  # fmt: skip
    assert sql(shards.alter("s1", change)) == [
        COPY, "ALTER COLUMN `b` DROP DEFAULT", "DROP COLUMN `a`",
    ]  # fmt: skip


def test_a_column_that_one_shard_only_has_is_renamed() -> None:
    alone = line("s0")
    assert sql(alone.alter("s0", RENAME)) == ["RENAME COLUMN `a` TO `b`"]
    shards = line("s0", "s1")
    shards.alter("s0", "ADD COLUMN c INT")
    assert sql(shards.alter("s0", "RENAME COLUMN c TO d")) == ["RENAME COLUMN `c` TO `d`"]


def test_in_pessimistic_mode_it_is_one_rename() -> None:
    shards = line("s0", "s1", mode=Mode.PESSIMISTIC)
    assert shards.alter("s0", RENAME).outcome is Outcome.HOLD
    assert sql(shards.alter("s1", RENAME)) == ["RENAME COLUMN `a` TO `b`"]


def test_a_shard_goes_back() -> None:
    shards = line("s0", "s1", "s2", create="id INT PRIMARY KEY, a INT DEFAULT 5, KEY k (a)")
    shards.alter("s0", RENAME)
    shards.alter("s1", RENAME)

    assert shards.alter("s0", "RENAME COLUMN b TO a").outcome is Outcome.NOOP
    last = shards.alter("s1", "RENAME COLUMN b TO a")

    assert sql(last) == [
        COPY_BACK, "ALTER COLUMN `a` SET DEFAULT '5'", "DROP COLUMN `b`", "ADD INDEX `k` (`a`)",
    ]  # fmt: skip
    assert {s.kind for s in last.statements} == {StatementKind.ROWS, StatementKind.CONTRACTING}
    assert not last.fixups
    assert shards.state.copies == ()


@pytest.mark.parametrize("action", ["DROP COLUMN a", "drop"])
def test_the_last_shard_with_the_old_name_gives_it_up(action: str) -> None:
    shards = line("s0", "s1", "s2")
    shards.alter("s0", RENAME)
    shards.alter("s1", RENAME)
    last = shards.drop("s2") if action == "drop" else shards.alter("s2", action)
    assert sql(last) == [COPY, "DROP COLUMN `a`"]


def test_the_only_shard_with_the_new_name_leaves() -> None:
    shards = line("s0", "s1")
    shards.alter("s0", RENAME)
    assert sql(shards.drop("s0")) == [COPY_BACK, "DROP COLUMN `b`"]


def test_a_shard_may_join_with_either_name_but_not_with_both() -> None:
    shards = line("s0", "s1")
    shards.alter("s0", RENAME)

    assert shards.create("s2", BASE).outcome is Outcome.NOOP
    assert shards.create("s3", "id INT PRIMARY KEY, b INT").outcome is Outcome.NOOP
    both = shards.create("s4", f"{BASE}, b INT")
    assert both.outcome is Outcome.HOLD
    assert "has both 'a' and 'b'" in both.reason
    assert shards.alter("s4", "DROP COLUMN a").outcome is Outcome.NOOP
    assert shards.held == []
    shards.alter("s1", RENAME)
    assert sql(shards.alter("s2", RENAME)) == [COPY, "DROP COLUMN `a`"]


def test_a_chain_waits_for_its_first_rename() -> None:
    shards = line("s0", "s1")
    shards.alter("s0", RENAME)

    chained = shards.alter("s0", "RENAME COLUMN b TO c")
    assert chained.outcome is Outcome.HOLD
    assert chained.reason == (
        "'b' would be both the new name of 'a' and the old name of 'c', which cannot be copied"
    )
    assert sql(shards.alter("s1", RENAME)) == [
        COPY, "RENAME COLUMN `b` TO `c`", "ADD COLUMN `b` int", "DROP COLUMN `a`",
    ]  # fmt: skip
    assert shards.held == []
    assert sql(shards.alter("s1", "RENAME COLUMN b TO c")) == [
        COPY.replace("`b`", "`c`").replace("`a`", "`b`"), "DROP COLUMN `b`",
    ]  # fmt: skip
    assert shards.columns == ["c", "id"]


def test_a_chain_is_left_by_its_way_back() -> None:
    shards = line("s0", "s1")
    shards.alter("s0", RENAME)
    shards.alter("s0", "RENAME COLUMN b TO c")
    back = shards.alter("s0", "RENAME COLUMN c TO b")
    assert (back.outcome, shards.held) == (Outcome.NOOP, [])


@pytest.mark.parametrize(
    "action", ["RENAME COLUMN c TO a", "RENAME COLUMN id TO a", "ADD COLUMN a INT"]
)
def test_the_old_name_is_not_taken_again_before_all_have_renamed(action: str) -> None:
    shards = line("s0", "s1", create=f"{BASE}, c INT")
    shards.alter("s0", RENAME)

    held = shards.alter("s0", action)
    assert held.outcome is Outcome.HOLD
    assert "'a' is the old name of a column that not every shard has renamed" in held.reason
    last = shards.alter("s1", RENAME)
    assert sql(last)[:2] == [COPY, "DROP COLUMN `a`"]
    if "id" not in action:
        assert shards.held == []
    shards.alter("s1", action)
    assert shards.held == []
    assert {"a", "b"} <= set(shards.columns)


def test_a_swap_waits_until_every_shard_has_made_it() -> None:
    shards = line("s0", "s1", create=f"{BASE}, b DATE")
    swap = "RENAME COLUMN a TO b, RENAME COLUMN b TO a"

    first = shards.alter("s0", swap)
    assert first.outcome is Outcome.HOLD
    assert "which cannot be copied" in first.reason
    assert len(sql(shards.alter("s1", swap))) == 3
    assert definitions(shards)["b"].startswith("int")
    assert shards.held == []


def test_two_new_names_for_one_column_are_a_conflict() -> None:
    shards = line("s0", "s1", "s2")
    shards.alter("s0", RENAME)

    other = shards.alter("s1", "RENAME COLUMN a TO c")
    assert other.outcome is Outcome.HOLD
    assert other.reason == "'a' is renamed to 'b' on one shard and to 'c' on another"
    agreed = shards.alter("s1", "RENAME COLUMN c TO b")
    # Rows of between the two statements have a column that the target never had.
    assert reread(agreed) == [("s1", ("b",))]
    assert sql(shards.alter("s2", RENAME)) == [COPY, "DROP COLUMN `a`"]


def test_a_primary_key_is_renamed_by_all_at_once() -> None:
    shards = line("s0", "s1")
    first = shards.alter("s0", "RENAME COLUMN id TO x")
    assert first.outcome is Outcome.HOLD
    assert "'id' is part of the primary key" in first.reason
    assert sql(shards.alter("s1", "RENAME COLUMN id TO x")) == ["RENAME COLUMN `id` TO `x`"]
    assert shards.held == []


@pytest.mark.parametrize("origin", [NO_ORIGIN, PLACED])
def test_without_a_primary_key_it_waits_too(origin: Origin) -> None:
    """A row that goes is found by all its values, under whichever name it was written."""
    shards = line("s0", "s1", create="a INT, c INT", origin=origin)
    first = shards.alter("s0", RENAME)
    assert first.outcome is Outcome.HOLD
    assert "rows without a primary key" in first.reason
    assert sql(shards.alter("s1", RENAME)) == ["RENAME COLUMN `a` TO `b`"]
    assert shards.held == []


def test_a_type_that_does_not_join_is_a_conflict() -> None:
    shards = line("s0", "s1")
    first = shards.alter("s0", "CHANGE a b DATE")
    assert first.outcome is Outcome.HOLD
    assert "type" in first.conflict
    assert sql(shards.alter("s1", "DROP COLUMN a")) != []
    assert shards.held == []


def test_indexes_and_checks_come_back_with_the_last_rename() -> None:
    shards = line("s0", "s1", create=f"{BASE}, UNIQUE u (a), KEY k (a, id)")
    first = shards.alter("s0", RENAME)
    assert sql(first)[:2] == ["DROP INDEX `k`", "DROP INDEX `u`"]
    last = shards.alter("s1", RENAME)
    assert sql(last) == [
        COPY, "DROP COLUMN `a`", "ADD INDEX `k` (`b`, `id`)", "ADD UNIQUE INDEX `u` (`b`)",
    ]  # fmt: skip


def test_a_generated_column_is_not_copied() -> None:
    shards = line("s0", "s1", create=f"{BASE}, g INT AS (a + 1) STORED")
    for name in ("s0", "s1"):
        decision = shards.alter(name, "CHANGE g h INT AS (a + 1) STORED")
        assert not [s for s in decision.statements if s.kind is StatementKind.ROWS]
    assert shards.columns == ["a", "h", "id"]
    assert shards.held == []


def test_a_name_that_others_have_for_another_column_needs_the_rows_again() -> None:
    shards = line("s0")
    shards.alter("s0", RENAME)
    assert sql(shards.create("s1", BASE)) == ["ADD COLUMN `a` int"]

    late = shards.alter("s1", RENAME)
    assert sql(late) == ["DROP COLUMN `a`"]
    assert reread(late) == [("s1", ("b",))]


@pytest.mark.parametrize("origin", [NO_ORIGIN, SHARD_COLUMN])
def test_a_shard_that_drops_the_old_name_and_adds_the_new_one_is_read_again(origin: Origin) -> None:
    """Its rows hold values of the dropped column: no statement knows which."""
    shards = line("s0", "s1", origin=origin)
    shards.alter("s0", RENAME)
    decision = shards.alter("s1", "DROP COLUMN a, ADD COLUMN b INT")
    assert sql(decision) == [COPY, "DROP COLUMN `a`"]
    assert reread(decision) == [("s1", ("b",))]

    shards = line("s0", "s1", origin=origin)
    shards.alter("s0", RENAME)
    assert shards.alter("s1", "ADD COLUMN b INT").outcome is Outcome.HOLD
    decision = shards.alter("s1", "DROP COLUMN a")
    assert sql(decision) == [COPY, "DROP COLUMN `a`"]
    assert reread(decision) == [("s1", ("b",))]


def test_what_a_held_shard_did_to_its_rows_follows_the_rename() -> None:
    shards = line("s0", "s1")
    shards.alter("s0", "MODIFY a DATE")
    shards.alter("s0", RENAME)
    released = shards.alter("s1", "MODIFY a DATE")
    assert [s.source for s in released.released] == ["s0"]
    assert ("s0", ("b",)) in reread(released)


def test_a_held_rename_of_the_key_cannot_be_skipped_and_the_shard_can_be_taken_out() -> None:
    shards = line("s0", "s1")
    shards.alter("s0", "RENAME COLUMN id TO x")
    skipped = shards.command(CommandKind.SKIP, "s0")
    assert skipped.outcome is Outcome.REFUSED
    assert "primary key" in skipped.reason
    assert shards.command(CommandKind.LEAVE, "s0").released == (shard_of("s0"),)
    assert shards.held == []


def test_the_policy_may_change_while_a_column_is_copied() -> None:
    shards = line("s0", "s1")
    shards.alter("s0", RENAME)
    shards.renames = RenamePolicy.MAP
    assert sql(shards.alter("s1", RENAME)) == [COPY, "DROP COLUMN `a`"]


def test_the_copy_leaves_the_time_of_a_rows_last_change_alone() -> None:
    """ON UPDATE CURRENT_TIMESTAMP would take the statement for a change of the row."""
    stamp = "ts TIMESTAMP DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP"
    shards = line("s0", "s1", create=f"{BASE}, {stamp}")
    shards.alter("s0", RENAME)
    copy = shards.alter("s1", RENAME).statements[0].sql
    assert copy == COPY.replace(" WHERE", ", `ts` = `ts` WHERE")
