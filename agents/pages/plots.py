"""Numbers over time as lines for SVG, with axes, and the same as a table. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

from shardmerge.agents.status.rates import Sample, rates

WIDTH, HEIGHT = 400, 170
LEFT, RIGHT = 52, 374
TOP, BOTTOM = 24, 146
"""The edges of the field between the axes."""
PARTS = 12
"""Lines of the table."""
_MOST_TICKS = 5
_STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600,
            43_200, 86_400, 172_800, 604_800)  # fmt: skip
_LEAST_MINUTES_S, _LEAST_HOURS_S = 600, 14_400
_DAY_S, _MINUTE_S = 86_400, 60


@dataclass(frozen=True, slots=True)
class Tick:
    """A label of an axis.

    Attributes:
        at: Its place: from the left for a time, from the top for a value.
    """

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Plot:
    """One line in a picture of ``WIDTH`` × ``HEIGHT``.

    Attributes:
        unit: Of the values.
        points: The points for SVG's ``polyline``.
        begin_ms, end_ms: When the picture begins and ends, in milliseconds since 1970.
        last, most: The latest number and the largest one, in the unit.
        values, times: The labels of both axes.
    """

    name: str
    unit: str
    points: str
    begin_ms: int
    end_ms: int
    last: float
    most: float
    values: tuple[Tick, ...]
    times: tuple[Tick, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """What the reports of a part of the time say.

    Attributes:
        begin_ms, end_ms: The part, in milliseconds since 1970.
        rows_per_s: Rows per second on average; None if that is not known.
        parked, lag_s: The most of the part's reports.
    """

    begin_ms: int
    end_ms: int
    rows_per_s: float | None
    parked: int
    lag_s: float


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
    lags = [(sample.ts_ms, sample.lag_s(sample.ts_ms)) for sample in samples]
    unit, seconds = _unit(max(lag for _, lag in lags))
    lag = [(ms, value / seconds) for ms, value in lags]
    return (
        _plot("Rows per second", "rows/s", steps, begin, end),
        _plot("Rows waiting", "rows", parked, begin, end),
        _plot("Lag", unit, lag, begin, end),
    )


def parts(samples: Sequence[Sample], count: int = PARTS) -> tuple[Part, ...]:
    """The same in equal parts of the time, oldest first; parts without a report are left out."""
    if len(samples) < 2:
        return ()
    begin, end = samples[0].ts_ms, samples[-1].ts_ms
    spans: dict[int, list[Sample]] = {}
    applied: dict[int, list[tuple[int, int]]] = {}

    def place(ts_ms: int) -> int:
        # A report at the end of a part tells of that part.
        return min(max(0, -((begin - ts_ms) * count // (end - begin)) - 1), count - 1)

    for sample in samples:
        spans.setdefault(place(sample.ts_ms), []).append(sample)
    for earlier, later in pairwise(samples):
        if later.rows >= earlier.rows:
            found = (later.rows - earlier.rows, later.ts_ms - earlier.ts_ms)
            applied.setdefault(place(later.ts_ms), []).append(found)
    return tuple(
        Part(
            begin + (end - begin) * at // count,
            begin + (end - begin) * (at + 1) // count,
            _average(applied.get(at, ())),
            max(sample.parked for sample in reports),
            max(sample.lag_s(sample.ts_ms) for sample in reports),
        )
        for at, reports in sorted(spans.items())
    )


def _average(applied: Sequence[tuple[int, int]]) -> float | None:
    ms = sum(ms for _, ms in applied)
    return sum(rows for rows, _ in applied) * 1000 / ms if ms else None


def ticks(most: float) -> list[tuple[float, str]]:
    """Round values from 0 to the largest one or beyond, with their labels."""
    if most <= 0:
        return [(0.0, "0"), (1.0, "1")]
    size = 10.0 ** math.floor(math.log10(most))
    steps = (size * part for part in (0.1, 0.2, 0.5, 1, 2, 5))
    step = next(s for s in steps if math.ceil(round(most / s, 6)) < _MOST_TICKS)
    count = max(1, math.ceil(round(most / step, 6)))
    values = [step * number for number in range(count + 1)]
    return [(value, _label(value, values[-1])) for value in values]


def time_ticks(begin_ms: int, end_ms: int) -> list[tuple[int, str]]:
    """Round times between two times, in milliseconds since 1970, with their labels in UTC."""
    begin, end = -(-begin_ms // 1000), end_ms // 1000
    step = next((s for s in _STEPS_S if (end - begin) / s < _MOST_TICKS), _STEPS_S[-1])
    form = "%m-%d" if step >= _DAY_S else "%H:%M" if step >= _MINUTE_S * 10 else "%H:%M:%S"
    return [
        (at * 1000, f"{datetime.fromtimestamp(at, UTC):{form}}")
        for at in range(-(-begin // step) * step, end + 1, step)
    ]


def _label(value: float, most: float) -> str:
    for size, sign in ((1_000_000, " M"), (1_000, " k")):
        if value and most >= size * (1 if size > 1_000 else 10):
            return f"{value / size:,.6g}{sign}"
    return f"{value:,.6g}"


def _unit(most_s: float) -> tuple[str, int]:
    """A unit for lags up to so many seconds, and its seconds."""
    if most_s >= _LEAST_HOURS_S:
        return "h", 3_600
    return ("min", 60) if most_s >= _LEAST_MINUTES_S else ("s", 1)


def _plot(name: str, unit: str, values: Sequence[tuple[int, float]], begin: int, end: int) -> Plot:
    most = max(value for _, value in values)
    labels = ticks(most)
    span, top = max(1, end - begin), labels[-1][0]

    def across(ms: int) -> float:
        return round(LEFT + (ms - begin) / span * (RIGHT - LEFT), 1)

    def down(value: float) -> float:
        return round(BOTTOM - value / top * (BOTTOM - TOP), 1)

    return Plot(
        name,
        unit,
        " ".join(f"{across(ms):g},{down(value):g}" for ms, value in values),
        begin,
        end,
        values[-1][1],
        most,
        tuple(Tick(down(value), label) for value, label in labels),
        tuple(Tick(across(ms), label) for ms, label in time_ticks(begin, end)),
    )
