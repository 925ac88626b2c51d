"""The sink's metrics: a fold of batch results, statement results and progress records. Pure.

Nothing here is done for each row. Work for each shard is done only where the progress record is
made anyway. Samples are sums over the shards of a source and a target; see ``per_shard``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from shardmerge.connectors.metrics import catalog
from shardmerge.connectors.metrics.family import Durations, Family, Sample
from shardmerge.connectors.metrics.lag import Lags
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.records.drift import DriftKind
from shardmerge.schemas.records.progress import SinkProgress
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.planning.ranges import RangeResult, TaskFailure
from shardmerge.spark_sink.planning.retention import RetentionLeft

from .waiting_kinds import WaitingKind

Pair = tuple[str, str]
"""A source and a target."""
Places = Mapping[str, Sequence[tuple[Partition, int]]]
"""Source → whole partitions with rows of held shards, each with the offset of the first one."""
_STATES = ("debt", "waiting", "executing", "refused")


@dataclass(frozen=True, slots=True)
class _Reported:
    record: SinkProgress
    kinds: Mapping[ShardId, WaitingKind]
    held_rows: Places


@dataclass(slots=True)
class _PairSums:
    left: int = 0
    parked: int = 0
    lag_s: float = 0.0
    overwritten: int = 0


@dataclass(slots=True)
class SinkMeter:
    """What the metrics of one sink process are made from.

    Attributes:
        retention: Source and target → what is left until Kafka may delete the oldest waiting row
            of a held shard.
    """

    retention: Mapping[Pair, RetentionLeft] = field(default_factory=dict)
    _rows: Counter[Pair] = field(default_factory=Counter)
    _bytes: Counter[Pair] = field(default_factory=Counter)
    _failures: Counter[str] = field(default_factory=Counter)
    _statements: Counter[tuple[str, str]] = field(default_factory=Counter)
    _statement_times: dict[str, Durations] = field(default_factory=dict)
    _batches: Durations = field(default_factory=Durations)
    _rounds: Durations = field(default_factory=Durations)
    _reported: dict[TargetTable, _Reported] = field(default_factory=dict)
    _lags: Lags = field(default_factory=Lags)
    _round_s: float = 0.0

    def range_applied(self, target: TargetTable, shard: ShardId, result: RangeResult) -> None:
        """Take what a task committed."""
        pair = shard.source, str(target)
        self._rows[pair] += result.rows
        self._bytes[pair] += result.read_bytes

    def batch_ended(self, seconds: float) -> None:
        """Take the time of a batch that had tasks."""
        self._batches = self._batches.plus(seconds)

    def task_failed(self, failure: TaskFailure) -> None:
        """Take a task that did not end."""
        self._failures[str(failure.target or "")] += 1

    def statement_ended(self, target: TargetTable, outcome: str, seconds: float) -> None:
        """Take the end of a statement: ``done``, ``refused`` or ``postponed``."""
        name = str(target)
        self._statements[name, outcome] += 1
        self._statement_times[name] = self._statement_times.get(name, Durations()).plus(seconds)

    def reported(
        self,
        record: SinkProgress,
        kinds: Mapping[ShardId, WaitingKind],
        held_rows: Places,
        now_s: float,
    ) -> None:
        """Take the latest progress of a target.

        Args:
            record: With times (``with_times``).
            kinds: Why its shards wait; only shards that do.
            held_rows: Where the waiting rows of its held shards begin.
            now_s: Seconds since 1970.
        """
        self._reported[record.target] = _Reported(record, kinds, held_rows)
        for shard in record.shards:
            self._lags.take((record.target, shard.shard), shard.offset, shard.parked, now_s)

    def round_ended(self, now_s: float, seconds: float) -> None:
        """The driver's loop has ended a round that took so long."""
        self._round_s = now_s
        self._rounds = self._rounds.plus(seconds)

    def samples(self, now_s: float, *, per_shard: bool = False) -> Iterator[Sample]:
        """The metrics at a time, in seconds since 1970.

        Args:
            now_s: That time.
            per_shard: Whether there are samples for every shard, too.
        """
        yield Sample(catalog.SINK_BATCHES, (), self._batches)
        yield Sample(catalog.SINK_ROUNDS, (), self._rounds)
        if self._round_s:
            yield Sample(catalog.SINK_ROUND, (), self._round_s)
        yield from _counts(catalog.SINK_ROWS, self._rows)
        yield from _counts(catalog.SINK_BYTES, self._bytes)
        yield from _counts(catalog.SINK_STATEMENTS, self._statements)
        for name, count in self._failures.items():
            yield Sample(catalog.SINK_RETRIES, (name,), count)
        for name, durations in self._statement_times.items():
            yield Sample(catalog.SINK_STATEMENT_SECONDS, (name,), durations)
        for pair, left in self.retention.items():
            if left.deadline_s is not None:
                yield Sample(catalog.SINK_RETENTION, pair, left.deadline_s - now_s)
            if left.left_bytes is not None:
                yield Sample(catalog.SINK_RETENTION_BYTES, pair, left.left_bytes)
        for reported in self._reported.values():
            yield from self._target(reported, now_s)
            yield from self._pairs(reported, now_s)
            if per_shard:
                yield from _shards(reported.record)

    def held_rows(self) -> dict[Pair, Sequence[tuple[Partition, int]]]:
        """Where the waiting rows of held shards begin, by source and target."""
        return {
            (source, str(target)): places
            for target, reported in self._reported.items()
            for source, places in reported.held_rows.items()
        }

    def _target(self, reported: _Reported, now_s: float) -> Iterator[Sample]:
        record, name = reported.record, str(reported.record.target)
        yield Sample(catalog.SINK_SHARDS, (name,), len(record.shards))
        yield Sample(catalog.SINK_VERSION, (name,), record.executed_version)
        failed = record.failure.times if record.failure else 0
        yield Sample(catalog.SINK_FAILING, (name,), failed)
        differences = Counter(each.kind for each in record.drift)
        for drift in DriftKind:
            yield Sample(catalog.SINK_DRIFT, (name, drift.value), differences[drift])
        for state in _STATES:
            since = [s.since_ms for s in record.open if s.state == state]
            yield Sample(catalog.SINK_OPEN, (name, state), len(since))
            yield Sample(catalog.SINK_OPEN_SECONDS, (name, state), _age(since, now_s))
        by_kind: dict[WaitingKind, list[int]] = {kind: [] for kind in WaitingKind}
        by_code = Counter({(kind, ""): 0 for kind in WaitingKind})
        for shard in record.shards:
            if (kind := reported.kinds.get(shard.shard)) is not None:
                by_kind[kind].append(shard.since_ms)
                by_code[kind, shard.code] += 1
        for (kind, code), count in by_code.items():
            yield Sample(catalog.SINK_WAITING, (name, kind.value, code), count)
        for kind, since in by_kind.items():
            yield Sample(catalog.SINK_WAITING_SECONDS, (name, kind.value), _age(since, now_s))

    def _pairs(self, reported: _Reported, now_s: float) -> Iterator[Sample]:
        target = reported.record.target
        sums: dict[str, _PairSums] = {}
        for shard in reported.record.shards:
            found = sums.setdefault(shard.shard.source, _PairSums())
            found.left += shard.parked
            found.parked += shard.parked if shard.waiting else 0
            found.lag_s = max(found.lag_s, self._lags.seconds((target, shard.shard), now_s))
            found.overwritten += shard.overwritten
        for source, found in sums.items():
            pair = source, str(target)
            yield Sample(catalog.SINK_LAG_ROWS, pair, found.left)
            yield Sample(catalog.SINK_PARKED, pair, found.parked)
            yield Sample(catalog.SINK_LAG_SECONDS, pair, found.lag_s)
            yield Sample(catalog.SINK_OVERWRITTEN, pair, found.overwritten)


def _counts(family: Family, counts: Mapping[Pair, int]) -> Iterator[Sample]:
    for labels, count in counts.items():
        yield Sample(family, labels, count)


def _shards(record: SinkProgress) -> Iterator[Sample]:
    for shard in record.shards:
        labels = str(record.target), str(shard.shard)
        yield Sample(catalog.SINK_SHARD_LAG, labels, shard.parked)
        yield Sample(catalog.SINK_SHARD_WAITING, labels, int(bool(shard.waiting)))


def _age(since_ms: list[int], now_s: float) -> float:
    known = [ms for ms in since_ms if ms]
    return max(0.0, now_s - min(known) / 1000) if known else 0.0
