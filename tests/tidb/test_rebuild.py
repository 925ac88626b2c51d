"""The target's side of a rebuild on a TiDB."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shardmerge.schemas.pipeline.settings import Pipeline
from tests.integration.mysql.test_rebuild import (
    Rebuilt,
    test_a_task_of_the_shadow_s_sink_that_is_left_writes_nothing,
    test_an_aborted_rebuild_opens_the_target_and_leaves_nothing,
    test_the_shadow_s_sink_begins_where_the_target_stands,
    test_the_tables_change_places_with_all_that_belongs_to_them,
    test_what_somebody_put_beside_the_shadow_stays,
    test_what_the_target_has_and_the_shadow_has_not_is_counted,
)

__all__ = [
    "test_a_task_of_the_shadow_s_sink_that_is_left_writes_nothing",
    "test_an_aborted_rebuild_opens_the_target_and_leaves_nothing",
    "test_the_shadow_s_sink_begins_where_the_target_stands",
    "test_the_tables_change_places_with_all_that_belongs_to_them",
    "test_what_somebody_put_beside_the_shadow_stays",
    "test_what_the_target_has_and_the_shadow_has_not_is_counted",
]


@pytest.fixture
def rebuilt(tidb_pipeline: Pipeline) -> Iterator[Rebuilt]:
    found = Rebuilt(tidb_pipeline)
    yield found
    found.close()
