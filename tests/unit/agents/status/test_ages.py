from __future__ import annotations

import pytest

from shardmerge.agents.status.ages import age, moment, ms_of


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"), (59, "59 s"), (60, "1 min"), (61, "1 min 1 s"), (3_600, "1 h"),
        (3_600 + 12 * 60 + 5, "1 h 12 min"), (86_400 * 3 + 3_600 * 4, "3 d 4 h"),
    ],
)  # fmt: skip
def test_an_age_has_its_two_largest_units(seconds, text):
    assert age(1_000, 1_000 + seconds * 1_000) == text


def test_a_moment_that_is_not_known_is_no_text():
    assert (moment(0), age(0, 5_000)) == ("", "")
    assert moment(1_000) == "1970-01-01 00:00:01 UTC"


def test_a_clock_that_is_behind_gives_no_negative_age():
    assert age(9_000, 1_000) == "0 s"


def test_a_time_of_a_record_becomes_milliseconds():
    assert ms_of("2026-11-18T11:06:40.000Z") == 1_795_000_000_000
    assert ms_of("") == 0
