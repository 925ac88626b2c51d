from __future__ import annotations

from typing import Any

from shardmerge.local.union import Table, compare


def table(*rows: dict[str, Any], key: tuple[str, ...] = ("id",)) -> Table:
    return Table(tuple(rows[0]), key, rows)


def test_a_target_that_holds_each_shards_rows_is_equal() -> None:
    target = table({"id": 1, "a": 5}, {"id": 2, "a": 0})
    found = compare(target, [("x", table({"id": 1, "a": 5})), ("y", table({"id": 2}))])
    assert found.equal
    assert found.rows == 2


def test_a_missing_an_extra_and_a_different_row_are_told() -> None:
    target = table({"id": 1, "a": 5}, {"id": 3, "a": 0})
    found = compare(target, [("x", table({"id": 1, "a": 6}, {"id": 2, "a": 6}))])
    assert not found.equal
    assert len(found.differences) == 3


def test_a_column_that_the_target_lacks_is_told() -> None:
    found = compare(table({"id": 1}), [("x", table({"id": 1, "b": 2}))])
    assert not found.equal


def test_a_key_that_two_shards_hold_is_told() -> None:
    row = {"id": 1}
    assert not compare(table(row), [("x", table(row)), ("y", table(row))]).equal


def test_tables_without_a_key_are_compared_as_bags() -> None:
    row = {"id": 1}
    shards = [("x", table(row, key=())), ("y", table(row, key=()))]
    assert compare(table(row, row, key=()), shards).equal
    assert not compare(table(row, key=()), shards).equal


def test_only_the_first_differences_are_told() -> None:
    target = table(*({"id": n} for n in range(50)))
    found = compare(target, [("x", table({"id": 99}))], limit=5)
    assert len(found.differences) == 6
    assert found.differences[-1].startswith("…")


def test_the_origin_column_must_tell_a_rows_shard() -> None:
    shards = [("x", table({"id": 1})), ("y", table({"id": 1}))]
    rows = ({"id": 1, "f": "x"}, {"id": 1, "f": "y"})
    assert compare(table(*rows, key=("id", "f")), shards, shard_column="f").equal
    wrong = ({"id": 1, "f": "x"}, {"id": 1, "f": "z"})
    assert not compare(table(*wrong, key=("id", "f")), shards, shard_column="f").equal
    assert compare(table(rows[0]), shards[:1], shard_column="f").equal


def test_the_key_of_rows_without_a_key_is_not_compared() -> None:
    row = {"a": 1}
    shards = [("x", table(row, key=())), ("y", table(row, key=()))]
    target = table({"a": 1, "p": "one"}, {"a": 1, "p": "two"}, key=("p",))
    assert compare(target, shards, position_column="p").equal
    assert not compare(target, shards[:1], position_column="p").equal
