"""When a part is started again, and when it is given up."""

from __future__ import annotations

from shardmerge.cli.deployment.restarts import STEADY_S, PartRestarts


def test_pauses_grow_and_the_part_is_given_up_at_the_limit() -> None:
    restarts, now, pauses = PartRestarts(5), 0.0, []
    while not restarts.gives_up:
        restarts.started(now)
        now += 1
        assert restarts.ended(now)
        begun = now
        while not restarts.is_due(now):
            now += 0.5
        pauses.append(now - begun)
    assert pauses == [1, 2, 4, 8, 16]
    assert restarts.ends == 5


def test_an_end_is_news_once() -> None:
    restarts = PartRestarts(3)
    restarts.started(0)
    assert [restarts.ended(1), restarts.ended(1.5), restarts.ended(9)] == [True, False, False]
    assert restarts.ends == 1


def test_a_part_that_ran_long_is_as_good_as_new() -> None:
    restarts, now = PartRestarts(2), 0.0
    for _ in range(6):
        restarts.started(now)
        now += STEADY_S + 1
        restarts.ended(now)
        assert not restarts.gives_up
        assert restarts.is_due(now + 1)


def test_a_part_that_runs_is_not_due() -> None:
    restarts = PartRestarts(2)
    restarts.started(0)
    assert not restarts.is_due(100)
