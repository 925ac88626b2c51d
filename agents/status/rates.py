"""The sink's last reports, for plots of rows per second and waiting rows. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from shardmerge.schemas.records.progress import SinkProgress

MAX_SAMPLES = 240


@dataclass(frozen=True, slots=True)
class Sample:
    """One report of the sink.

    Attributes:
        ts_ms: When the sink wrote it, in milliseconds since 1970.
        rows: Rows that were applied until then.
        parked: Rows that waited then, at most.
    """

    ts_ms: int
    rows: int
    parked: int


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

    def add(self, progress: SinkProgress) -> None:
        """Note a report. A report that is not later than the last one is a repetition."""
        if self._samples and progress.ts_ms <= self._samples[-1].ts_ms:
            return
        parked = sum(shard.parked for shard in progress.shards if shard.waiting)
        self._samples.append(Sample(progress.ts_ms, progress.rows, parked))

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
