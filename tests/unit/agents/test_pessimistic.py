"""The DDL lock: a change waits until every live shard has made it, and is executed once."""

from __future__ import annotations

from shardmerge.schemas.events import Outcome, Release
from shardmerge.schemas.routing import Mode

from .sql_line import SqlLine, shard_of, sql


def line(*sources: str, create: str = "id INT PRIMARY KEY") -> SqlLine:
    return SqlLine(Mode.PESSIMISTIC, *sources, create=create)


def test_a_change_is_executed_once_when_the_last_shard_has_made_it() -> None:
    shards = line("s0", "s1", "s2")

    first = shards.alter("s0", "ADD COLUMN c INT")
    second = shards.alter("s1", "ADD COLUMN c INT")
    last = shards.alter("s2", "ADD COLUMN c INT")

    assert [first.outcome, second.outcome] == [Outcome.HOLD, Outcome.HOLD]
    assert "1 of 3 shards" in first.reason
    assert "2 of 3 shards" in second.reason
    assert not first.conflict
    assert sql(last) == ["ADD COLUMN `c` int"]
    assert last.releases == (Release(shard_of("s0"), 4), Release(shard_of("s1"), 5))
    assert shards.held == []


def test_a_comment_a_place_and_quotes_do_not_make_another_change() -> None:
    shards = line("s0", "s1")

    shards.alter("s0", "ADD COLUMN c INT COMMENT 'x' FIRST")
    last = shards.alter("s1", "ADD `c` INT(11) COMMENT 'y'")

    assert sql(last) == ["ADD COLUMN `c` int"]


def test_later_changes_of_a_shard_wait_behind_its_first() -> None:
    shards = line("s0", "s1")

    shards.alter("s0", "ADD COLUMN c INT")
    behind = shards.alter("s0", "ADD COLUMN d INT")
    one = shards.alter("s1", "ADD COLUMN c INT")

    assert "behind it here: ADD COLUMN `d` int" in behind.reason
    assert sql(one) == ["ADD COLUMN `c` int"]
    assert one.releases == (Release(shard_of("s0"), 3),)
    assert shards.held == ["s0"]
    two = shards.alter("s1", "ADD COLUMN d INT")
    assert sql(two) == ["ADD COLUMN `d` int"]
    assert two.releases == (Release(shard_of("s0"), 4),)
    assert shards.held == []


def test_another_change_is_a_conflict_that_both_sides_can_leave() -> None:
    shards = line("s0", "s1")

    shards.alter("s0", "ADD COLUMN c INT")
    other = shards.alter("s1", "ADD COLUMN d INT")

    assert other.outcome is Outcome.HOLD
    assert "ADD COLUMN `c` int (shards: 1); ADD COLUMN `d` int (shards: 1)" in other.conflict
    back = shards.alter("s1", "DROP COLUMN d")
    assert (back.outcome, back.released) == (Outcome.NOOP, (shard_of("s1"),))
    assert shards.held == ["s0"]
    assert sql(shards.alter("s1", "ADD COLUMN c INT")) == ["ADD COLUMN `c` int"]


def test_another_order_is_a_conflict_until_all_schemas_are_equal() -> None:
    shards = line("s0", "s1")

    shards.alter("s0", "ADD COLUMN c INT")
    shards.alter("s0", "ADD COLUMN d INT")
    assert shards.alter("s1", "ADD COLUMN d INT").conflict
    last = shards.alter("s1", "ADD COLUMN c INT")

    assert last.outcome is Outcome.EMIT
    assert last.releases == (Release(shard_of("s0"), 6), Release(shard_of("s1"), 6))
    assert shards.columns == ["c", "d", "id"]


def test_one_statement_is_the_same_as_two() -> None:
    shards = line("s0", "s1")

    shards.alter("s0", "ADD COLUMN c INT, ADD COLUMN d INT")
    shards.alter("s1", "ADD COLUMN c INT")
    last = shards.alter("s1", "ADD COLUMN d INT")

    assert last.outcome is Outcome.EMIT
    assert shards.held == []


