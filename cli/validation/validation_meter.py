"""The metrics of ``shardmerge validate --continuous``, made from its reports. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from shardmerge.connectors.metrics import catalog
from shardmerge.connectors.metrics.family import Sample

from .report_shapes import ValidatedTarget

_KINDS = ("missing", "extra", "differs", "count")


@dataclass(slots=True)
class ValidationMeter:
    """Collects reports, and makes metrics from them. One thread writes, another one reads."""

    _rows: Mapping[str, int] = field(default_factory=dict)
    _latest: Mapping[str, ValidatedTarget] = field(default_factory=dict)
    _completed_s: Mapping[str, float] = field(default_factory=dict)
    _failures: int = 0

    def compared(self, report: ValidatedTarget, now_s: float) -> None:
        """Add the report of a target. Its comparison ended at ``now_s``, in seconds since 1970."""
        name = report.target
        self._rows = {**self._rows, name: self._rows.get(name, 0) + report.rows}
        self._latest = {**self._latest, name: report}
        if report.complete:
            self._completed_s = {**self._completed_s, name: now_s}

    def failed(self) -> None:
        """Count a round that failed because a server, Kafka or Connect did not answer."""
        self._failures += 1

    def samples(self) -> Iterator[Sample]:
        """The present values of the metrics."""
        yield Sample(catalog.VALIDATE_FAILURES, (), self._failures)
        for name, count in self._rows.items():
            yield Sample(catalog.VALIDATE_ROWS, (name,), count)
        for name, at_s in self._completed_s.items():
            yield Sample(catalog.VALIDATE_COMPLETED, (name,), at_s)
        for name, report in self._latest.items():
            found = Counter(each.kind for each in report.differences)
            for kind in _KINDS:
                yield Sample(catalog.VALIDATE_DIFFERENCES, (name, kind), found[kind])
            yield Sample(catalog.VALIDATE_UNCOMPARED, (name,), report.obstacles)
