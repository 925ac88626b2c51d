from __future__ import annotations

import pytest

from shardmerge.spark_sink.planning.retention import (
    Bounds,
    OldestRow,
    RetentionLeft,
    retention_left,
)

OLD, NEW = OldestRow(100.0, 50.0), OldestRow(900.0, 50.0)
DELETED = OldestRow(0.0, 0.0, is_deleted=True)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([], None),
        ([(Bounds(), OLD, 5)], None),
        ([(Bounds(60.0), OLD, 5), (Bounds(60.0), NEW, 5)], RetentionLeft(160.0, None)),
        ([(Bounds(None, 1000), OLD, 5), (Bounds(None, 1000), NEW, 9)], RetentionLeft(None, 550.0)),
        ([(Bounds(None, 1000), OLD, 30)], RetentionLeft(None, -500.0)),
        ([(Bounds(60.0), OLD, 5), (Bounds(None, 1000), NEW, 9)], RetentionLeft(160.0, 550.0)),
        ([(Bounds(60.0, 1000), DELETED, 5)], RetentionLeft(0.0, 0.0)),
    ],
)
def test_the_least_that_is_left_counts_by_age_and_by_size(
    rows: list[tuple[Bounds, OldestRow, int]], expected: RetentionLeft | None
) -> None:
    assert retention_left(rows) == expected
