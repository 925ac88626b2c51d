"""What a metric is: a family with a meaning, and its samples. Pure values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

BUCKETS_S = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0)
"""Upper bounds of every histogram's buckets, in seconds; the last bucket has none."""


class FamilyKind(StrEnum):
    """A type of OpenMetrics."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Family:
    """One metric.

    Attributes:
        name: As Prometheus stores it; a counter's ends with ``_total``.
        kind: Its type.
        meaning: One sentence or two, for the endpoint's HELP line and the documents.
        labels: Names of its labels, in the order of ``Sample.labels``.
        unit: Such as ``seconds``; "" for a plain count.
    """

    name: str
    kind: FamilyKind
    meaning: str
    labels: tuple[str, ...] = ()
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Durations:
    """How long things took.

    Attributes:
        counts: How many fell into each bucket of ``BUCKETS_S``, and last the longer ones.
        sum_s: All durations together, in seconds.
    """

    counts: tuple[int, ...] = (0,) * (len(BUCKETS_S) + 1)
    sum_s: float = 0.0

    def plus(self, seconds: float) -> Durations:
        """The same with one duration more."""
        index = next((i for i, limit in enumerate(BUCKETS_S) if seconds <= limit), len(BUCKETS_S))
        counts = (*self.counts[:index], self.counts[index] + 1, *self.counts[index + 1 :])
        return Durations(counts, self.sum_s + seconds)


@dataclass(frozen=True, slots=True)
class Sample:
    """A value of a family. ``labels`` has a value for each of the family's labels."""

    family: Family
    labels: tuple[str, ...]
    value: float | Durations


Samples = Iterable[Sample]
