"""Rows per second from Kafka into an Iceberg table on local files: one MERGE and commit a batch.

The same events as ``sink_throughput.py``, in batches of one size, and small batches; the table is
compared with what the events leave behind. Time is from planning to commit.

    python -m benchmarks.iceberg_throughput [--events 400000] [--rows 300000] [--batch 160000]
        [--shards 8] [--partitions 2] [--small 5]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from msgspec.json import decode

from benchmarks.bench_events import COLUMNS, Backlog, Size, produce
from benchmarks.bench_measures import measuring
from benchmarks.bench_rows import event
from shardmerge.local.install.iceberg import iceberg_runtime
from shardmerge.local.servers.stack import LocalStack, Ports
from shardmerge.schemas.ddl.apply.statements import apply_create
from shardmerge.schemas.ddl.changes import CreateTable
from shardmerge.schemas.ddl.grammar import ServerContext, parse
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import BEGINNING
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.pipeline.settings import Connect, Kafka, Pipeline, Sink, Target
from shardmerge.schemas.pipeline.spark_catalog import SparkCatalog
from shardmerge.schemas.records.decisions import Binding, StatementKind, TargetStatement
from shardmerge.schemas.target.dialects.spark import SparkDialect
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka.offsets import OffsetReader
from shardmerge.spark_sink.planning.ranges import RangeResult, RangeTask, Segment, ShardStream
from shardmerge.spark_sink.process.settings import SinkSettings
from shardmerge.spark_sink.targets.iceberg.target import IcebergTarget

ROOT = Path(__file__).resolve().parents[1]
MERGED = TargetTable("bench", "merged")
SMALL_ROWS = 100


class Lake:
    """An Iceberg target with the table, and the plans of its batches."""

    def __init__(self, stack: LocalStack, folder: Path) -> None:
        statement = parse(f"CREATE TABLE merged ({COLUMNS})", ServerContext())
        assert isinstance(statement, CreateTable)
        schema = apply_create(statement, ServerContext())
        self.columns = tuple(ShardColumn(f"{c.name}#1", c) for c in schema.columns)
        catalog = SparkCatalog("lake", (("type", "hadoop"), ("warehouse", str(folder))))
        pipeline = Pipeline(
            "bench", Kafka(stack.bootstrap_servers), Connect(""), (), (),
            Target("", 0, "", "", "control", "iceberg", "1.12.0", catalog), Sink(),
        )  # fmt: skip
        jar = str(iceberg_runtime(ROOT / ".local" / "cache"))
        settings = SinkSettings(Path(), master="local[2]", driver_memory="2g", jars=jar)
        self.target = IcebergTarget(settings, pipeline)
        self.target.state.prepare()
        self.epoch = self.target.state.take_epoch()
        create = SparkDialect().create_table(MERGED, schema)
        assert isinstance(create, tuple)
        [one] = create
        made = TargetStatement(one.sql, StatementKind.EXPANDING, "", (), actions=one.actions)
        self.target.journal(self.epoch).execute(MERGED, 1, 0, made)
        self.offsets = OffsetReader(stack.kafka)

    def tasks(self, topics: Sequence[str], partitions: int, batch: int) -> list[RangeTask]:
        """The next so many records, evenly from every partition."""
        ends = self.offsets.stable_ends(
            [Partition(t, p) for t in topics for p in range(partitions)]
        )
        applied = self.target.state.offsets()
        bindings = {c.id: Binding(c.id, c.column.name) for c in self.columns}
        share = max(1, batch // len(ends))
        tasks = []
        for (topic, partition, _), end in ends.items():
            table = topic.removesuffix("_before").rpartition(".")[2]
            stream = ShardStream(
                ShardId("bench", "app", table), MERGED,
                (Segment(BEGINNING, self.columns, ("id",)),), None, partitions,
            )  # fmt: skip
            start = applied.get(Partition(topic, partition), 0)
            task = RangeTask(topic, partition, start, end, stream, bindings, self.epoch)
            if end > start:
                tasks.append(replace(task, end_offset=min(end, start + share)))
        return tasks

    def apply(self, topics: Sequence[str], partitions: int, batch: int) -> tuple[int, float]:
        """Plan and apply one batch: events, seconds."""
        started = time.perf_counter()
        tasks = self.tasks(topics, partitions, batch)
        events = 0
        for result in self.target.batches.run(tasks, lambda: True):
            if not isinstance(result, RangeResult) or result.hold is not None:
                sys.exit(f"the batch was not applied: {result}")
            events += result.rows
        return events, time.perf_counter() - started

    def apply_all(self, topics: Sequence[str], partitions: int, batch: int) -> list[float]:
        """Seconds of each batch, until there is nothing left."""
        seconds: list[float] = []
        while True:
            events, took = self.apply(topics, partitions, batch)
            if not events:
                return seconds
            seconds.append(took)

    def check(self, rows: dict[int, bytes]) -> None:
        """Compare the table with the rows that have to be in it, by sums."""
        expected = [0, 0, 0, Decimal(0), 0]
        for text in rows.values():
            row = decode(text)
            cells = (1, row["id"], row["customer"], Decimal(row["amount"]), row["flag"])
            expected = [total + cell for total, cell in zip(expected, cells, strict=True)]
        (found,) = (
            self.target.spark.session()
            .sql(
                "SELECT count(*), sum(id), sum(customer), sum(amount), sum(flag)"
                f" FROM lake.{MERGED.sql}"
            )
            .collect()
        )
        if [int(v) if n != 3 else v for n, v in enumerate(found)] != expected:
            sys.exit(f"the table differs: {list(found)}, expected {expected}")


def fill(stack: LocalStack, size: Size, backlog: Backlog) -> list[str]:
    """The rows that are there before, as a snapshot in topics of their own."""
    topics = [f"{topic}_before" for topic in backlog.topics]
    admin = AdminClient({"bootstrap.servers": stack.bootstrap_servers})
    made = [NewTopic(topic, size.partitions, 1) for topic in topics]
    for done in admin.create_topics(made).values():
        done.result()
    producer = Producer(
        {"bootstrap.servers": stack.bootstrap_servers, "queue.buffering.max.messages": 1_000_000}
    )
    share = size.rows // size.shards
    for place, (key, row) in enumerate(sorted(backlog.base.items())):
        shard = place // share
        producer.produce(topics[shard], event(shard, 0, "r", None, row), key=b"%d" % key)
        producer.poll(0)
    producer.flush()
    return topics


def measure(stack: LocalStack, size: Size, batch: int, small: int, folder: Path) -> None:
    """The measurement, on a running Kafka."""
    lake = Lake(stack, folder)
    backlog = produce(stack, size)
    before = fill(stack, size, backlog)
    started = time.perf_counter()
    lake.apply_all(before, size.partitions, size.rows)
    print(f"snapshot of {size.rows:,} rows: {time.perf_counter() - started:.1f} s, Spark's first")
    with measuring(stack) as (seconds, used):
        batches = lake.apply_all(backlog.topics, size.partitions, batch)
    lake.check(backlog.rows)
    print(
        f"iceberg throughput: {backlog.events:,} events in batches of {batch:,}, 12 columns,"
        f" {backlog.size_bytes / backlog.events:.0f} bytes each,"
        f" {size.shards * size.partitions} partitions, onto {size.rows:,} rows\n"
        f"Kafka to Iceberg, Spark local[2]: {seconds[0]:.1f} s,"
        f" {backlog.events / seconds[0]:,.0f} events/s;"
        f" batches of {', '.join(f'{took:.1f}' for took in batches)} s"
    )
    for name, (cpu_s, mb) in sorted(used.items()):
        print(f"  CPU of {name:<37}{cpu_s:>9.2f} s, peak {mb:.0f} MB")
    print("the table is as the events leave it")
    producer = Producer({"bootstrap.servers": stack.bootstrap_servers})
    keys = sorted(backlog.rows)
    took = []
    for number in range(small):
        for key in keys[number :: max(1, len(keys) // SMALL_ROWS)][:SMALL_ROWS]:
            shard = key // 100_000_000
            value = event(shard, size.events + number, "u", None, backlog.rows[key])
            producer.produce(backlog.topics[shard], value, key=b"%d" % key)
        producer.flush()
        took.append(lake.apply(backlog.topics, size.partitions, size.events)[1])
    if took:
        print(
            f"{small} batches of {SMALL_ROWS} rows, planning to commit:"
            f" {', '.join(f'{seconds:.2f}' for seconds in took)} s"
        )
    lake.target.close()


def main() -> None:
    """Run it and print what it found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--events", type=int, default=400_000)
    parser.add_argument("--rows", type=int, default=300_000, help="in the table before")
    parser.add_argument("--batch", type=int, default=160_000, help="most events of a batch")
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--partitions", type=int, default=2, help="of each shard's topic")
    parser.add_argument("--small", type=int, default=5, help="how many small batches")
    arguments = parser.parse_args()
    mix = (0.6, 0.35, 0.05)
    size = Size(arguments.events, arguments.rows, arguments.shards, arguments.partitions, mix)
    (ROOT / ".local").mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="bench-", dir=ROOT / ".local"))
    stack = LocalStack(directory, Ports.free(), cache=ROOT / ".local" / "cache")
    try:
        stack.start("kafka")
        measure(stack, size, arguments.batch, arguments.small, directory / "warehouse")
    finally:
        stack.clean()


if __name__ == "__main__":
    main()