def test_a_column_is_renamed_once_on_the_target_when_all_shards_renamed_it() -> None:
    shards = line("s0", "s1", create="id INT PRIMARY KEY, a INT")

    held = shards.alter("s0", "RENAME COLUMN a TO b")
    assert held.statements == ()
    last = shards.alter("s1", "RENAME COLUMN a TO b")

    assert sql(last) == ["RENAME COLUMN `a` TO `b`"] or "`b`" in sql(last)[0]
    assert shards.columns == ["b", "id"]


def test_a_shard_that_undoes_the_first_of_its_changes_keeps_the_others() -> None:
    shards = line("s0", "s1")
    shards.alter("s0", "ADD COLUMN c INT")
    shards.alter("s0", "ADD COLUMN d INT")

    shards.alter("s0", "DROP COLUMN c")
    last = shards.alter("s1", "ADD COLUMN d INT")

    assert sql(last) == ["ADD COLUMN `d` int"]
    assert shards.held == []


def test_a_column_that_comes_and_goes_while_the_lock_is_open_can_pass_the_target() -> None:
    shards = line("s0", "s1", create="id INT PRIMARY KEY, a INT")
    for statement in ("ADD COLUMN c INT", "MODIFY a BIGINT", "DROP COLUMN c"):
        shards.alter("s0", statement)

    found = [sql(shards.alter("s1", "ADD COLUMN c INT")), shards.columns]
    found += [sql(shards.alter("s1", "MODIFY a BIGINT"))]
    found += [sql(shards.alter("s1", "DROP COLUMN c")), shards.columns]

    assert found == [
        ["ADD COLUMN `c` int"],
        ["a", "c", "id"],
        ["MODIFY COLUMN `a` bigint"],
        ["DROP COLUMN `c`"],
        ["a", "id"],
    ]


def test_nobody_waits_for_a_shard_that_leaves() -> None:
    shards = line("s0", "s1", "s2")
    for source in ("s0", "s1"):
        shards.alter(source, "ADD COLUMN c INT")
        shards.alter(source, "ADD COLUMN d INT")

    gone = shards.drop("s2")

    assert not gone.live
    assert gone.outcome is Outcome.EMIT
    assert gone.releases == (Release(shard_of("s0"), 5), Release(shard_of("s1"), 7))
    assert shards.columns == ["c", "d", "id"]
    assert shards.held == []


def test_a_held_shard_that_leaves_lets_the_others_go_on() -> None:
    shards = line("s0", "s1")
    shards.alter("s0", "ADD COLUMN c INT")

    gone = shards.drop("s0")

    assert gone.released == (shard_of("s0"),)
    assert shards.held == []
    assert shards.alter("s1", "ADD COLUMN d INT").outcome is Outcome.EMIT


def test_a_shard_that_comes_with_the_old_schema_is_waited_for() -> None:
    shards = line("s0", "s1")
    shards.alter("s0", "ADD COLUMN c INT")

    assert shards.create("s2", "id INT PRIMARY KEY").outcome is Outcome.NOOP
    assert shards.alter("s1", "ADD COLUMN c INT").outcome is Outcome.HOLD
    assert shards.alter("s2", "ADD COLUMN c INT").outcome is Outcome.EMIT
    assert shards.held == []


def test_a_shard_that_comes_with_the_new_schema_has_made_the_change() -> None:
    shards = line("s0", "s1")
    shards.alter("s0", "ADD COLUMN c INT")

    assert shards.create("s2", "id INT PRIMARY KEY, c INT").outcome is Outcome.HOLD
    last = shards.alter("s1", "ADD COLUMN c INT")

    assert sql(last) == ["ADD COLUMN `c` int"]
    assert last.released == (shard_of("s0"), shard_of("s2"))


