"""Rows per second from Kafka into the target, beside LOAD DATA of the same final rows.

Fills a table, produces a backlog in Debezium's JSON form, applies it with the sink's own tasks
under Spark, and compares the table with what it should hold. The reference is one LOAD DATA LOCAL
… REPLACE of the rows that the backlog leaves behind, sorted by primary key, made ready
beforehand, onto the same filled table on the same server in the same run: the least that a target
has to do. Both are done in turn, several times, since a shared machine's speed changes from minute
to minute: the table shows the round whose ratio is the median one. The first round finds brokers
and Python workers that have just started. Then the same tasks run once more in one process without
Spark, with a clock at every stage; and small batches, as they come when there is no backlog, run
in the driver.

    python -m benchmarks.sink_throughput [--events 1000000] [--rows 300000] [--shards 8]
        [--partitions 2] [--mix 60/35/5] [--rounds 5] [--small 100] [--no-stages]
        [--format json|avro] [--server stack|mysql80|mysql97|mariadb1011] [--ordered]
        [--tidb USER:PASSWORD@HOST:PORT]

Into a TiDB one LOAD DATA is far from the least time: the reference is the same rows by four
connections, 5,000 rows a transaction, the fastest way of ``tidb_load``.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from msgspec.json import decode

from benchmarks.bench_measures import (
    Round,
    StageClock,
    Use,
    beside,
    measuring,
    print_rounds,
    tidb_address,
)
from benchmarks.bench_rows import Avro, Bare, Form, event, image, registry
from shardmerge.connectors.kafka.registry import RegistryAddress
from shardmerge.local.servers.mysql import PASSWORD, USER
from shardmerge.local.servers.other_versions import NAMES, RunningServer, running_server
from shardmerge.local.servers.stack import LocalStack, Ports
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import BEGINNING
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.pipeline.settings import Kafka
from shardmerge.schemas.records.decisions import Binding
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.kafka.offsets import OffsetReader
from shardmerge.spark_sink.kafka.range_reader import RangeCursor
from shardmerge.spark_sink.planning.ordered_partitions import PartitionClosure
from shardmerge.spark_sink.planning.ranges import RangeResult, RangeTask, Segment, ShardStream
from shardmerge.spark_sink.process.settings import SinkSettings
from shardmerge.spark_sink.rows.folding.row_blocks import Block
from shardmerge.spark_sink.rows.folding.row_fold import RowFold
from shardmerge.spark_sink.rows.values.readers import reader
from shardmerge.spark_sink.targets.mysql.control import ControlStore
from shardmerge.spark_sink.targets.mysql.ddl.introspection import (
    schema_of,
    server_context,
    show_create,
)
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession
from shardmerge.spark_sink.targets.mysql.tasks import apply_ranges, batches, bulk, connection
from shardmerge.spark_sink.targets.mysql.tasks.batches import BatchRunner
from shardmerge.spark_sink.targets.mysql.tasks.connection import ApplyConfig, always
from shardmerge.spark_sink.targets.mysql.tasks.encoders import literals
from shardmerge.spark_sink.targets.mysql.tasks.task_runs import run_tasks

ROOT = Path(__file__).resolve().parents[1]
COLUMNS = """
    id BIGINT UNSIGNED NOT NULL PRIMARY KEY, customer INT NOT NULL,
    status ENUM('new','paid','sent','back') NOT NULL, amount DECIMAL(12,2) NOT NULL,
    quantity SMALLINT UNSIGNED, email VARCHAR(100), note VARCHAR(255), created DATETIME(3),
    changed TIMESTAMP(6) NULL, due DATE, score DOUBLE, flag TINYINT(1)
