from __future__ import annotations

from collections import Counter

from shardmerge.connectors.metrics import catalog
from shardmerge.connectors.metrics.family import Durations, Family
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.records.decisions import StatementKind
from shardmerge.schemas.records.drift import Difference, DriftKind
from shardmerge.schemas.records.progress import (
    FailureProgress,
    ShardProgress,
    SinkProgress,
    StatementProgress,
)
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.metrics.sink_meter import SinkMeter
from shardmerge.spark_sink.metrics.waiting_kinds import WaitingKind
from shardmerge.spark_sink.planning.ranges import RangeResult, TaskFailure
from shardmerge.spark_sink.planning.retention import RetentionLeft

T = TargetTable("merged", "t")
NOW = 1_000.0
PLACES = [(Partition("s1.app.t_1", 0), 5)]


def shard(number: int, source: str = "s1") -> ShardId:
    return ShardId(source, "app", f"t_{number}")


def value(meter: SinkMeter, family: Family, *labels: str) -> object:
    [found] = [s.value for s in meter.samples(NOW) if (s.family, s.labels) == (family, labels)]
    return found


def test_rows_and_bytes_are_added_up_over_the_shards_of_a_source() -> None:
    meter = SinkMeter()
    for number in range(3):
        result = RangeResult("t", 0, 0, 9, None, 5, 5, 0, read_bytes=100)
        meter.range_applied(T, shard(number), result)
    assert value(meter, catalog.SINK_ROWS, "s1", "merged.t") == 15
    assert value(meter, catalog.SINK_BYTES, "s1", "merged.t") == 300


def test_batches_statements_and_failures_are_counted() -> None:
    meter = SinkMeter()
    meter.batch_ended(0.2)
    meter.task_failed(TaskFailure("gone", target=T))
    meter.task_failed(TaskFailure("gone"))
    meter.statement_ended(T, "refused", 0.02)
    meter.statement_ended(T, "done", 7.0)
    meter.round_ended(77.0, 0.03)
    assert value(meter, catalog.SINK_BATCHES) == Durations().plus(0.2)
    assert value(meter, catalog.SINK_ROUNDS) == Durations().plus(0.03)
    assert value(meter, catalog.SINK_RETRIES, "merged.t") == 1
    assert value(meter, catalog.SINK_RETRIES, "") == 1
    assert value(meter, catalog.SINK_STATEMENTS, "merged.t", "done") == 1
    assert value(meter, catalog.SINK_STATEMENTS, "merged.t", "refused") == 1
    times = Durations().plus(0.02).plus(7.0)
    assert value(meter, catalog.SINK_STATEMENT_SECONDS, "merged.t") == times
    assert value(meter, catalog.SINK_ROUND) == 77.0


def test_a_record_tells_lag_waiting_shards_debts_and_failures() -> None:
    meter = SinkMeter()
    statement = StatementProgress(2, 0, "ALTER", StatementKind.CONTRACTING, "debt", "", 700_000)
    record = SinkProgress(
        T, 4, 10,
        (statement, StatementProgress(3, 0, "", StatementKind.CONTRACTING, "debt", "", 900_000)),
        (
            ShardProgress(shard(1), 5, "held", "", None, 400_000, 7, 2, "SM-1203"),
            ShardProgress(shard(2), 5, parked=3),
            ShardProgress(shard(3, "s2"), 5),
        ),
        failure=FailureProgress("gone", "", "t/0", 4),
    )  # fmt: skip
    meter.reported(record, {shard(1): WaitingKind.DECISION}, {"s1": PLACES}, NOW - 60)
    meter.retention = {("s1", "merged.t"): RetentionLeft(NOW + 90, 4e6)}
    for family, labels, expected in (
        (catalog.SINK_LAG_ROWS, ("s1", "merged.t"), 10),
        (catalog.SINK_PARKED, ("s1", "merged.t"), 7),
        (catalog.SINK_LAG_SECONDS, ("s1", "merged.t"), 60.0),
        (catalog.SINK_LAG_SECONDS, ("s2", "merged.t"), 0.0),
        (catalog.SINK_OVERWRITTEN, ("s1", "merged.t"), 2),
        (catalog.SINK_WAITING, ("merged.t", "decision", "SM-1203"), 1),
        (catalog.SINK_WAITING, ("merged.t", "decision", ""), 0),
        (catalog.SINK_WAITING, ("merged.t", "row", ""), 0),
        (catalog.SINK_WAITING_SECONDS, ("merged.t", "decision"), 600.0),
        (catalog.SINK_OPEN, ("merged.t", "debt"), 2),
        (catalog.SINK_OPEN_SECONDS, ("merged.t", "debt"), 300.0),
        (catalog.SINK_OPEN_SECONDS, ("merged.t", "refused"), 0.0),
        (catalog.SINK_FAILING, ("merged.t",), 4),
        (catalog.SINK_SHARDS, ("merged.t",), 3),
        (catalog.SINK_VERSION, ("merged.t",), 4),
        (catalog.SINK_RETENTION, ("s1", "merged.t"), 90.0),
        (catalog.SINK_RETENTION_BYTES, ("s1", "merged.t"), 4e6),
    ):
        assert value(meter, family, *labels) == expected, family.name
    assert meter.held_rows() == {("s1", "merged.t"): PLACES}


def test_ten_thousand_shards_make_few_series_unless_they_are_asked_for() -> None:
    meter = SinkMeter()
    shards = tuple(ShardProgress(shard(n, f"s{n % 20}"), 5, parked=n) for n in range(10_000))
    meter.reported(SinkProgress(T, 1, 0, (), shards), {}, {}, NOW)
    assert len(list(meter.samples(NOW))) < 150
    counts = Counter(s.family for s in meter.samples(NOW, per_shard=True))
    assert counts[catalog.SINK_SHARD_LAG] == counts[catalog.SINK_SHARD_WAITING] == 10_000


def test_differences_of_a_table_are_counted_by_what_they_can_do_to_rows() -> None:
    meter = SinkMeter()
    found = (
        Difference("index:i", DriftKind.HARMLESS, "", "INDEX"),
        Difference("index:j", DriftKind.HARMLESS, "", "INDEX"),
        Difference("column:c", DriftKind.REFUSES, "", "c"),
    )
    meter.reported(SinkProgress(T, 1, 0, drift=found), {}, {}, NOW)
    counts = {kind: value(meter, catalog.SINK_DRIFT, "merged.t", kind.value) for kind in DriftKind}
    assert counts == {**dict.fromkeys(DriftKind, 0), DriftKind.HARMLESS: 2, DriftKind.REFUSES: 1}
