from __future__ import annotations

import pytest

from shardmerge.agents.pages.plots import BOTTOM, LEFT, RIGHT, TOP, parts, plots, ticks, time_ticks
from shardmerge.agents.status.rates import Sample

NOON_MS = 1_795_003_200_000


def points(text: str) -> list[tuple[float, ...]]:
    return [tuple(map(float, point.split(","))) for point in text.split()]


def test_there_is_no_plot_before_the_second_report():
    assert plots(()) == plots((Sample(1_000, 5, 0),)) == ()


def test_a_plot_spans_the_reports_and_its_axis_begins_at_zero():
    samples = (Sample(0, 0, 4), Sample(5_000, 500, 8, 2_000), Sample(10_000, 750, 0))
    speed, waiting, lag = plots(samples)
    assert (speed.last, speed.most) == (50.0, 100.0)
    assert (waiting.last, waiting.most) == (0.0, 8.0)
    assert (lag.last, lag.most) == (0.0, 3.0)
    found = points(speed.points)
    assert [x for x, _ in found] == [LEFT, (LEFT + RIGHT) / 2, (LEFT + RIGHT) / 2, RIGHT]
    by_label = {tick.label: tick.at for tick in speed.values}
    assert by_label == {"0": BOTTOM, "50": (TOP + BOTTOM) / 2, "100": TOP}
    assert [y for _, y in found] == [TOP, TOP, (TOP + BOTTOM) / 2, (TOP + BOTTOM) / 2]


def test_each_plot_has_its_unit():
    samples = (Sample(0, 0, 4), Sample(5_000, 500, 8, 2_000))
    assert [(p.name, p.unit) for p in plots(samples)] == [
        ("Rows per second", "rows/s"), ("Rows waiting", "rows"), ("Lag", "s"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("seconds", "unit", "last"), [(500, "s", 500), (3_600, "min", 60), (36_000, "h", 10)]
)
def test_a_long_lag_is_shown_in_minutes_or_hours(seconds, unit, last):
    samples = (Sample(0, 0, 4), Sample(seconds * 1000, 500, 8, 1))
    lag = plots(samples)[2]
    assert (lag.unit, round(lag.last)) == (unit, last)


def test_a_plot_of_nothing_is_a_line_at_the_bottom():
    speed, waiting, _ = plots((Sample(0, 7, 0), Sample(1_000, 7, 0)))
    assert {y for _, y in points(speed.points)} == {BOTTOM}
    assert {y for _, y in points(waiting.points)} == {BOTTOM}
    assert speed.most == 0
    assert [tick.label for tick in speed.values] == ["0", "1"]


@pytest.mark.parametrize(
    ("most", "labels"),
    [
        (0, ["0", "1"]),
        (0.2, ["0", "0.05", "0.1", "0.15", "0.2"]),
        (3, ["0", "1", "2", "3"]),
        (8, ["0", "2", "4", "6", "8"]),
        (1_130, ["0", "500", "1,000", "1,500"]),
        (64_000, ["0", "20 k", "40 k", "60 k", "80 k"]),
        (1_900_000, ["0", "0.5 M", "1 M", "1.5 M", "2 M"]),
    ],
)
def test_labels_are_round_numbers_up_to_the_largest_value_or_beyond(most, labels):
    assert [label for _, label in ticks(most)] == labels


@pytest.mark.parametrize(
    ("begin_s", "span_s", "labels"),
    [
        (0, 4, ["12:00:00", "12:00:01", "12:00:02", "12:00:03", "12:00:04"]),
        (7, 239, ["12:01:00", "12:02:00", "12:03:00", "12:04:00"]),
        (0, 14_400, ["12:00", "13:00", "14:00", "15:00", "16:00"]),
        (0, 8 * 86_400, ["11-19", "11-21", "11-23", "11-25"]),
    ],
)
def test_times_are_round_and_inside_of_the_reports(begin_s, span_s, labels):
    begin = NOON_MS + begin_s * 1000
    assert [label for _, label in time_ticks(begin, begin + span_s * 1000)] == labels


def test_a_table_says_the_same_as_the_plots():
    samples = [Sample(NOON_MS + s * 1000, s * 10, s % 7, NOON_MS) for s in range(101)]
    found = parts(samples, 4)
    assert [(p.begin_ms - NOON_MS, p.end_ms - NOON_MS) for p in found] == [
        (0, 25_000), (25_000, 50_000), (50_000, 75_000), (75_000, 100_000),
    ]  # fmt: skip
    assert {p.rows_per_s for p in found} == {10.0}
    assert [p.parked for p in found] == [6, 6, 6, 6]
    assert [p.lag_s for p in found] == [25, 50, 75, 100]


def test_the_average_of_a_part_counts_long_times_more():
    samples = (Sample(0, 0, 0), Sample(9_000, 900, 0), Sample(10_000, 900, 0))
    assert [p.rows_per_s for p in parts(samples, 1)] == [90.0]
    anew = (Sample(0, 900, 0), Sample(9_000, 0, 0))
    assert [p.rows_per_s for p in parts(anew, 1)] == [None]


def test_a_part_without_a_report_is_left_out():
    samples = (Sample(0, 0, 4), Sample(1_000, 10, 4), Sample(100_000, 20, 0))
    found = parts(samples, 10)
    assert [p.end_ms for p in found] == [10_000, 100_000]
    assert [p.parked for p in found] == [4, 0]
