from __future__ import annotations

from dataclasses import replace

from shardmerge.spark_sink.validation.compared_table import compared_table
from shardmerge.spark_sink.validation.counted_rows import (
    count_difference,
    doubtful_counts,
    total,
)
from shardmerge.spark_sink.validation.doubts import Difference, DifferenceKind

from .facts import S1, S2, shard, target

OWN = "CREATE TABLE t (a int)"
TABLE = compared_table(target(OWN), [shard(S1, OWN)])


def test_equal_rows_are_counted_over_all_shards() -> None:
    shards = total([{("1",): 2, ("2",): 1}, {("1",): 1}])
    assert shards == {("1",): 3, ("2",): 1}
    assert doubtful_counts(shards, {("1",): 3, ("3",): 1}) == [("2",), ("3",)]


def test_another_number_is_a_difference_where_it_is_judged() -> None:
    key = ("1",)
    two_shards = compared_table(target(OWN), [shard(S1, OWN), shard(S2, OWN)])
    assert count_difference(two_shards, key, [{key: 2}, {}], 1) == Difference(
        DifferenceKind.COUNT, key, counts=(2, 1), owners=((S1, 2),)
    )
    assert count_difference(two_shards, key, [{key: 2}, {key: 1}], 3) is None
    assert count_difference(replace(TABLE, judges_extra=False), key, [{key: 1}], 2) is None
