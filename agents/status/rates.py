"""The sink's reports, for plots of rows per second, of waiting rows and of the lag. Pure.

A busy sink reports five times a second, an idle one once a minute. Every report of the last minutes
is kept, and one for each minute of the hours before. So the memory of a target has a bound.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from shardmerge.connectors.metrics.lag import Lags
from shardmerge.schemas.records.progress import SinkProgress

RECENT_MS = 5 * 60_000
"""For so long every report is kept."""
MOST_RECENT = 600
"""Most reports that are kept as they came: two minutes of a busy sink's."""
MOST_MINUTES = 360
"""Minutes before those that are kept."""
_MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class Sample:
    """One report of the sink, or those of a minute together.

    Attributes:
        ts_ms: When the sink wrote the last one, in milliseconds since 1970.
        rows: Rows that were applied until then.
        parked: Rows that waited, at most; the most of the minute.
        oldest_ms: Since when the oldest row waited that was not applied then, in milliseconds since
            1970; 0 if every row was applied. For a minute it gives the longest lag of the minute.
    """

    ts_ms: int
    rows: int
    parked: int
    oldest_ms: int = 0

    def lag_s(self, now_ms: int) -> float:
        """For how many seconds the oldest row that was not applied has been waiting."""
        return max(0, now_ms - self.oldest_ms) / 1000 if self.oldest_ms else 0.0


@dataclass(frozen=True, slots=True)
class Rate:
    """Rows per second between two reports.

    Attributes:
        ts_ms: When the later report was written, in milliseconds since 1970.
    """

    ts_ms: int
    rows_per_s: float


@dataclass(slots=True)
class Rates:
    """The reports about one target, those of some hours ago thinned."""

    _recent: deque[Sample] = field(default_factory=deque)
    _minutes: deque[Sample] = field(default_factory=lambda: deque(maxlen=MOST_MINUTES))
    _lags: Lags = field(default_factory=Lags)

    def add(self, progress: SinkProgress) -> None:
        """Note a report. A report that is not later than the last one is a repetition."""
        if self._recent and progress.ts_ms <= self._recent[-1].ts_ms:
            return
        parked = sum(shard.parked for shard in progress.shards if shard.waiting)
        for shard in progress.shards:
            self._lags.take(shard.shard, shard.offset, shard.parked, progress.ts_ms / 1000)
        oldest = self._lags.oldest()
        oldest_ms = round(oldest * 1000) if oldest is not None else 0
        self._recent.append(Sample(progress.ts_ms, progress.rows, parked, oldest_ms))
        begin_ms = progress.ts_ms - RECENT_MS
        while len(self._recent) > MOST_RECENT or self._recent[0].ts_ms < begin_ms:
            self._thin(self._recent.popleft())

    def samples(self) -> tuple[Sample, ...]:
        """The reports, oldest first."""
        return (*self._minutes, *self._recent)

    def _thin(self, sample: Sample) -> None:
        minutes = self._minutes
        same = minutes and minutes[-1].ts_ms // _MINUTE_MS == sample.ts_ms // _MINUTE_MS
        # A count that falls stays visible: there is no rate over it.
        if same and sample.rows >= minutes[-1].rows:
            sample = _together(minutes.pop(), sample)
        minutes.append(sample)


def _together(earlier: Sample, later: Sample) -> Sample:
    lag_ms = max(each.ts_ms - each.oldest_ms if each.oldest_ms else 0 for each in (earlier, later))
    oldest_ms = later.ts_ms - lag_ms if lag_ms else 0
    return Sample(later.ts_ms, later.rows, max(earlier.parked, later.parked), oldest_ms)


def rates(samples: Sequence[Sample]) -> tuple[Rate, ...]:
    """Rows per second between neighbouring reports, oldest first.

    If the count falls, the control tables were made anew. Then there is no rate.
    """
    found = []
    for earlier, later in pairwise(samples):
        if later.rows >= earlier.rows:
            seconds = (later.ts_ms - earlier.ts_ms) / 1000
            found.append(Rate(later.ts_ms, (later.rows - earlier.rows) / seconds))
    return tuple(found)
