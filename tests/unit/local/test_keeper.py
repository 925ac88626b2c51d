from __future__ import annotations

from shardmerge.local.keeper import Backoff


def test_a_process_that_keeps_ending_is_started_after_longer_and_longer_pauses() -> None:
    backoff = Backoff()
    now, pauses = 0.0, []
    for _ in range(7):
        ended_at = now
        while not backoff.ended(now):
            now += 0.25
        backoff.start(now)
        pauses.append(now - ended_at)
    assert pauses == [0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0]


def test_a_process_that_ran_long_is_started_soon_again() -> None:
    backoff = Backoff()
    for now in (0.0, 1.0, 5.0):
        backoff.ended(now)
        backoff.start(now)
    assert not backoff.ended(100.0)
    assert backoff.ended(100.5)
