"""Numbers over time as lines for SVG. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shardmerge.agents.status.rates import Sample, rates

WIDTH, HEIGHT = 400, 60
_EDGE = 3


@dataclass(frozen=True, slots=True)
class Plot:
    """One line.

    Attributes:
        points: The points for SVG's ``polyline``, in a picture of ``width`` × ``height``.
        begin_ms, end_ms: When the picture begins and ends, in milliseconds since 1970.
        last, most: The latest number and the largest one.
    """

    name: str
    points: str
    begin_ms: int
    end_ms: int
    last: float
    most: float
    width: int = WIDTH
    height: int = HEIGHT


def plots(samples: Sequence[Sample]) -> tuple[Plot, ...]:
    """The plots of rows per second, waiting rows and lag; none before the second report."""
    speed = [(rate.ts_ms, rate.rows_per_s) for rate in rates(samples)]
    if not speed:
        return ()
    begin, end = samples[0].ts_ms, samples[-1].ts_ms
    # A rate holds for the whole time since the report before it, so its line is a step.
    steps = [point for at, (ms, value) in enumerate(speed)
             for point in ((speed[at - 1][0] if at else begin, value), (ms, value))]  # fmt: skip
    parked = [(sample.ts_ms, float(sample.parked)) for sample in samples]
    lag = [(sample.ts_ms, sample.lag_s(sample.ts_ms)) for sample in samples]
    return (
        _plot("Rows per second", steps, begin, end),
        _plot("Rows waiting", parked, begin, end),
        _plot("Lag in seconds", lag, begin, end),
    )


def _plot(name: str, values: Sequence[tuple[int, float]], begin: int, end: int) -> Plot:
    most = max(value for _, value in values)
    span, top = max(1, end - begin), most or 1.0
    points = " ".join(
        f"{(ms - begin) / span * WIDTH:.0f},"
        f"{HEIGHT - _EDGE - value / top * (HEIGHT - 2 * _EDGE):.1f}"
        for ms, value in values
    )
    return Plot(name, points, begin, end, values[-1][1], most)
