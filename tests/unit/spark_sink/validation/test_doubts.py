from __future__ import annotations

from dataclasses import replace

from shardmerge.spark_sink.validation.compared_table import compared_table
from shardmerge.spark_sink.validation.doubts import (
    LOOKS,
    ROUNDS,
    Difference,
    DifferenceKind,
    Doubt,
    SeenRow,
    Verdict,
    difference_of,
    doubtful_keys,
    look_again,
)

from .facts import S1, S2, shard, target

OWN = "CREATE TABLE t (id int PRIMARY KEY, a json, b int)"
TABLE = compared_table(
    target(OWN), [shard(S1, OWN), shard(S2, "CREATE TABLE t (id int PRIMARY KEY, a json)")]
)
KEY = ("1",)


def row(shard: object, a: bytes | None = b"[1]", b: bytes | None = b"2") -> SeenRow:
    return SeenRow(shard, (b"1", a, b))  # type: ignore[arg-type]


def test_a_difference_names_the_columns() -> None:
    found = difference_of(TABLE, KEY, [row(S1, b=b"3")], row(None))
    assert found == Difference(DifferenceKind.DIFFERS, KEY, S1, ("b",))
    assert difference_of(TABLE, KEY, [row(S1)], None) == Difference(DifferenceKind.MISSING, KEY, S1)
    assert difference_of(TABLE, KEY, [], row(None)) == Difference(DifferenceKind.EXTRA, KEY)
    assert difference_of(TABLE, KEY, [], None) is None


def test_a_column_that_the_shard_lacks_is_not_judged() -> None:
    assert difference_of(TABLE, KEY, [row(S2, b=None)], row(None)) is None


def test_json_that_means_the_same_is_equal() -> None:
    shard, other = row(S1, b'{"a": 1.0, "b": true}'), row(None, b'{"b":true,"a":1}')
    assert difference_of(TABLE, KEY, [shard], other) is None
    assert difference_of(TABLE, KEY, [shard], row(None, b'{"b":1,"a":1}')) is not None
    assert difference_of(TABLE, KEY, [row(S1, None)], row(None)) is not None


def test_where_shards_collide_the_target_has_one_of_their_rows() -> None:
    both = [row(S1, b=b"3"), row(S1, b=b"4")]
    assert difference_of(TABLE, KEY, both, row(None, b=b"4")) is None
    assert difference_of(TABLE, KEY, both, row(None, b=b"5")) is not None


def test_what_is_not_judged_is_no_difference() -> None:
    assert difference_of(replace(TABLE, judges_extra=False), KEY, [], row(None)) is None
    assert difference_of(replace(TABLE, judges_missing=False), KEY, [row(S1)], None) is None
    other = row(S1, b=b"3")
    assert difference_of(replace(TABLE, judges_values=False), KEY, [other], row(None)) is None


def test_a_row_that_stays_different_is_a_difference_after_enough_looks() -> None:
    doubt = Doubt(KEY)
    for _ in range(LOOKS - 1):
        verdict, doubt = look_again(doubt, [1], [1], [True, True])
        assert verdict is Verdict.AGAIN
    assert look_again(doubt, [1], [1], [True, True])[0] is Verdict.DIFFERENT


def test_a_row_that_was_equal_once_is_equal() -> None:
    assert look_again(Doubt(KEY), [1], [2], [True, False])[0] is Verdict.EQUAL


def test_a_moving_row_is_never_a_difference() -> None:
    doubt = Doubt(KEY, looks=LOOKS - 1)
    verdict, doubt = look_again(doubt, [1], [2], [True, True])
    assert (verdict, doubt.looks) == (Verdict.AGAIN, 0)
    for _ in range(ROUNDS - 1):
        verdict, doubt = look_again(doubt, [1], [2], [True, True])
    assert verdict is Verdict.UNSETTLED


def test_keys_with_other_digests_are_doubtful() -> None:
    shards: dict[tuple[str, ...], list[object]] = {
        ("1",): [7], ("2",): [8], ("3",): [9, 9], ("5",): [None],
    }  # fmt: skip
    target: dict[tuple[str, ...], object] = {("1",): 7, ("2",): 7, ("3",): 9, ("4",): 1, ("5",): 0}
    assert doubtful_keys(shards, target) == [("2",), ("3",), ("4",), ("5",)]
