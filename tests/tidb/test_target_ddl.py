"""What ``diff`` renders for TiDB, executed: the laws that hold on every MySQL target."""

from __future__ import annotations

from tests.integration.mysql.test_target_ddl import (
    test_a_column_that_other_shards_lack_becomes_not_null_over_their_rows,
    test_a_column_without_a_default_becomes_not_null_when_its_rows_have_values,
    test_every_reviewed_rollout_and_more_is_executed,
    test_every_statement_is_legal_and_leads_where_the_tracker_says,
    test_expanding_statements_are_executed_over_rows_that_are_there,
)

__all__ = [
    "test_a_column_that_other_shards_lack_becomes_not_null_over_their_rows",
    "test_a_column_without_a_default_becomes_not_null_when_its_rows_have_values",
    "test_every_reviewed_rollout_and_more_is_executed",
    "test_every_statement_is_legal_and_leads_where_the_tracker_says",
    "test_expanding_statements_are_executed_over_rows_that_are_there",
]
