"""Which indexes and checks go and come."""

from __future__ import annotations

from shardmerge.schemas.lattice.copied_columns import NO_MOVES
from shardmerge.schemas.lattice.type_join import WIDE
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.target.dialects.mysql_dialect import MYSQL_8
from shardmerge.schemas.target.diff_keys import (
    added_checks,
    added_indexes,
    columns_of,
    dropped_checks,
    dropped_indexes,
)
from shardmerge.schemas.target.target_change import TargetChange
from shardmerge.schemas.target.target_table import TargetSchema
from tests.strategies import table


def change(before: str, after: str, **renamed: str) -> TargetChange:
    """Columns are known by their names before; ``renamed``: after → before."""
    old, new = (table(f"create table t (id int primary key, {text})") for text in (before, after))
    return TargetChange.of(
        old, [ShardColumn(c.name, c) for c in old.columns],
        TargetSchema(new, tuple(ShardColumn(renamed.get(c.name, c.name), c) for c in new.columns)),
        MYSQL_8, copies=NO_MOVES, renewed=lambda column_id: False, types=WIDE,
    )  # fmt: skip


def test_an_index_follows_a_renamed_column() -> None:
    found = change("a int, key k (a)", "b int, key k (b)", b="a")
    assert not list(dropped_indexes(found, ()))
    assert not list(added_indexes(found, ()))
    assert not found.key_changes


def test_an_index_of_another_definition_goes_and_comes() -> None:
    found = change("a int, key k (a), key l (a)", "a int, key k (a desc), key m (a)")
    assert [(i.name, returns) for i, returns in dropped_indexes(found, ())] == [
        ("k", True), ("l", False),
    ]  # fmt: skip
    assert [i.name for i in added_indexes(found, ())] == ["k", "m"]


def test_an_index_of_a_column_that_must_be_in_none_goes_and_comes_under_its_new_name() -> None:
    found = change("a int, key k (a), key f ((a + 1))", "b int, key k (b), key f ((a + 1))", b="a")
    assert [(i.name, returns) for i, returns in dropped_indexes(found, {"a"})] == [
        ("k", True), ("f", True),
    ]  # fmt: skip
    assert [columns_of(i) for i in added_indexes(found, {"a"})] == [["b"]]


def test_a_check_of_another_text_goes_and_comes() -> None:
    found = change(
        "a int, constraint c check (a > 0), constraint d check (a > 1)",
        "a int, constraint c check (a > 2), constraint d check (a > 1)",
    )
    assert [c.expression for c in dropped_checks(found)] == ["(`a` > 0)"]
    assert [c.expression for c in added_checks(found)] == ["(`a` > 2)"]
