"""A column's states over the live shards, row by row of the design's transition table."""

from __future__ import annotations

import pytest

from tests.golden.test_diff import Rollout

MYSQL_LIKE = ("mysql 5.7.44", "mysql 8.0.15", "mysql 8.0.36", "mysql 9.4", "mariadb 10.4.30",
              "mariadb 11.8", "tidb 7.5")  # fmt: skip
BASE = "create table t (id int primary key, a int not null, b varchar(9) not null)"


def clauses(emitted: list[str]) -> list[str]:
    """``kind: clause`` of each statement, without the reason."""
    return [text.partition("  -- ")[0] for text in emitted]


@pytest.fixture(params=MYSQL_LIKE)
def target(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_absent_to_partial_adds_the_column_with_a_default_and_unique_and_check_wait(
    target: str,
) -> None:
    rollout = Rollout(BASE, 2, target)
    sql = "add c int not null, add unique key uc (c), add constraint cc check (c >= 0)"
    assert clauses(rollout.alter(0, sql)) == ["expanding: ADD COLUMN `c` int NOT NULL DEFAULT '0'"]


def test_partial_to_partial_modifies_only_if_the_joined_type_grew(target: str) -> None:
    rollout = Rollout(BASE, 3, target)
    rollout.alter(0, "add c int not null")
    assert rollout.alter(1, "add c int not null") == []
    assert clauses(rollout.alter(0, "modify c bigint not null")) == [
        "expanding: MODIFY COLUMN `c` bigint NOT NULL DEFAULT '0'"
    ]
    assert rollout.alter(1, "modify c bigint not null") == []


def test_partial_to_everywhere_drops_our_default_then_come_checks_and_indexes() -> None:
    for target, check in (
        ("mysql 8.0.36", ["contracting: ADD CONSTRAINT `cc` CHECK ((`c` >= 0))"]),
        ("mysql 8.0.15", []),
        ("mariadb 10.4.30", ["contracting: ADD CONSTRAINT `cc` CHECK ((`c` >= 0))"]),
        ("tidb 7.5", []),
    ):
        rollout = Rollout(BASE, 2, target)
        sql = "add c int not null, add unique key uc (c), add constraint cc check (c >= 0)"
        rollout.alter(0, sql)
        assert clauses(rollout.alter(1, sql)) == [
            "contracting: ALTER COLUMN `c` DROP DEFAULT",
            "contracting: ADD UNIQUE INDEX `uc` (`c`)",
            *check,
        ]


def test_partial_to_everywhere_keeps_a_default_that_the_shards_have(target: str) -> None:
    rollout = Rollout(BASE, 2, target)
    rollout.alter(0, "add c int not null default 5")
    assert rollout.alter(1, "add c int not null default 5") == []


def test_everywhere_to_partial_drops_indexes_and_sets_the_default(target: str) -> None:
    rollout = Rollout(BASE.replace("9) not null", "9) not null, key kb (b)"), 2, target)
    assert clauses(rollout.alter(0, "drop column b")) == [
        "expanding: DROP INDEX `kb`",
        "expanding: ALTER COLUMN `b` SET DEFAULT ''",
    ]


def test_everywhere_to_partial_drops_checks_where_there_are_any() -> None:
    for target, words in (("mysql 8.0.36", "CHECK"), ("mariadb 11.8", "CONSTRAINT")):
        rollout = Rollout(BASE.replace("9) not null", "9) not null, constraint cb check (b > '')"),
                          2, target)  # fmt: skip
        # MySQL wants the check dropped first, so does the tracker.
        assert clauses(rollout.alter(0, "drop check cb, drop column b")) == [
            f"expanding: DROP {words} `cb`",
            "expanding: ALTER COLUMN `b` SET DEFAULT ''",
        ]


def test_partial_to_partial_by_a_drop_changes_nothing(target: str) -> None:
    rollout = Rollout(BASE, 3, target)
    rollout.alter(0, "drop column b")
    assert rollout.alter(1, "drop column b") == []


def test_partial_to_absent_drops_the_column(target: str) -> None:
    rollout = Rollout(BASE, 2, target)
    rollout.alter(0, "drop column b")
    assert clauses(rollout.alter(1, "drop column b")) == ["contracting: DROP COLUMN `b`"]


def test_absent_to_everywhere_on_one_shard_has_a_default_for_rows_on_the_way(target: str) -> None:
    rollout = Rollout(BASE, 1, target)
    assert clauses(rollout.alter(0, "add c int not null")) == [
        "expanding: ADD COLUMN `c` int NOT NULL DEFAULT '0'",
        "contracting: ALTER COLUMN `c` DROP DEFAULT",
    ]


def test_everywhere_to_absent_on_one_shard_lets_rows_leave_it_out_first(target: str) -> None:
    rollout = Rollout(BASE, 1, target)
    assert clauses(rollout.alter(0, "drop column b")) == [
        "expanding: ALTER COLUMN `b` SET DEFAULT ''",
        "contracting: DROP COLUMN `b`",
    ]


def test_a_stored_column_becomes_ordinary_with_the_first_shard_and_stored_with_the_last() -> None:
    create = "create table t (id int primary key, a int, g int as (a + 1) stored)"
    for target in MYSQL_LIKE[:-1]:
        rollout = Rollout(create, 2, target)
        assert clauses(rollout.alter(0, "modify g int")) == ["expanding: MODIFY COLUMN `g` int"]
        assert rollout.alter(1, "modify g int") == []
        assert rollout.alter(1, "modify g int as (a + 1) stored") == []
        assert clauses(rollout.alter(0, "modify g int as (a + 1) stored")) == [
            "contracting: MODIFY COLUMN `g` int GENERATED ALWAYS AS ((`a` + 1)) STORED"
        ]


def test_tidb_says_that_it_cannot_turn_a_computed_column_into_an_ordinary_one() -> None:
    create = "create table t (id int primary key, a int, g int as (a + 1) stored)"
    (answer,) = Rollout(create, 2, "tidb 7.5").alter(0, "modify g int")
    assert answer.startswith("cannot: ")


def test_many_actions_in_one_alter_come_in_the_one_legal_order(target: str) -> None:
    rollout = Rollout(
        "create table t (id int primary key, a int not null, b int, c int, key kb (b))", 1, target
    )
    sql = (
        "drop column a, drop key kb, modify c bigint, add d int not null, rename column b to e,"
        " add key ke (e), add unique key ud (d)"
    )
    rename = "RENAME COLUMN `b` TO `e`"
    if target in ("mysql 5.7.44", "mariadb 10.4.30"):
        rename = "CHANGE COLUMN `b` `e` int"
    assert clauses(rollout.alter(0, sql)) == [
        "expanding: DROP INDEX `kb`",
        "expanding: ALTER COLUMN `a` SET DEFAULT '0'",
        f"expanding: {rename}",
        "expanding: MODIFY COLUMN `c` bigint",
        "expanding: ADD COLUMN `d` int NOT NULL DEFAULT '0'",
        "contracting: ALTER COLUMN `d` DROP DEFAULT",
        "contracting: DROP COLUMN `a`",
        "contracting: ADD INDEX `ke` (`e`)",
        "contracting: ADD UNIQUE INDEX `ud` (`d`)",
    ]


def test_names_swapped_by_change_carry_the_whole_definition_at_each_step() -> None:
    create = "create table t (id int primary key, a int not null default 7, b varchar(9))"
    rollout = Rollout(create, 1, "mysql 5.7.44")
    sql = "change a b int not null default 7, change b a varchar(9)"
    assert clauses(rollout.alter(0, sql)) == [
        "expanding: CHANGE COLUMN `a` `_shardmerge_a` int NOT NULL DEFAULT '7'",
        "expanding: CHANGE COLUMN `b` `a` varchar(9) CHARACTER SET utf8mb4",
        "expanding: CHANGE COLUMN `_shardmerge_a` `b` int NOT NULL DEFAULT '7'",
    ]


def test_the_name_between_two_renames_is_free_and_no_longer_than_a_name_may_be() -> None:
    long = "a" * 64
    create = f"create table t ({long} int primary key, b int, _shardmerge_{'a' * 48} int)"
    emitted = Rollout(create, 1).alter(0, f"rename column {long} to b, rename column b to {long}")
    between = f"_shardmerge_{'a' * 48}1"
    assert [text.partition("COLUMN ")[2].partition("  --")[0] for text in emitted] == [
        f"`{long}` TO `{between}`", f"`b` TO `{long}`", f"`{between}` TO `b`",
    ]  # fmt: skip


def test_a_column_that_a_computed_one_names_is_renamed_without_it(target: str) -> None:
    """MySQL refuses to rename a column that a generated column names (error 3108)."""
    create = "create table t (id int primary key, a int, g int as (a + 1), key kg (g))"
    rollout = Rollout(create, 1, target)
    emitted = rollout.alter(0, "drop column g, rename column a to b, add g int as (b + 1)")
    rename = next(i for i, text in enumerate(emitted) if "`a`" in text and "`b`" in text)
    drop = next(i for i, text in enumerate(emitted) if "DROP COLUMN `g`" in text)
    add = next(i for i, text in enumerate(emitted) if "ADD COLUMN `g`" in text)
    assert drop < rename < add


def test_a_server_that_follows_a_rename_into_expressions_leads_to_the_same() -> None:
    rollout = Rollout("create table t (id int primary key, a int, g int as (a + 1), key kg (g))", 1)
    assert clauses(rollout.alter(0, "rename column a to b")) == [
        "expanding: DROP INDEX `kg`",
        "expanding: DROP COLUMN `g`",
        "expanding: RENAME COLUMN `a` TO `b`",
        "contracting: ADD COLUMN `g` int GENERATED ALWAYS AS ((`b` + 1)) VIRTUAL",
        "contracting: ADD INDEX `kg` (`g`)",
    ]


def test_a_stored_column_is_freed_before_what_it_names_is_renamed() -> None:
    create = "create table t (id int primary key, a int, g int as (a + 1) stored)"
    assert clauses(Rollout(create, 1).alter(0, "modify g int, rename column a to b")) == [
        "expanding: MODIFY COLUMN `g` int",
        "expanding: RENAME COLUMN `a` TO `b`",
    ]


def test_order_options_and_invisible_indexes_are_not_passed_through(target: str) -> None:
    rollout = Rollout(BASE.replace("9) not null", "9) not null, key kb (b)"), 1, target)
    for sql in (
        "modify b varchar(9) not null first", "comment = 'x', row_format = compressed",
        "alter index kb invisible", "engine = innodb",
    ):  # fmt: skip
        assert rollout.alter(0, sql) == []


def test_the_default_charset_follows_the_shards(target: str) -> None:
    rollout = Rollout(BASE, 2, target)
    wide = clauses(rollout.alter(0, "default charset utf8mb4 collate utf8mb4_bin"))
    same = clauses(rollout.alter(1, "default charset utf8mb4 collate utf8mb4_bin"))
    assert [*wide, *same] == ["expanding: DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"]
    narrow = clauses(rollout.alter(0, "default charset latin1"))
    assert narrow == ["expanding: DEFAULT CHARACTER SET utf8mb4"]
    # TiDB changes it to utf8mb4 only.
    last = clauses(rollout.alter(1, "default charset latin1"))
    assert last == ([] if "tidb" in target else ["expanding: DEFAULT CHARACTER SET latin1"])


def test_a_comment_is_passed_through_and_stays_whatever_else_happens(target: str) -> None:
    rollout = Rollout(BASE, 2, target)
    assert clauses(rollout.alter(0, "modify a int not null comment 'it''s'")) == [
        "expanding: MODIFY COLUMN `a` int NOT NULL COMMENT 'it''s'"
    ]
    assert rollout.alter(1, "modify a int not null comment 'it''s'") == []
    assert rollout.alter(0, "add c int") != []
    assert clauses(rollout.alter(0, "modify a bigint not null comment 'it''s'")) == [
        "expanding: MODIFY COLUMN `a` bigint NOT NULL COMMENT 'it''s'"
    ]
    assert clauses(rollout.alter(0, "add d int comment 'new'")) == [
        "expanding: ADD COLUMN `d` int COMMENT 'new'"
    ]
    assert clauses(rollout.alter(1, "modify a int not null")) == [
        "expanding: MODIFY COLUMN `a` bigint NOT NULL"
    ]


def test_a_comment_of_an_iceberg_column_is_set_alone() -> None:
    rollout = Rollout(BASE, 2, "iceberg")
    assert clauses(rollout.alter(0, "modify a int not null comment 'x'")) == [
        "expanding: ALTER COLUMN `a` COMMENT 'x'"
    ]
