"""The metrics of ``shardmerge validate --continuous``, made from its reports. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from shardmerge.connectors.formats.stored_record import iso_time
from shardmerge.connectors.metrics import catalog
from shardmerge.connectors.metrics.family import Sample

from .report_shapes import RowDifference, ValidatedTarget

_KEYED = ("missing", "extra", "differs")
_Named = tuple[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class KnownDifference:
    """Since when a difference is known.

    Attributes:
        target: As ``database.table``.
        kind, key: See ``RowDifference``.
        since_ms: When it was first found, in milliseconds since 1970.
    """

    target: str
    kind: str
    key: tuple[str, ...]
    since_ms: int


@dataclass(frozen=True, slots=True)
class _Told:
    """What is known of one target.

    Attributes:
        rows: How many rows of shards were compared.
        latest: The latest report of a comparison that did not fail; None before.
        completed_s: When a comparison was last complete; None before.
        code: The code of the latest comparison's error; "" if it did not fail.
        since: Kind and key of each difference → when it was first found, in seconds since 1970.
    """

    rows: int = 0
    latest: ValidatedTarget | None = None
    completed_s: float | None = None
    code: str = ""
    since: Mapping[_Named, float] = field(default_factory=dict)


@dataclass(slots=True)
class ValidationMeter:
    """Collects reports, and makes metrics from them. One thread writes, another one reads."""

    _targets: Mapping[str, _Told] = field(default_factory=dict)
    _failures: int = 0

    @classmethod
    def of(cls, known: Iterable[KnownDifference]) -> ValidationMeter:
        """A meter that goes on from what another process had found."""
        targets: dict[str, dict[_Named, float]] = {}
        for each in known:
            targets.setdefault(each.target, {})[each.kind, each.key] = each.since_ms / 1000
        return cls({name: _Told(since=since) for name, since in targets.items()})

    @property
    def known(self) -> tuple[KnownDifference, ...]:
        """The differences that are still there, as far as compared."""
        return tuple(
            KnownDifference(name, kind, key, round(1000 * since_s))
            for name, told in self._targets.items()
            for (kind, key), since_s in told.since.items()
        )

    def keep_only(self, targets: Collection[str]) -> None:
        """Forget all targets but these: the others do not exist any more."""
        self._targets = {name: told for name, told in self._targets.items() if name in targets}

    def dated(self, report: ValidatedTarget, now_s: float) -> ValidatedTarget:
        """The report of a target, with the time since which each difference is known.

        A comparison that is not complete says nothing of the rows that it did not reach. So what
        was known before of these stays known.
        """
        told = self._targets.get(report.target, _Told())
        since = {_named(each): told.since.get(_named(each), now_s) for each in report.differences}
        kept = since if report.complete else {**told.since, **since}
        self._targets = {**self._targets, report.target: replace(told, since=kept)}
        differences = tuple(
            replace(each, since=iso_time(round(1000 * since[_named(each)])))
            for each in report.differences
        )
        return replace(report, differences=differences)

    def compared(self, report: ValidatedTarget, now_s: float) -> None:
        """Add the report of a target. Its comparison ended at ``now_s``, in seconds since 1970."""
        told = self._targets.get(report.target, _Told())
        if report.code:
            self._failures += 1
            told = replace(told, code=report.code)
        else:
            completed_s = now_s if report.complete else told.completed_s
            told = _Told(told.rows + report.rows, report, completed_s, since=told.since)
        self._targets = {**self._targets, report.target: told}

    def failed(self) -> None:
        """Count a round that could not begin because Kafka did not answer."""
        self._failures += 1

    def samples(self) -> Iterator[Sample]:
        """The present values of the metrics."""
        yield Sample(catalog.VALIDATE_FAILURES, (), self._failures)
        for name, told in self._targets.items():
            if told.code:
                yield Sample(catalog.VALIDATE_FAILING, (name, told.code), 1)
            yield Sample(catalog.VALIDATE_ROWS, (name,), told.rows)
            if told.completed_s is not None:
                yield Sample(catalog.VALIDATE_COMPLETED, (name,), told.completed_s)
            if told.latest is not None:
                yield from _of_report(told.latest)
            if told.since:
                yield Sample(catalog.VALIDATE_SINCE, (name,), min(told.since.values()))


def _named(row: RowDifference) -> _Named:
    return row.kind, row.key


def _of_report(report: ValidatedTarget) -> Iterator[Sample]:
    found = Counter(each.kind for each in report.differences)
    for kind in _KEYED:
        yield Sample(catalog.VALIDATE_DIFFERENCES, (report.target, kind), found[kind])
    yield Sample(catalog.VALIDATE_DIFFERENCES, (report.target, "count"), _counted_rows(report))
    yield Sample(catalog.VALIDATE_UNCOMPARED, (report.target,), report.obstacles)


def _counted_rows(report: ValidatedTarget) -> int:
    """How many rows without a key are not what they must be, at least.

    A changed row makes two differences: of its old digest there is one row too few, of its new one
    a row too many. So the rows that lack and those that are too many are not added up.
    """
    more = [each.shard_rows - each.target_rows for each in report.differences]
    return max(sum(n for n in more if n > 0), -sum(n for n in more if n < 0))