"""
MERGED, REFERENCE = TargetTable("bench", "merged"), TargetTable("bench", "reference")
STAGED = TargetTable("bench", "staged")
KEYS_PER_SHARD = 100_000_000
STAGE_EVENTS = 250_000
SMALL_ROWS = 100
CORES = 2
TIDB_ROWS = 5_000


class Size(NamedTuple):
    """What to measure with.

    ``mix``: shares of inserts, updates, deletes; ``avro``: rows in it; ``ordered``: each shard's
    partitions are ordered.
    """

    events: int
    rows: int
    shards: int
    partitions: int
    mix: tuple[float, ...]
    avro: bool = False
    ordered: bool = False


@dataclass(slots=True)
class Backlog:
    """What is in Kafka, and what must be in the target in the end.

    Attributes:
        form: How records are written.
        base: Rows that are in the table before, as JSON, by primary key.
        rows: Those that are in it in the end.
        touched: Keys that events are about.
    """

    topics: list[str]
    form: Form
    events: int = 0
    size_bytes: int = 0
    base: dict[int, bytes] = field(default_factory=dict)
    rows: dict[int, bytes] = field(default_factory=dict)
    touched: set[int] = field(default_factory=set)


def changes(shard: int, size: Size, backlog: Backlog) -> Iterator[tuple[int, bytes]]:
    """(key, record value) of one shard's events in order; ``backlog`` is completed."""
    chance = random.Random(shard)
    first = shard * KEYS_PER_SHARD
    live = list(range(first, first + size.rows // size.shards))
    rows = {key: image(key, chance) for key in live}
    backlog.base.update(rows)
    following = first + len(live)
    for number in range(size.events // size.shards):
        kind = chance.random()
        before, after = None, None
        if kind < size.mix[0] or len(live) < 2:
            op, key, following = "c", following, following + 1
            live.append(key)
        elif kind < size.mix[0] + size.mix[1]:
            op, key = "u", chance.choice(live)
            before = rows[key]
        else:
            place = chance.randrange(len(live))
            live[place], live[-1] = live[-1], live[place]
            op, key = "d", live.pop()
            before = rows.pop(key)
        if op != "d":
            after = rows[key] = image(key, chance)
        backlog.touched.add(key)
        yield key, event(shard, number, op, before, after)
    backlog.rows.update(rows)


def produce(stack: LocalStack, size: Size, form: Form | None = None) -> Backlog:
    """Write the backlog: one topic per shard, records of one key in one partition."""
    form = form or (Avro() if size.avro else Bare())
    backlog = Backlog([f"bench.app.t{shard}" for shard in range(size.shards)], form)
    admin = AdminClient({"bootstrap.servers": stack.bootstrap_servers})
    topics = [NewTopic(topic, size.partitions, 1) for topic in backlog.topics]
    for done in admin.create_topics(topics).values():
        done.result()
    producer = Producer(
        {
            "bootstrap.servers": stack.bootstrap_servers,
            "enable.idempotence": True,  # without it a retry may change the order
            "linger.ms": 20,
            "batch.size": 500_000,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    for shard, topic in enumerate(backlog.topics):
        for key, value in changes(shard, size, backlog):
            record = form.value(shard, value)
            backlog.events += 1
            backlog.size_bytes += len(record)
            producer.produce(topic, record, key=form.key(shard, key))
            producer.poll(0)
        producer.flush()
    return backlog


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
            self.session.execute(f"TRUNCATE TABLE {table.sql}")
            self.load(table, rows, sorted(rows))

    def differences(self) -> int:
        """Rows that are not the same in the target and the reference."""
        first, second = (f"SELECT * FROM {table.sql}" for table in (MERGED, REFERENCE))
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


def print_stages(bench: Bench, size: Size, backlog: Backlog) -> None:
    """Where the time goes: the same tasks in this process, one core."""
    bench.load(STAGED, backlog.base, sorted(backlog.base))
    topics = backlog.topics[: max(1, STAGE_EVENTS * size.shards // size.events)]
    config = replace(bench.config, pipeline="stages")
    control = ControlStore(bench.session, config.control_database, config.pipeline)
    tasks = bench.tasks(topics, size.partitions, control.take_epoch(), STAGED)
    tasks = [replace(task, start_offset=0) for task in tasks]
    units = batches.units_of(tasks, CORES)
    clock = StageClock()
    clock.watch("read Kafka", RangeCursor, RangeCursor.read)
    clock.watch("decode, check, keep the last per key", RowFold, RowFold.add_all)
    clock.watch("sort, convert", RowFold, RowFold.batches)
    clock.watch("write LOAD DATA's text", bulk, bulk.load_data)
    clock.watch("LOAD DATA", MySqlSession, MySqlSession.load)
    clock.watch("write statements' text", bulk, literals)
    clock.watch("DELETE, REPLACE and INSERT", MySqlSession, MySqlSession.execute_strictly)
    clock.watch("fence", ControlStore, ControlStore.fence)
    clock.watch("move offsets", ControlStore, ControlStore.advance)
    clock.watch("COMMIT", MySqlSession, MySqlSession.execute, "COMMIT")
    with measuring(bench.stack) as (_, used), clock.running():
        results = [r for unit in units for r in apply_ranges.apply_tasks(unit, config)]
    connection.close_connections()
    events = sum(result.rows for result in results)
    print(f"\nin one process, {events:,} events{'':<16}{'µs/event':>12}{'own CPU':>10}")
    for stage, seconds in clock.wall.items():
        wall, own = (s / events * 1e6 for s in (seconds, clock.own[stage]))
        print(f"{stage:<46}{wall:>9.2f}{own:>11.2f}")
    for name in used.keys() & {"kafka", "target"}:
        print(f"{'CPU of ' + name:<46}{used[name].cpu_s / events * 1e6:>20.2f}")


def print_small(bench: Bench, size: Size, backlog: Backlog, rounds: int, epoch: int) -> None:
    """Small batches over all partitions, from planning to commit, in the driver."""
    runner = BatchRunner(SinkSettings(Path("pipeline.toml")), bench.config, 1 << 60)
    producer = Producer({"bootstrap.servers": bench.stack.bootstrap_servers})
    chance = random.Random(1)
    keys = sorted(backlog.rows)
    seconds = []
    for number in range(rounds):
        for key in chance.sample(keys, min(SMALL_ROWS, len(keys))):
            shard = key // KEYS_PER_SHARD
            after = image(key, chance)
            value = event(shard, size.events + number, "u", backlog.rows[key], after)
            backlog.rows[key] = after
            value = backlog.form.value(shard, value)
            producer.produce(backlog.topics[shard], value, key=b"%d" % key)
        producer.flush()
        started = time.perf_counter()
        tasks = bench.tasks(backlog.topics, size.partitions, epoch)
        grown = [t for t in tasks if t.end_offset > t.start_offset]
        results = list(runner.run(grown, always))
        seconds.append(time.perf_counter() - started)
        rows = sum(r.rows for r in results if isinstance(r, RangeResult))
        if rows != min(SMALL_ROWS, len(keys)):
            sys.exit(f"a small batch was not applied: {results}")
    connection.close_connections()
    p50, p99 = (sorted(seconds)[int(share * rounds)] * 1000 for share in (0.5, 0.99))
    print(
        f"\n{rounds} batches of {SMALL_ROWS} rows over {len(tasks)} partitions, planning to commit:"
        f" p50 {p50:.0f} ms, p99 {p99:.0f} ms, first {seconds[0] * 1000:.0f} ms"
    )


def measure(
    stack: LocalStack,
    size: Size,
    small: int,
    *,
    rounds: int,
    stages: bool,
    rows_registry: RegistryAddress | None = None,
    server: RunningServer | None = None,
    tidb: MySqlAddress | None = None,
) -> None:
    """The measurement, on a running stack; the target is the server, if there is one."""
    bench = Bench(stack, rows_registry, server, ordered=size.ordered, tidb=tidb)
    (version,) = bench.session.query("SELECT VERSION()")[0]
    backlog = produce(stack, size)
    epoch = bench.control.take_epoch()
    left = sorted(backlog.touched & backlog.rows.keys())
    found: list[Round] = []
    with spark(bench) as runner:
        for _ in range(rounds):
            bench.refill(backlog.base)
            tasks = bench.tasks(backlog.topics, size.partitions, epoch)
            applied = apply_backlog(bench, runner, tasks)
            found.append(Round(applied, bench.load(REFERENCE, backlog.rows, left)))
    print(
        f"sink throughput, target {version}: {backlog.events:,} events"
        f" ({'/'.join(f'{share:.0%}' for share in size.mix)} insert/update/delete), 12 columns,"
        f" {backlog.size_bytes / backlog.events:.0f} bytes of {'Avro' if size.avro else 'JSON'}"
        f" each, {len(tasks)} partitions{', ordered' if size.ordered else ''},"
        f" onto {len(backlog.base):,} rows; {len(left):,} rows to write\n"
    )
    print_rounds(
        backlog.events,
        found,
        f"Kafka to target, Spark local[{CORES}]",
        f"LOAD DATA REPLACE of the final rows{', by 4' if tidb else ', sorted'}",
    )
    gone = [key for key in backlog.base if key not in backlog.rows]
    for first in range(0, len(gone), 1_000):
        some = ", ".join(map(str, gone[first : first + 1_000]))
        bench.session.execute(f"DELETE FROM {REFERENCE.sql} WHERE id IN ({some})")
    if wrong := bench.differences():
        sys.exit(f"target and reference differ in {wrong} rows")
    print("target and reference are equal")
    if stages:
        print_stages(bench, size, backlog)
    if small:
        print_small(bench, size, backlog, small, epoch)


def main() -> None:
    """Run it and print its tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--rows", type=int, default=300_000, help="in the table before")
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--partitions", type=int, default=2, help="of each shard's topic")
    parser.add_argument("--mix", default="60/35/5", help="percent of inserts, updates, deletes")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--small", type=int, default=100, help="how many small batches")
    parser.add_argument("--no-stages", action="store_true")
    parser.add_argument("--server", choices=("stack", *NAMES), default="stack", help="the target")
    parser.add_argument("--format", choices=("json", "avro"), default="json", help="of rows")
    parser.add_argument("--ordered", action="store_true", help="the partitions of each shard")
    parser.add_argument("--tidb", help="USER:PASSWORD@HOST:PORT of one that is the target")
    arguments = parser.parse_args()
    mix = tuple(int(share) / 100 for share in arguments.mix.split("/"))
    size = Size(
        arguments.events, arguments.rows, arguments.shards, arguments.partitions, mix,
        arguments.format == "avro", arguments.ordered,
    )  # fmt: skip
    (ROOT / ".local").mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="bench-", dir=ROOT / ".local"))
    stack = LocalStack(directory, Ports.free(), cache=ROOT / ".local" / "cache")
    try:
        stack.start("kafka")
        with ExitStack() as running:
            server = None
            if arguments.tidb:
                pass
            elif arguments.server == "stack":
                stack.start("target")
            else:
                port, cache = stack.ports.target, ROOT / ".local" / "cache"
                server = running.enter_context(
                    running_server(arguments.server, beside(stack), port, cache=cache)
                )
            address = running.enter_context(registry()) if size.avro else None
            stages = not arguments.no_stages
            measure(
                stack,
                size,
                arguments.small,
                rounds=arguments.rounds,
                stages=stages,
                rows_registry=address,
                server=server,
                tidb=tidb_address(arguments.tidb) if arguments.tidb else None,
            )
    finally:
        stack.clean()


if __name__ == "__main__":
    main()
