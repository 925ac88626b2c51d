"""The sink's last reports, for plots of rows per second, of waiting rows and of the lag. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from shardmerge.connectors.metrics.lag import Lags
from shardmerge.schemas.records.progress import SinkProgress

MAX_SAMPLES = 240


@dataclass(frozen=True, slots=True)
class Sample:
    """One report of the sink.

    Attributes:
        ts_ms: When the sink wrote it, in milliseconds since 1970.
        rows: Rows that were applied until then.
        parked: Rows that waited then, at most.
        oldest_ms: Since when the oldest row waited that was not applied then, in milliseconds since
            1970; 0 if every row was applied.
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
    """The last reports about one target."""

    _samples: deque[Sample] = field(default_factory=lambda: deque(maxlen=MAX_SAMPLES))
    _lags: Lags = field(default_factory=Lags)

    def add(self, progress: SinkProgress) -> None:
        """Note a report. A report that is not later than the last one is a repetition."""
        if self._samples and progress.ts_ms <= self._samples[-1].ts_ms:
            return
        parked = sum(shard.parked for shard in progress.shards if shard.waiting)
        for shard in progress.shards:
            self._lags.take(shard.shard, shard.offset, shard.parked, progress.ts_ms / 1000)
        oldest = self._lags.oldest()
        oldest_ms = round(oldest * 1000) if oldest is not None else 0
        self._samples.append(Sample(progress.ts_ms, progress.rows, parked, oldest_ms))

    def samples(self) -> tuple[Sample, ...]:
        """The reports, oldest first."""
        return tuple(self._samples)


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
