"""The pause before what failed is tried again."""

from __future__ import annotations

from shardmerge.connectors.growing_pause import GrowingPause


def test_a_pause_doubles_up_to_its_longest_and_is_short_again_after_a_success() -> None:
    pause, now_s, seen = GrowingPause(5.0, 600.0), 0.0, []
    for _ in range(9):
        assert pause.is_over(now_s)
        pause.begin(now_s)
        begun_s = now_s
        while not pause.is_over(now_s):
            now_s += 5.0
        seen.append(now_s - begun_s)
    assert seen == [5, 10, 20, 40, 80, 160, 320, 600, 600]
    pause.reset()
    pause.begin(now_s)
    assert not pause.is_over(now_s + 4.0)
    assert pause.is_over(now_s + 5.0)


def test_a_success_does_not_end_the_pause_that_has_begun() -> None:
    pause = GrowingPause(5.0, 600.0)
    pause.begin(0.0)
    pause.reset()
    assert not pause.is_over(4.0)
