"""The DDL lock: a change waits until every live shard has made it, and is executed once."""

from __future__ import annotations

import pytest

from shardmerge.schemas.ddl.apply.statements import apply_alter, apply_create
from shardmerge.schemas.ddl.changes import AlterTable, CreateTable
from shardmerge.schemas.ddl.grammar import parse
from shardmerge.schemas.model.frozen import replace
from shardmerge.schemas.model.policies import Mode
from shardmerge.schemas.records.decisions import Decision, Outcome, Release
from shardmerge.schemas.records.operator_commands import CommandKind
from tests.unit.agents.sql_line import SqlLine, shard_of, sql


def line(*sources: str, create: str = "id INT PRIMARY KEY") -> SqlLine:
    return SqlLine(Mode.PESSIMISTIC, *sources, create=create)


def tell(shards: SqlLine, source: str, columns: str) -> Decision:
    return shards.command(CommandKind.SET_SCHEMA, source, f"CREATE TABLE t ({columns})")


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

    assert sql(last) == ["ADD COLUMN `c` int COMMENT 'y'"]


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


def test_a_shard_that_takes_over_a_queue_says_where_it_stands_itself() -> None:
    shards = line("s0", "s1")
    for column in ("c", "d", "e"):
        shards.alter("s0", f"ADD COLUMN {column} INT")
    came = shards.create("s2", "id INT PRIMARY KEY, c INT, d INT, e INT")

    for column in ("c", "d"):
        assert shards.alter("s1", f"ADD COLUMN {column} INT").released == (shard_of("s0"),)
        hold = shards.state.shards[shard_of("s2")].hold
        assert hold is not None
        assert (hold.version, hold.position) == (came.version, came.position)

    told = shards.drop("s2").warnings
    assert f"s2/app.t was held at {came.position}: its rows after that are passed over" in told


def test_a_shard_that_goes_back_in_a_queue_that_it_took_over_says_where_it_stands_itself() -> None:
    shards = line("s0", "s1")
    for column in ("c", "d", "e"):
        shards.alter("s0", f"ADD COLUMN {column} INT")
    came = shards.create("s2", "id INT PRIMARY KEY, c INT, d INT, e INT")
    shards.alter("s2", "DROP COLUMN e")

    shards.alter("s1", "ADD COLUMN c INT")

    hold = shards.state.shards[shard_of("s2")].hold
    assert hold is not None
    assert (hold.version, hold.position) == (came.version, came.position)
    assert shards.alter("s1", "ADD COLUMN d INT").releases[-1] == Release(shard_of("s2"), 7)


def test_a_shard_that_comes_in_conflict_is_let_in_when_it_fits() -> None:
    shards = line("s0", "s1", create="id INT PRIMARY KEY, a INT")

    assert shards.create("s2", "id INT PRIMARY KEY, a DATE").conflict
    shards.alter("s0", "MODIFY a DATE")
    last = shards.alter("s1", "MODIFY a DATE")

    assert last.outcome is Outcome.EMIT
    assert shards.held == []


def test_a_shard_that_came_in_conflict_is_let_in_when_the_others_are_gone() -> None:
    shards = SqlLine(Mode.PESSIMISTIC, "s0", create="id INT PRIMARY KEY, a DATE")
    assert shards.create("s1", "id INT PRIMARY KEY, a INT").outcome is Outcome.HOLD

    gone = shards.drop("s0")

    assert [release.shard for release in gone.releases] == [shard_of("s1")]
    assert (shards.held, sql(gone)) == ([], ["MODIFY COLUMN `a` int"])


def test_a_shard_that_came_in_conflict_ends_it_when_all_have_the_same_schema() -> None:
    shards = line("s0", "s1", create="id INT NOT NULL, a INT")
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


def test_a_shard_that_came_in_conflict_and_becomes_as_all_are_ends_what_others_wait_for() -> None:
    shards = line("s0", create="id INT PRIMARY KEY")
    shards.create("s1", "id INT PRIMARY KEY, a INT")
    assert shards.create("s2", "id INT PRIMARY KEY, a DATE").conflict
    for action in ("ADD COLUMN b INT", "DROP COLUMN a", "DROP COLUMN b"):
        assert shards.alter("s1", action).outcome is Outcome.HOLD

    last = shards.alter("s2", "DROP COLUMN a")

    assert last.released == (shard_of("s1"), shard_of("s2"))
    assert (shards.held, sql(last)) == ([], ["DROP COLUMN `a`"])


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


