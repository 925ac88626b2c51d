from __future__ import annotations

from dataclasses import replace

from shardmerge.schemas.model.policies import (
    RenamePolicy,
    RoutePolicies,
    RowOperation,
    RowsPolicy,
)
from shardmerge.spark_sink.validation.compared_table import compared_table

from .facts import ORIGIN, RULE, S1, S2, shard, target, with_origin

NARROW = "CREATE TABLE t (id int PRIMARY KEY, a varchar(9))"
WIDE = "CREATE TABLE t (id bigint PRIMARY KEY, a varchar(20))"


def test_a_renamed_column_is_compared_with_the_targets_column_of_its_identity() -> None:
    renamed = shard(S2, "CREATE TABLE t (id int PRIMARY KEY, title varchar(9))", title="a#1")
    found = compared_table(target(WIDE), [shard(S1, NARROW), renamed])
    assert found.columns == ("id", "a")
    assert [side.values for side in found.shards] == [("`id`", "`a`"), ("`id`", "`title`")]
    assert found.only_rows == ""
    assert found.left_out == ()
    assert found.key == ("id",)


def test_a_column_that_a_shard_lacks_is_judged_only_where_there_is_one() -> None:
    less = shard(S2, "CREATE TABLE t (id int PRIMARY KEY)")
    found = compared_table(target(WIDE), [shard(S1, NARROW), less])
    assert [[text is not None for text in side.texts] for side in found.shards] == [
        [True, True],
        [True, False],
    ]
    assert found.hashed == ("id", "a")
    assert found.only_rows == ""
    assert found.left_out == (f"column a is not compared in rows of shards without it: {S2}",)


def test_rows_are_compared_one_by_one_where_a_lacking_value_is_not_known() -> None:
    wide = "CREATE TABLE t (id bigint PRIMARY KEY, a timestamp not null default current_timestamp)"
    own = "CREATE TABLE t (id int PRIMARY KEY, a timestamp not null default current_timestamp)"
    less = shard(S2, "CREATE TABLE t (id int PRIMARY KEY)")
    found = compared_table(target(wide), [shard(S1, own), less])
    assert found.hashed == ("id",)
    assert "the value of column a for shards without it is not known" in found.only_rows
    assert [side.loose[0] is not None for side in (found.side, *found.shards)] == [
        True, True, False,
    ]  # fmt: skip


def test_a_copied_column_is_not_compared_while_not_all_shards_have_it() -> None:
    rule = replace(RULE, policies=RoutePolicies(renames=RenamePolicy.COPY))
    less = shard(S2, "CREATE TABLE t (id int PRIMARY KEY)", rule)
    found = compared_table(target(WIDE), [shard(S1, NARROW, rule), less])
    assert found.columns == ("id",)
    assert "may be a copy" in found.left_out[0]


def test_origin_columns_are_compared_and_belong_to_the_key() -> None:
    rule = with_origin()
    found = compared_table(
        target(WIDE, origin=ORIGIN), [shard(S1, NARROW, rule), shard(S2, NARROW, rule)]
    )
    assert found.key == ("id", "_shard")
    assert [c.name for c in found.side.range_key] == ["id"]
    assert found.shards[0].values[-1] == f"_utf8mb4 X'{str(S1).encode().hex().upper()}'"
    assert found.side.condition == ""


def test_one_of_the_shards_is_compared_by_its_origin_column() -> None:
    rule = with_origin()
    shards = [shard(S1, NARROW, rule), shard(S2, NARROW, rule)]
    found = compared_table(target(WIDE, origin=ORIGIN), shards, [S1])
    assert found.side.condition == f"(`_shard` = '{S1}')"
    assert found.judges_extra
    assert [side.shard for side in found.shards] == [S1]


def test_without_origin_columns_rows_of_other_shards_are_no_difference() -> None:
    shards = [shard(S1, NARROW), shard(S2, NARROW, obstacle="it is held")]
    found = compared_table(target(WIDE), shards)
    assert not found.judges_extra
    assert found.only_rows
    assert found.left_out[0] == f"{S2} is not compared: it is held"
    assert "not judged: not all shards are compared" in found.left_out[1]
    assert not compared_table(target(WIDE, kept="x"), [shard(S1, NARROW)]).judges_extra


def test_a_condition_that_sql_says_is_asked_of_the_server() -> None:
    rule = replace(RULE, where="a = 'x' AND id > 3")
    found = compared_table(target(WIDE), [shard(S1, NARROW, rule)])
    assert found.shards[0].condition == (
        "(CAST(CONVERT(`a` USING utf8mb4) AS BINARY) = X'78' AND `id` > 3)"
    )
    assert found.shards[0].where == ""
    rule = replace(RULE, where="a LIKE 'x%' AND id > 3")
    found = compared_table(target(WIDE), [shard(S1, NARROW, rule)])
    assert (found.shards[0].condition, found.shards[0].where) == ("`id` > 3", rule.where)
    assert found.only_rows


def test_what_ignored_operations_can_change_is_not_judged() -> None:
    def judged(*ignored: RowOperation) -> tuple[bool, bool, bool]:
        found = compared_table(target(WIDE), [shard(S1, NARROW, replace(RULE, ignore=ignored))])
        return found.judges_missing, found.judges_extra, found.judges_values

    assert judged() == (True, True, True)
    assert judged(RowOperation.INSERT) == (False, True, True)
    assert judged(RowOperation.DELETE) == (True, False, True)
    assert judged(RowOperation.UPDATE) == (True, True, False)
    kept = replace(RULE, on_truncate=RowsPolicy.KEEP)
    assert not compared_table(target(WIDE), [shard(S1, NARROW, kept)]).judges_extra


def test_left_out_columns_are_said() -> None:
    own = shard(S1, "CREATE TABLE t (id int PRIMARY KEY, a varchar(9), p int)", p="")
    found = compared_table(target(WIDE), [own])
    assert found.left_out == (f"{S1}: column p is left out",)


def test_rows_without_a_key_are_counted() -> None:
    found = compared_table(
        target("CREATE TABLE t (a bigint)"), [shard(S1, "CREATE TABLE t (a int)")]
    )
    assert found.key == ()
