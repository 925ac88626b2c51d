from __future__ import annotations

import pytest

from shardmerge.spark_sink.loading.load_estimate import (
    LoadedRows,
    LoadEstimate,
    estimate,
    rows_of,
    total_of,
)
from shardmerge.spark_sink.loading.load_state import Load, LoadKind
from tests.unit.spark_sink.loading.loads import SHARD, TARGET, at, done, load

FOUR = load(LoadKind.CHUNKS, "1", "2", "3")


def test_chunks_that_are_not_read_count_like_those_that_are() -> None:
    one = done(FOUR, 0, 1, rows=30)
    assert rows_of(one) == 60
    assert total_of(one, 9) == 120
    assert total_of(done(one, 2, 3, rows=0), 9) == 60


def test_the_servers_estimate_counts_until_all_chunks_are_known() -> None:
    one = Load(SHARD, TARGET, 1, LoadKind.CHUNKS, 1).plan_next(("5",))
    assert total_of(one, 900) == 900
    assert total_of(done(one, 0, rows=1_000), 900) == 1_000
    assert total_of(FOUR, 900) == 900


def test_a_table_that_is_gone_has_no_more_rows() -> None:
    assert total_of(done(FOUR, 0, rows=7).end_void(2, at(9)), 900) == 7


def test_the_rate_is_that_of_the_last_seconds() -> None:
    history = [LoadedRows(0.0, 0), LoadedRows(60.0, 600_000), LoadedRows(90.0, 900_000)]
    found = estimate([(done(FOUR, 0, 1, 2, rows=300_000), 0)], [*history], 100.0)
    assert found.rows_per_s == pytest.approx(300_000 / 40)
    assert found.rest_s == pytest.approx(300_000 / 7_500)
    assert found.share == pytest.approx(0.75)


def test_without_a_rate_nothing_is_said_about_the_rest() -> None:
    assert estimate([(FOUR, 400)], [], 5.0) == LoadEstimate(0, 400, 0.0, None)
    assert estimate([(FOUR, 400)], [LoadedRows(5.0, 0)], 5.0).rest_s is None


def test_a_load_that_is_read_has_no_rest() -> None:
    read = done(FOUR, 0, 1, 2, 3, rows=5)
    found = estimate([(read, 0), (done(load(), 0, rows=0), 0)], [], 5.0)
    assert (found.rows, found.total, found.rest_s, found.share) == (20, 20, 0.0, 1.0)
    assert estimate([], [], 5.0).share == 1.0