def test_a_told_schema_takes_the_place_of_the_statement_that_could_not_be_read() -> None:
    shards = line("s0", "s1", "s2")
    shards.alter("s1", "ADD COLUMN c INT")
    shards.alter("s1", "ADD COLUMN later INT")
    shards.unreadable("s0")

    told = tell(shards, "s0", "id INT PRIMARY KEY, c INT")

    assert (told.outcome, told.conflict) == (Outcome.HOLD, "")
    assert "ADD COLUMN `c` int is made on 2 of 3 shards" in told.reason
    last = shards.alter("s2", "ADD COLUMN c INT")
    assert sql(last) == ["ADD COLUMN `c` int"]
    assert last.releases == (Release(shard_of("s0"), 7), Release(shard_of("s1"), 4))
    assert shards.held == ["s1"]


def test_a_told_schema_counts_from_the_last_change_that_could_be_read() -> None:
    shards = line("s0", "s1", create="id INT PRIMARY KEY, a INT")
    shards.alter("s0", "RENAME COLUMN a TO b")
    shards.unreadable("s0")
    shards.unreadable("s0")
    tell(shards, "s0", "id INT PRIMARY KEY, b INT, d INT")
    shards.alter("s0", "ADD COLUMN later INT")

    one = shards.alter("s1", "RENAME COLUMN a TO b")
    two = shards.alter("s1", "ADD COLUMN d INT")

    assert one.releases == (Release(shard_of("s0"), 3),)
    assert two.releases == (Release(shard_of("s0"), 6),)
    assert (sql(two), shards.columns) == (["ADD COLUMN `d` int"], ["b", "d", "id"])
    assert [column.id for column in shards.state.columns][:2] == ["id#1", "a#1"]
    assert shards.held == ["s0"]
    assert shards.alter("s1", "ADD COLUMN later INT").released == (shard_of("s0"),)


@pytest.mark.parametrize("kind", [CommandKind.UNLOCK_EXECUTE, CommandKind.UNLOCK_DISCARD])
def test_a_lock_with_a_told_schema_is_opened_by_command(kind: CommandKind) -> None:
    shards = line("s0", "s1")
    shards.unreadable("s0")
    assert shards.command(kind, "s0").code == "SM-1305"
    tell(shards, "s0", "id INT PRIMARY KEY, c INT")

    answer = shards.command(kind, "s0")

    assert [(r.shard, r.through) for r in answer.releases] == [(shard_of("s0"), 5)]
    assert shards.held == []


def test_a_shard_that_is_told_to_be_as_before_its_waiting_change_keeps_what_it_waits_for() -> None:
    shards = line("s0", "s1")
    shards.alter("s0", "ADD COLUMN c INT")
    shards.alter("s0", "ADD COLUMN d INT")
    shards.unreadable("s0")

    tell(shards, "s0", "id INT PRIMARY KEY, c INT")

    assert sql(shards.alter("s1", "ADD COLUMN c INT")) == ["ADD COLUMN `c` int"]
    assert shards.held == []


def test_a_schema_told_under_an_earlier_version_ends_the_hold_when_it_is_told_again() -> None:
    shards = line("s0", "s1", "s2")
    shards.alter("s1", "ADD COLUMN c INT")
    shards.alter("s1", "ADD COLUMN later INT")
    shards.unreadable("s0")
    unread = shards.state.shards[shard_of("s0")].hold
    tell(shards, "s0", "id INT PRIMARY KEY, c INT")
    known = shards.state.shards[shard_of("s0")]
    assert known.hold is not None and unread is not None
    # Up to version 0.1.0 the statement that could not be read stayed before the told schema.
    queue = (*unread.queue, *known.hold.queue)
    shards.put(replace(known, hold=replace(known.hold, queue=queue)))
    assert shards.alter("s2", "ADD COLUMN c INT").outcome is Outcome.HOLD

    again = tell(shards, "s0", "id INT PRIMARY KEY, c INT")

    assert sql(again) == ["ADD COLUMN `c` int"]
    assert shards.held == ["s1"]


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


