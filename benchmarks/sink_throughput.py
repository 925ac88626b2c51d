"""Rows per second from Kafka into the target, beside LOAD DATA of the same final rows.

Fills a table, produces a backlog in Debezium's JSON form, applies it with the sink's own tasks
under Spark, and compares the table with what it should hold. The reference is one LOAD DATA LOCAL
… REPLACE of the rows that the backlog leaves behind, sorted by primary key, made ready
beforehand, onto the same filled table on the same server in the same run: the least that a target
has to do. Both are done in turn, several times, since a shared machine's speed changes from minute
to minute: the table shows the round whose ratio is the median one. The first round finds brokers
and Python workers that have just started. A third way in each round are the statements that the
sink makes, made beforehand, by a connection for each core: what is left when nothing has to be read
and decoded, or when that is done on other machines. Then the same tasks run once more in one
process without Spark, with a clock at every stage; and small batches, as they come when there is no
backlog, run in the driver.

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
from contextlib import ExitStack
from pathlib import Path

from confluent_kafka import Producer

from benchmarks.bench_events import KEYS_PER_SHARD, Backlog, Size, produce
from benchmarks.bench_measures import (
    Round,
    StageClock,
    beside,
    measuring,
    print_rounds,
    tidb_address,
)
from benchmarks.bench_replay import recorded, replayed
from benchmarks.bench_rows import event, image, registry
from benchmarks.bench_target import (
    CORES,
    MERGED,
    REFERENCE,
    STAGED,
    Bench,
    apply_backlog,
    spark,
)
from shardmerge.connectors.kafka.registry import RegistryAddress
from shardmerge.local.servers.other_versions import NAMES, RunningServer, running_server
from shardmerge.local.servers.stack import LocalStack, Ports
from shardmerge.spark_sink.kafka.range_reader import RangeCursor
from shardmerge.spark_sink.planning.ranges import RangeResult
from shardmerge.spark_sink.process.settings import SinkSettings
from shardmerge.spark_sink.rows.folding.row_fold import RowFold
from shardmerge.spark_sink.targets.mysql.control import ControlStore
from shardmerge.spark_sink.targets.mysql.lines.encoders import literals
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession
from shardmerge.spark_sink.targets.mysql.tasks import apply_ranges, bulk, connection
from shardmerge.spark_sink.targets.mysql.tasks.batches import BatchRunner
from shardmerge.spark_sink.targets.mysql.tasks.connection import always

ROOT = Path(__file__).resolve().parents[1]
STAGE_EVENTS = 250_000
SMALL_ROWS = 100


def print_stages(bench: Bench, size: Size, backlog: Backlog) -> None:
    """Where the time goes: the same tasks in this process, one core."""
    bench.fill(STAGED, backlog.base)
    topics = backlog.topics[: max(1, STAGE_EVENTS * size.shards // size.events)]
    units, config = bench.staged(topics, size.partitions, "stages")
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
    units = [] if tidb else recorded(bench, size, backlog)
    with spark(bench) as runner:
        for _ in range(rounds):
            bench.refill(backlog.base)
            tasks = bench.tasks(backlog.topics, size.partitions, epoch)
            applied = apply_backlog(bench, runner, tasks)
            reference = bench.load(REFERENCE, backlog.rows, left)
            bound = replayed(bench, units, backlog.base) if units else None
            found.append(Round(applied, reference, bound))
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
        f"the sink's statements alone, by {CORES}",
    )
    gone = [key for key in backlog.base if key not in backlog.rows]
    for first in range(0, len(gone), 1_000):
        some = ", ".join(map(str, gone[first : first + 1_000]))
        bench.session.execute(f"DELETE FROM {REFERENCE.sql} WHERE id IN ({some})")
    for table in (MERGED, STAGED) if units else (MERGED,):
        if wrong := bench.differences(table):
            sys.exit(f"{table} and the reference differ in {wrong} rows")
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
