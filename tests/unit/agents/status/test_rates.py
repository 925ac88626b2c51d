from __future__ import annotations

from shardmerge.agents.status.rates import MAX_SAMPLES, Rate, Rates, Sample, rates
from shardmerge.schemas.records.progress import ShardProgress, SinkProgress
from tests.example_pages import ORDERS, orders


def test_a_rate_is_rows_over_the_seconds_between_two_reports():
    samples = (Sample(1_000, 0, 0), Sample(3_000, 500, 0), Sample(4_000, 500, 0))
    assert rates(samples) == (Rate(3_000, 250.0), Rate(4_000, 0.0))


def test_a_count_that_falls_gives_no_rate():
    assert rates((Sample(1_000, 900, 0), Sample(2_000, 10, 0))) == ()


def test_a_report_that_comes_again_is_not_counted_twice():
    kept = Rates()
    for ts_ms in (1_000, 2_000, 2_000, 1_500):
        kept.add(SinkProgress(ORDERS, 1, 10, ts_ms=ts_ms))
    assert [sample.ts_ms for sample in kept.samples()] == [1_000, 2_000]


def test_only_rows_of_shards_that_wait_are_waiting_rows():
    kept = Rates()
    shards = (ShardProgress(orders(0), 5, "waits", parked=7), ShardProgress(orders(1), 5, parked=9))
    kept.add(SinkProgress(ORDERS, 1, 10, (), shards, 1_000))
    assert kept.samples() == (Sample(1_000, 10, 7, 1_000),)


def test_the_lag_is_the_age_of_the_oldest_row_that_is_not_applied():
    kept = Rates()
    for ts_ms, offset, parked in ((1_000, 5, 7), (4_000, 5, 9), (6_000, 13, 1), (9_000, 14, 0)):
        kept.add(SinkProgress(ORDERS, 1, 10, (), (ShardProgress(orders(0), offset, parked=parked),),
                              ts_ms))  # fmt: skip
    first, second, third, last = kept.samples()
    assert [s.oldest_ms for s in (first, second, third, last)] == [1_000, 1_000, 4_000, 0]
    assert second.lag_s(4_000) == 3.0
    assert second.lag_s(11_000) == 10.0
    assert last.lag_s(11_000) == 0.0


def test_only_the_last_reports_are_kept():
    kept = Rates()
    for report in range(MAX_SAMPLES + 5):
        kept.add(SinkProgress(ORDERS, 1, report, ts_ms=report + 1))
    assert len(kept.samples()) == MAX_SAMPLES
    assert kept.samples()[0].rows == 5
