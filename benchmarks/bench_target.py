"""The tables into which benchmarks bring a backlog: by the sink under Spark, and by LOAD DATA."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from msgspec.json import decode

from benchmarks.bench_events import COLUMNS
from benchmarks.bench_measures import Use, measuring
from shardmerge.connectors.kafka.registry import RegistryAddress
from shardmerge.local.servers.mysql import PASSWORD, USER
from shardmerge.local.servers.other_versions import RunningServer
from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import BEGINNING
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.pipeline.settings import Kafka
from shardmerge.schemas.records.decisions import Binding
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka.offsets import OffsetReader
from shardmerge.spark_sink.planning.ordered_partitions import PartitionClosure
from shardmerge.spark_sink.planning.ranges import RangeResult, RangeTask, Segment, ShardStream
from shardmerge.spark_sink.process.settings import SinkSettings
from shardmerge.spark_sink.rows.folding.row_blocks import Block
from shardmerge.spark_sink.rows.values.readers import reader
from shardmerge.spark_sink.targets.mysql.control import ControlStore
from shardmerge.spark_sink.targets.mysql.ddl.introspection import (
    schema_of,
    server_context,
    show_create,
)
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession
from shardmerge.spark_sink.targets.mysql.tasks import bulk
from shardmerge.spark_sink.targets.mysql.tasks.batches import BatchRunner, units_of
from shardmerge.spark_sink.targets.mysql.tasks.connection import ApplyConfig, always
from shardmerge.spark_sink.targets.mysql.tasks.task_runs import run_tasks

MERGED, REFERENCE = TargetTable("bench", "merged"), TargetTable("bench", "reference")
STAGED = TargetTable("bench", "staged")
CORES = 2
TIDB_ROWS = 5_000


class Bench:
    """A running stack with the tables, and the ways to fill them."""

    def __init__(
        self,
        stack: LocalStack,
        rows_registry: RegistryAddress | None = None,
        server: RunningServer | None = None,
        *,
        ordered: bool = False,
        tidb: MySqlAddress | None = None,
    ) -> None:
        self.stack = stack
        self.ordered = ordered
        port = server.port if server else stack.ports.target
        self.config = ApplyConfig(
            stack.kafka,
            tidb or MySqlAddress("127.0.0.1", port, USER, PASSWORD),
            "bench_control",
            "bench",
            registry=rows_registry,
        ).for_kind("tidb" if tidb else "mysql")
        self.session = MySqlSession(self.config.target)
        if tidb is None:
            # Both tables fit: what was measured first must not slow down what comes second.
            self.session.execute(f"SET GLOBAL innodb_buffer_pool_size = {1 << 30}")
        self.loaders = [MySqlSession(self.config.target) for _ in range(4)] if tidb else []
        for database in ("bench", "bench_control"):
            self.session.execute(f"DROP DATABASE IF EXISTS {database}")
        self.session.execute("CREATE DATABASE bench")
        for table in (MERGED, REFERENCE, STAGED):
            self.session.execute(f"CREATE TABLE {table.sql} ({COLUMNS})")
        self.control = ControlStore(self.session, "bench_control", self.config.pipeline)
        self.control.prepare()
        schema = schema_of(
            show_create(self.session, MERGED), server_context(self.session, MERGED.database)
        )
        assert schema is not None
        self.columns = tuple(ShardColumn(f"{c.name}#1", c) for c in schema.columns)
        self.offsets = OffsetReader(stack.kafka)

    def tasks(
        self, topics: Sequence[str], partitions: int, epoch: int, target: TargetTable = MERGED
    ) -> list[RangeTask]:
        """One task per partition, from what is applied to the end."""
        ends = self.offsets.stable_ends(
            [Partition(t, p) for t in topics for p in range(partitions)]
        )
        applied = self.control.offsets()
        bindings = {c.id: Binding(c.id, c.column.name) for c in self.columns}
        streams = {
            topic: ShardStream(
                ShardId("bench", "app", topic.rpartition(".")[2]),
                target,
                (Segment(BEGINNING, self.columns, ("id",)),),
                None,
                partitions,
                ordered=self.ordered,
            )
            for topic in topics
        }
        tasks = [
            RangeTask(t, p, applied.get(Partition(t, p), 0), end, streams[t], bindings, epoch)
            for (t, p, _), end in ends.items()
        ]
        if not self.ordered:
            return tasks
        return [
            replace(t, reading=-1, closure=PartitionClosure(t.end_offset, t.end_offset))
            for t in tasks
        ]

    def staged(
        self, topics: Sequence[str], partitions: int, pipeline: str
    ) -> tuple[list[tuple[RangeTask, ...]], ApplyConfig]:
        """Units that apply everything to ``STAGED`` once more, as another pipeline."""
        config = replace(self.config, pipeline=pipeline)
        epoch = ControlStore(self.session, config.control_database, pipeline).take_epoch()
        tasks = self.tasks(topics, partitions, epoch, STAGED)
        return units_of([replace(task, start_offset=0) for task in tasks], CORES), config

    def load(
        self, table: TargetTable, rows: dict[int, bytes], keys: Sequence[int]
    ) -> tuple[float, dict[str, Use]]:
        """Seconds of LOAD DATA of these rows, made ready beforehand, and what it used."""
        if not keys:
            return 0.0, {}
        if self.loaders:
            parts = [
                self._statement(table, rows, keys[first : first + TIDB_ROWS])
                for first in range(0, len(keys), TIDB_ROWS)
            ]
            with measuring(self.stack) as (seconds, used), ThreadPoolExecutor(4) as pool:
                list(pool.map(self._load_some, range(4), [parts[n::4] for n in range(4)]))
            return seconds[0], used
        sql, data = self._statement(table, rows, keys)
        with measuring(self.stack) as (seconds, used), self.session.transaction():
            self.session.load(sql, data)
        return seconds[0], used

    def _load_some(self, number: int, statements: Sequence[tuple[str, bytes]]) -> None:
        for sql, data in statements:
            self.loaders[number].load(sql, data)

    def _statement(
        self, table: TargetTable, rows: dict[int, bytes], keys: Sequence[int]
    ) -> tuple[str, bytes]:
        """LOAD DATA and what it reads."""
        readers = [reader(c.column.type) for c in self.columns]
        columns: list[list[object]] = [[] for _ in readers]
        for first in range(0, len(keys), 10_000):
            images = [decode(rows[key]).values() for key in keys[first : first + 10_000]]
            for number, values in enumerate(zip(*images, strict=True)):
                columns[number] += readers[number].read(values)
        block = Block(
            tuple(c.column.name for c in self.columns),
            tuple(r.form for r in readers),
            tuple(columns),
            tuple(None in values for values in columns),
            len(keys),
        )
        return bulk.load_data(table, block, replace=True)

    def refill(self, rows: dict[int, bytes]) -> None:
        """Fill both tables with the rows from before; no offset is applied any more."""
        self.session.execute(f"DELETE FROM {self.control.table('offsets')}")
        for table in (MERGED, REFERENCE):
            self.fill(table, rows)

    def fill(self, table: TargetTable, rows: dict[int, bytes]) -> None:
        """Make a table have these rows and no others."""
        self.session.execute(f"TRUNCATE TABLE {table.sql}")
        self.load(table, rows, sorted(rows))

    def differences(self, table: TargetTable = MERGED) -> int:
        """Rows that are not the same in a table and the reference."""
        first, second = (f"SELECT * FROM {each.sql}" for each in (table, REFERENCE))
        count = f"SELECT COUNT(*) FROM ({first} UNION {{}} {second}) AS b"
        every, distinct = (self.session.query(count.format(how))[0][0] for how in ("ALL", ""))
        return int(2 * distinct - every)


@contextmanager
def spark(bench: Bench) -> Iterator[BatchRunner]:
    """Runs Spark jobs."""
    settings = SinkSettings(Path("pipeline.toml"), master=f"local[{CORES}]")
    runner = BatchRunner(settings, bench.config, 0)
    runner.start()
    try:
        context = runner.spark.session().sparkContext
        # Python workers start with the first job, not with one that is measured.
        context.parallelize(range(CORES), CORES).mapPartitions(_warm).collect()
        yield runner
    finally:
        runner.stop()


def apply_backlog(
    bench: Bench, runner: BatchRunner, tasks: list[RangeTask]
) -> tuple[float, dict[str, Use]]:
    """Seconds of one Spark job that applies the backlog, and what it used."""
    with measuring(bench.stack) as (seconds, used):
        results = list(runner.run(tasks, always))
    for result in results:
        if not isinstance(result, RangeResult) or result.hold is not None:
            sys.exit(f"the backlog was not applied: {result}")
    return seconds[0], used


def _warm(_: Iterator[int]) -> list[object]:
    time.sleep(2)  # long enough that every core starts a worker
    return list(run_tasks((), ApplyConfig(Kafka(""), MySqlAddress("", 0, "", ""), "", "")))
