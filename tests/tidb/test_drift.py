"""Changes by hand on a TiDB: noticed, met by a statement, healed and adopted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shardmerge.schemas.records.drift import DriftKind
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress
from tests.integration.mysql.test_drift import (
    Line,
    drifting,
    test_a_column_made_by_hand_that_does_not_fit_holds_this_target_only,
    test_a_column_that_is_wider_already_is_used_and_what_follows_is_as_without_it,
    test_a_statement_that_would_overwrite_a_change_by_hand_is_refused,
    test_a_statement_whose_end_is_not_known_is_no_drift_when_the_table_shows_it,
    test_a_table_that_cannot_be_compared_stops_no_other_one,
    test_a_view_and_a_missing_table_are_told,
    test_a_view_in_place_of_a_table_says_why_it_is_not_healed,
    test_an_index_made_by_hand_is_used_if_it_is_the_decided_one,
    test_differences_are_kept_with_their_times,
    test_each_change_by_hand_is_found_with_what_it_can_do_and_is_healed,
    test_many_changes_at_once_are_found_and_healed_together,
    test_nothing_is_healed_when_the_table_changed_since_the_plan,
    test_partitions_that_refuse_rows_are_told_and_removed,
    test_what_is_adopted_is_told_no_more_until_it_changes_again,
)

__all__ = [
    "test_a_column_made_by_hand_that_does_not_fit_holds_this_target_only",
    "test_a_column_that_is_wider_already_is_used_and_what_follows_is_as_without_it",
    "test_a_statement_that_would_overwrite_a_change_by_hand_is_refused",
    "test_a_statement_whose_end_is_not_known_is_no_drift_when_the_table_shows_it",
    "test_a_table_that_cannot_be_compared_stops_no_other_one",
    "test_a_view_and_a_missing_table_are_told",
    "test_a_view_in_place_of_a_table_says_why_it_is_not_healed",
    "test_an_index_made_by_hand_is_used_if_it_is_the_decided_one",
    "test_differences_are_kept_with_their_times",
    "test_each_change_by_hand_is_found_with_what_it_can_do_and_is_healed",
    "test_many_changes_at_once_are_found_and_healed_together",
    "test_nothing_is_healed_when_the_table_changed_since_the_plan",
    "test_partitions_that_refuse_rows_are_told_and_removed",
    "test_what_is_adopted_is_told_no_more_until_it_changes_again",
]


@pytest.fixture
def line(tidb: MySqlAddress) -> Iterator[Line]:
    # It does not change a column's character set to this one.
    with drifting(tidb, unlike=("latin1", "FOREIGN KEY")) as made:
        yield made


def test_a_foreign_key_is_told_with_its_index(line: Line) -> None:
    line.by_hand("ADD CONSTRAINT up FOREIGN KEY (id) REFERENCES drifted.other (id)")
    assert line.found() == {"foreign key:up": DriftKind.REFUSES, "index:up": DriftKind.HARMLESS}
    assert line.heal().differences == ()
