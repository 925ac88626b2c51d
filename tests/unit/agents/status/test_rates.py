from __future__ import annotations

from itertools import pairwise

from shardmerge.agents.status.rates import (
    MOST_MINUTES,
    MOST_RECENT,
    RECENT_MS,
    Rate,
    Rates,
    Sample,
    rates,
)
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


def reported(every_ms: int, hours: int, rows_per_s: int = 1_000) -> Rates:
    kept = Rates()
    for ts_ms in range(every_ms, hours * 3_600_000 + 1, every_ms):
        kept.add(SinkProgress(ORDERS, 1, ts_ms * rows_per_s // 1_000, ts_ms=ts_ms))
    return kept


def test_a_busy_line_shows_hours_in_bounded_memory():
    samples = reported(200, 7).samples()
    assert len(samples) <= MOST_RECENT + MOST_MINUTES
    assert samples[-1].ts_ms - samples[0].ts_ms > 5 * 3_600_000
    gaps = [later.ts_ms - earlier.ts_ms for earlier, later in pairwise(samples)]
    assert set(gaps[-(MOST_RECENT - 1) :]) == {200}
    assert max(gaps) == 60_000
    assert {rate.rows_per_s for rate in rates(samples)} == {1_000.0}


def test_every_report_of_the_last_minutes_is_kept():
    samples = reported(1_000, 1).samples()
    recent = [s for s in samples if s.ts_ms >= samples[-1].ts_ms - RECENT_MS]
    assert len(recent) == RECENT_MS // 1_000 + 1
    assert [s.ts_ms // 60_000 for s in samples[:5]] == [0, 1, 2, 3, 4]


def test_an_idle_line_loses_no_report_for_hours():
    assert len(reported(60_000, 6).samples()) == 360


def test_a_thinned_minute_keeps_its_longest_lag_and_its_most_waiting_rows():
    kept = Rates()
    for ts_ms, offset, parked in ((1_000, 5, 7), (31_000, 5, 9), (41_000, 14, 0)):
        shard = ShardProgress(orders(0), offset, "waits", parked=parked)
        kept.add(SinkProgress(ORDERS, 1, 10, (), (shard,), ts_ms))
    for ts_ms in (RECENT_MS + 50_000, RECENT_MS + 51_000):
        kept.add(SinkProgress(ORDERS, 1, 10, ts_ms=ts_ms))
    first = kept.samples()[0]
    assert (first.ts_ms, first.parked, first.lag_s(first.ts_ms)) == (41_000, 9, 30.0)


def test_a_count_that_falls_gives_no_rate_when_it_is_thinned_either():
    kept = Rates()
    for ts_ms, rows in ((1_000, 900), (2_000, 10), (3_000, 20), (RECENT_MS + 60_000, 30)):
        kept.add(SinkProgress(ORDERS, 1, rows, ts_ms=ts_ms))
    assert [(s.ts_ms, s.rows) for s in kept.samples()] == [
        (1_000, 900),
        (3_000, 20),
        (RECENT_MS + 60_000, 30),
    ]
    assert len(rates(kept.samples())) == 1
