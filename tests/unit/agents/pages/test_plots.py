from __future__ import annotations

from shardmerge.agents.pages.plots import HEIGHT, WIDTH, plots
from shardmerge.agents.status.rates import Sample


def points(text: str) -> list[tuple[float, ...]]:
    return [tuple(map(float, point.split(","))) for point in text.split()]


def test_there_is_no_plot_before_the_second_report():
    assert plots(()) == plots((Sample(1_000, 5, 0),)) == ()


def test_a_plot_spans_the_reports_and_its_highest_point_is_the_most():
    samples = (Sample(0, 0, 4), Sample(5_000, 500, 8, 2_000), Sample(10_000, 750, 0))
    speed, waiting, lag = plots(samples)
    assert (speed.last, speed.most) == (50.0, 100.0)
    assert (waiting.last, waiting.most) == (0.0, 8.0)
    assert (lag.last, lag.most) == (0.0, 3.0)
    found = points(speed.points)
    assert [x for x, _ in found] == [0, WIDTH / 2, WIDTH / 2, WIDTH]
    heights = [y for _, y in found]
    assert heights[0] == heights[1] < heights[2] == heights[3]
    assert all(0 <= y <= HEIGHT for y in heights)


def test_a_plot_of_nothing_is_a_line_at_the_bottom():
    speed, waiting, _ = plots((Sample(0, 7, 0), Sample(1_000, 7, 0)))
    assert {y for _, y in points(speed.points)} == {y for _, y in points(waiting.points)}
    assert speed.most == 0
