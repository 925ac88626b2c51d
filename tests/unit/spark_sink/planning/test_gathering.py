from __future__ import annotations

import pytest

from shardmerge.spark_sink.planning.gathering import MANY, gathering_s


@pytest.mark.parametrize(
    ("records", "seconds", "most_s", "expected"),
    [
        (0, 0.02, 0.2, 0.0),
        (MANY - 1, 0.02, 0.2, 0.0),
        (MANY, 0.02, 0.2, 0.08),
        (9_000, 0.08, 0.2, 0.12),
        (500_000, 4.0, 0.2, 0.0),  # rows gathered while it was applied
        (9_000, 0.02, 0.0, 0.0),
    ],
)
def test_rows_gather_while_many_come(
    records: int, seconds: float, most_s: float, expected: float
) -> None:
    assert gathering_s(records, seconds, most_s) == pytest.approx(expected)