COLUMNS = "id INT PRIMARY KEY, a INT, v VARCHAR(20) NOT NULL DEFAULT 'x'"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ADD INDEX (a)", "ADD INDEX a (a)"),
        ("ADD UNIQUE (a)", "ADD UNIQUE KEY `A` (a)"),
        ("ADD c INT UNIQUE", "ADD c INT, ADD UNIQUE (c)"),
        ("ADD c INT CHECK (c > 1)", "ADD c INT, ADD CONSTRAINT CHECK (c>1)"),
        ("ADD c INT, ADD d INT", "ADD d INT, ADD c INT"),
        ("ADD c INT AS (a+1)", "ADD c INT GENERATED ALWAYS AS (`A` + 1) VIRTUAL"),
        ("ADD c INT INVISIBLE", "ADD c INT"),
        ("ADD c BOOL DEFAULT TRUE", "ADD c TINYINT(1) DEFAULT 1"),
        ("ADD c TIMESTAMP DEFAULT NOW()", "ADD c TIMESTAMP DEFAULT CURRENT_TIMESTAMP"),
        ("ADD c VARCHAR(9)", "ADD c VARCHAR(9) CHARACTER SET utf8mb4"),
        ("MODIFY a BIGINT", "CHANGE a A BIGINT"),
        ("RENAME COLUMN a TO b", "CHANGE a b INT"),
        ("ALTER v SET DEFAULT 'y'", "MODIFY v VARCHAR(20) NOT NULL DEFAULT 'y'"),
        ("DROP a, ADD a DATE", "ADD COLUMN a DATE, DROP COLUMN a"),
    ],
)
def test_it_does_not_matter_how_a_change_is_written(one: str, other: str) -> None:
    shards = line("s0", "s1", "s2", create=COLUMNS)
    shards.alter("s0", one)
    # The finals differ, so that only the sameness of the first changes can open the lock.
    shards.alter("s0", "ADD later INT")

    second = shards.alter("s1", other)
    last = shards.alter("s2", one)

    assert "2 of 3 shards" in second.reason
    assert last.outcome is Outcome.EMIT
    assert last.released == (shard_of("s0"), shard_of("s1"))
    assert shards.held == ["s0"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ADD c INT", "ADD c BIGINT"),
        ("ADD INDEX k (a)", "ADD UNIQUE INDEX k (a)"),
        ("ADD CHECK (a > 0)", "ADD CHECK (a > 1)"),
        ("DROP a, ADD a DATE", "MODIFY a DATE"),
        ("RENAME COLUMN a TO b", "DROP a, ADD b INT"),
    ],
)
def test_changes_that_do_not_come_to_the_same_are_different(one: str, other: str) -> None:
    shards = line("s0", "s1", create=COLUMNS)
    shards.alter("s0", one)
    shards.alter("s0", "ADD later INT")

    second = shards.alter("s1", other)

    assert second.outcome is Outcome.HOLD
    assert "do not make the same changes" in second.conflict


def test_one_statement_is_the_same_change_whatever_it_changed() -> None:
    shards = line("s0", create="id INT PRIMARY KEY, a INT, b INT")
    shards.create("s1", "id INT PRIMARY KEY, a BIGINT, b INT")
    shards.alter("s0", "CHANGE a c BIGINT")

    last = shards.alter("s1", "CHANGE a c BIGINT")

    assert last.outcome is Outcome.EMIT
    assert shards.held == []


def cut_over(shards: SqlLine, source: str, alter: str) -> Decision:
    """What the tracker makes of a run of gh-ost."""
    statement = parse(f"ALTER TABLE t {alter}", shards.context)
    assert isinstance(statement, AlterTable)
    result = apply_alter(shards.schemas[source], statement, "t", shards.context)
    return shards.send(source, result.schema, result.lineage, ("RENAME FROM app._t_gho",))


def test_a_run_of_gh_ost_and_an_alter_table_are_the_same_change() -> None:
    shards = line("s0", "s1", "s2", create=COLUMNS)

    first = cut_over(shards, "s0", "CHANGE a b INT, ADD INDEX (v)")
    shards.alter("s1", "RENAME COLUMN a TO b, ADD KEY v (v)")
    last = cut_over(shards, "s2", "ADD INDEX (v), CHANGE a b INT")

    assert "ADD INDEX `v` (`v`), RENAME COLUMN `a` TO `b` is made on 1 of 3" in first.reason
    assert last.outcome is Outcome.EMIT
    assert shards.held == []