def test_a_shard_that_comes_in_conflict_is_let_in_when_it_fits() -> None:
    shards = line("s0", "s1", create="id INT PRIMARY KEY, a INT")

    assert shards.create("s2", "id INT PRIMARY KEY, a DATE").conflict
    shards.alter("s0", "MODIFY a DATE")
    last = shards.alter("s1", "MODIFY a DATE")

    assert last.outcome is Outcome.EMIT
    assert shards.held == []


def test_a_shard_that_came_in_conflict_counts_when_the_one_that_it_contradicts_has_left() -> None:
    shards = line("s0", "s1", create="id INT PRIMARY KEY, a INT")
    assert shards.create("s2", "id INT PRIMARY KEY, a DATE").conflict
    shards.drop("s0")
    decision = shards.drop("s1")
    assert shard_of("s2") in decision.released
    assert not shards.state.held


def test_a_shard_that_came_in_conflict_ends_it_when_all_have_the_same_schema() -> None:
    shards = line("s0", "s1", create="id INT, a INT")
    assert shards.create("s2", "id INT PRIMARY KEY, a INT").conflict
    shards.alter("s0", "DROP COLUMN a")
    shards.alter("s0", "ADD PRIMARY KEY (id)")
    shards.alter("s1", "ADD PRIMARY KEY (id)")
    shards.alter("s1", "DROP COLUMN a")
    assert shards.held == ["s0", "s1", "s2"]

    last = shards.alter("s2", "DROP COLUMN a")

    assert last.outcome is Outcome.EMIT
    assert last.released == (shard_of("s0"), shard_of("s1"), shard_of("s2"))
    assert shards.held == []


def test_a_change_that_the_join_does_not_see_needs_no_lock() -> None:
    shards = line("s0", "s1")

    assert shards.alter("s0", "COMMENT = 'x'").outcome is Outcome.NOOP
    assert shards.alter("s0", "ROW_FORMAT=COMPACT").outcome is Outcome.NOOP
    assert shards.held == []


def test_an_unreadable_statement_is_left_by_going_back_or_by_going_on_alike() -> None:
    shards = line("s0", "s1")
    shards.unreadable("s0")

    assert shards.alter("s0", "ADD COLUMN c INT").outcome is Outcome.HOLD
    assert shards.alter("s1", "ADD COLUMN c INT").outcome is Outcome.EMIT
    assert shards.held == []


def test_a_change_that_the_target_cannot_follow_holds_all_until_they_go_on() -> None:
    shards = line("s0", "s1", create="id INT PRIMARY KEY, a VARCHAR(9)")

    shards.alter("s0", "ADD COLUMN g GEOMETRY NOT NULL SRID 4326")
    last = shards.alter("s1", "ADD COLUMN g GEOMETRY NOT NULL SRID 4326")

    assert last.outcome is Outcome.EMIT
    assert shards.held == []


def test_the_mode_can_change_while_the_lock_is_open() -> None:
    shards = line("s0", "s1", "s2")
    shards.alter("s0", "ADD COLUMN c INT")

    shards.mode = Mode.OPTIMISTIC
    free = shards.alter("s1", "ADD COLUMN d INT")

    assert free.outcome is Outcome.EMIT
    assert free.released == (shard_of("s0"),)
    assert shards.columns == ["c", "d", "id"]


def test_how_a_server_is_to_make_a_change_makes_no_other_one_of_it() -> None:
    rollout = SqlLine(Mode.PESSIMISTIC, "s1", "s2", "s3", create="id INT PRIMARY KEY")
    assert rollout.alter("s1", "ADD COLUMN c INT").outcome is Outcome.HOLD
    assert rollout.alter("s1", "ADD COLUMN d INT").outcome is Outcome.HOLD
    second = rollout.alter("s2", "ADD COLUMN c INT, ALGORITHM=INSTANT, LOCK=DEFAULT")
    assert "is made on 2 of 3 shards" in second.reason

    last = rollout.alter("s3", "ADD COLUMN c INT, ENGINE=InnoDB, COMMENT='x', FORCE")

    assert last.outcome is Outcome.EMIT
    assert {str(release.shard) for release in last.releases} >= {"s2/app.t"}
