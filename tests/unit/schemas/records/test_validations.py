from __future__ import annotations

from dataclasses import replace

from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.records.validations import TargetValidation

WHOLE = TargetValidation(TargetTable("merged", "t"), 3, 1_000, 2_000, True, 30, 2)


def test_a_comparison_of_all_rows_has_the_target_as_its_key():
    assert WHOLE.record_key == "merged.t"
    assert replace(WHOLE, missing=2, obstacles=1).record_key == "merged.t"


def test_a_comparison_of_some_rows_does_not_take_its_place():
    early = replace(WHOLE, complete=False, stopped="no patience")
    some = replace(WHOLE, only=(ShardId("s1", "app", "t_1"),))
    assert [each.record_key for each in (early, some)] == ["merged.t/part"] * 2


def test_it_is_clean_only_if_everything_was_compared_and_is_equal():
    assert WHOLE.is_clean
    for found in (
        {"missing": 1}, {"extra": 1}, {"differs": 1}, {"count": 1}, {"unsettled": 1},
        {"obstacles": 1}, {"complete": False},
    ):  # fmt: skip
        assert not replace(WHOLE, **found).is_clean


def test_differences_of_all_kinds_are_added_up():
    assert replace(WHOLE, missing=1, extra=20, differs=300, count=4_000).differences == 4_321
