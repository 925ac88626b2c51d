"""The driver's side of the metrics: gives the fold its times, and lets another thread read it."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence

from shardmerge.connectors.metrics.family import Sample
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.records.progress import SinkProgress
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.metrics.sink_meter import Pair, Places, SinkMeter
from shardmerge.spark_sink.metrics.waiting_kinds import WaitingKind
from shardmerge.spark_sink.planning.ranges import RangeResult, TaskFailure
from shardmerge.spark_sink.planning.retention import RetentionLeft

from .statement_runs import StatementResult


class DriverMetrics:
    """Counts what the driver does, by batch and by statement, never by row."""

    def __init__(self) -> None:
        self._meter = SinkMeter()
        self._lock = threading.Lock()

    def range_applied(self, target: TargetTable, shard: ShardId, result: RangeResult) -> None:
        """Take what a task committed."""
        with self._lock:
            self._meter.range_applied(target, shard, result)

    def batch_ended(self, seconds: float, failures: list[TaskFailure]) -> None:
        """Take a batch that had tasks."""
        with self._lock:
            self._meter.batch_ended(seconds)
            for failure in failures:
                self._meter.task_failed(failure)

    def statement_ended(self, result: StatementResult) -> None:
        """Take the end of a statement."""
        outcome = result.entry.state if result.entry is not None else "postponed"
        with self._lock:
            self._meter.statement_ended(result.target, outcome, result.elapsed_ms / 1000)

    def reported(
        self, record: SinkProgress, kinds: Mapping[ShardId, WaitingKind], held_rows: Places
    ) -> None:
        """Take a progress record with its times; see ``SinkMeter.reported``."""
        with self._lock:
            self._meter.reported(record, kinds, held_rows, time.time())

    def round_ended(self, seconds: float) -> None:
        """The loop goes on after a round that took so long."""
        with self._lock:
            self._meter.round_ended(time.time(), seconds)

    def retention_read(self, left: Mapping[Pair, RetentionLeft]) -> None:
        """Take what is left until Kafka may delete waiting rows."""
        with self._lock:
            self._meter.retention = left

    def held_rows(self) -> dict[Pair, Sequence[tuple[Partition, int]]]:
        """Where the waiting rows of held shards begin, by source and target."""
        with self._lock:
            return self._meter.held_rows()

    def samples(self, *, per_shard: bool = False) -> list[Sample]:
        """The metrics now; any thread may ask."""
        with self._lock:
            return list(self._meter.samples(time.time(), per_shard=per_shard))
