"""Pauses before a reading is repeated."""

from shardmerge.connectors.whole.readings.pauses import Pauses


def test_a_pause_doubles_up_to_ten_minutes_and_is_short_again_after_a_success() -> None:
    pauses, now_s, seen = Pauses(5.0), 0.0, []
    for _ in range(9):
        assert pauses.is_over("s1", now_s)
        pauses.failed("s1", now_s)
        begun_s = now_s
        while not pauses.is_over("s1", now_s):
            now_s += 5.0
        seen.append(now_s - begun_s)
    assert seen == [5, 10, 20, 40, 80, 160, 320, 600, 600]
    pauses.failed("s1", now_s)
    assert pauses.is_over("s2", now_s)
    pauses.succeeded("s1")
    assert pauses.is_over("s1", now_s)
    pauses.failed("s1", now_s)
    assert pauses.is_over("s1", now_s + 5.0)