def test_two_runs_of_gh_ost_are_two_changes() -> None:
    shards = line("s0", "s1", create=COLUMNS)
    cut_over(shards, "s0", "ADD c INT")

    other = cut_over(shards, "s1", "ADD d INT")

    assert "ADD COLUMN `c` int (shards: 1); ADD COLUMN `d` int (shards: 1)" in other.conflict


def test_a_shard_whose_change_an_operator_executed_has_made_it() -> None:
    shards = line("s0", "s1", "s2")
    shards.alter("s0", "ADD COLUMN c INT")
    shards.command(CommandKind.UNLOCK_EXECUTE, "s0")

    second = shards.alter("s1", "ADD COLUMN c INT")
    behind = shards.alter("s1", "ADD COLUMN d INT")
    last = shards.alter("s2", "ADD COLUMN c INT")

    assert "made on 2 of 3 shards" in second.reason
    assert "made on 2 of 3 shards" in behind.reason
    assert last.released == (shard_of("s1"),)
    waits = shards.alter("s0", "ADD COLUMN d INT")
    assert "ADD COLUMN `d` int is made on 2 of 3 shards" in waits.reason
    assert sql(shards.alter("s2", "ADD COLUMN d INT")) == ["ADD COLUMN `d` int"]
    assert shards.held == []


def test_shards_that_wait_with_another_change_have_made_what_they_have_already() -> None:
    shards = line("s0", "s1")
    shards.alter("s0", "ADD COLUMN c INT")
    shards.command(CommandKind.UNLOCK_EXECUTE, "s0")
    shards.alter("s0", "ADD COLUMN d INT")

    first = shards.alter("s1", "ADD COLUMN c INT")

    assert (first.outcome, shards.held) == (Outcome.NOOP, ["s0"])
    assert sql(shards.alter("s1", "ADD COLUMN d INT")) == ["ADD COLUMN `d` int"]
    assert shards.held == []


def test_a_shard_that_comes_with_the_change_and_another_column_has_made_it() -> None:
    shards = line("s0", "s1")
    shards.alter("s0", "ADD COLUMN c INT")

    assert shards.create("s2", "id INT PRIMARY KEY, c INT, z INT").outcome is Outcome.EMIT
    last = shards.alter("s1", "ADD COLUMN c INT")

    assert last.released == (shard_of("s0"),)
    assert shards.held == []


def test_a_shard_that_is_dropped_and_made_again_is_waited_for_unless_it_has_the_change() -> None:
    for columns, again in (("id INT PRIMARY KEY", "1 of 2"), ("id INT PRIMARY KEY, c INT", "")):
        shards = line("s0", "s1")
        shards.alter("s0", "ADD COLUMN c INT")
        shards.drop("s0")
        shards.create("s0", columns)

        last = shards.alter("s1", "ADD COLUMN c INT")

        assert (last.outcome is Outcome.HOLD) == bool(again)
        assert again in last.reason


def test_tables_that_are_described_anew_made_what_became_of_them() -> None:
    shards = line("s0", "s1", create=COLUMNS)
    for source, column in (("s0", "c INT"), ("s1", "d INT")):
        statement = parse(f"CREATE TABLE t ({COLUMNS}, {column})", shards.context)
        assert isinstance(statement, CreateTable)
        described = apply_create(statement, shards.context)
        last = shards.send(source, described, actions=("CREATE TABLE",))

    assert "ADD COLUMN `c` int (shards: 1); ADD COLUMN `d` int (shards: 1)" in last.conflict


@pytest.mark.parametrize("action", ["ADD c INT COMMENT 'x'", "MODIFY a BIGINT COMMENT 'x'"])
def test_a_comment_passes_the_lock_with_its_change(action: str) -> None:
    shards = SqlLine(Mode.PESSIMISTIC, "s0", "s1", create="id INT PRIMARY KEY, a INT")
    shards.alter("s0", action)
    shards.alter("s1", action)
    assert shards.target is not None
    assert [c.comment for c in shards.target.columns if c.name != "id"][-1] == "x"


def test_a_comment_passes_with_a_change_that_a_command_executes() -> None:
    shards = SqlLine(Mode.PESSIMISTIC, "s0", "s1", create="id INT PRIMARY KEY, a INT")
    shards.alter("s0", "ADD c INT COMMENT 'x'")
    shards.command(CommandKind.UNLOCK_EXECUTE, "s0")
    column = shards.target.column("c") if shards.target else None
    assert column is not None and column.comment == "x"
