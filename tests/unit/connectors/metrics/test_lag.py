from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from shardmerge.connectors.metrics.lag import MARKS, Lags


def test_the_age_counts_from_the_oldest_row_that_is_left() -> None:
    lags = Lags()
    lags.take("a", 0, 5, 10.0)
    lags.take("a", 0, 9, 20.0)
    assert lags.seconds("a", 30.0) == 20.0
    lags.take("a", 5, 4, 31.0)
    assert lags.seconds("a", 32.0) == 12.0
    lags.take("a", 9, 0, 33.0)
    assert lags.seconds("a", 40.0) == lags.seconds("b", 40.0) == 0.0


def test_a_shard_that_goes_back_has_its_rows_left_again() -> None:
    lags = Lags()
    lags.take("a", 9, 0, 1.0)
    lags.take("a", 0, 9, 2.0)
    lags.take("a", 0, 9, 3.0)
    assert lags.seconds("a", 4.0) == 2.0


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=80))
def test_the_age_is_never_more_than_that_of_the_oldest_row_and_marks_are_few(steps) -> None:
    """Rows come and are applied; each row's time of arrival is kept here."""
    lags, came, applied = Lags(), [], 0
    for now, (new, done) in enumerate(steps):
        came += [now] * new
        applied = min(len(came), applied + done)
        lags.take("a", applied, len(came) - applied, float(now))
        true = now - came[applied] if applied < len(came) else 0
        assert lags.seconds("a", float(now)) <= true
        assert (lags.seconds("a", now + 1.0) > 0) == (applied < len(came))
    assert all(len(marks) <= MARKS for marks in lags._marks.values())
