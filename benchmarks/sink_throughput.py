"""Rows per second from Kafka into the target, beside LOAD DATA of the same final rows.

Produces a backlog in Debezium's JSON form, applies it with the sink's own tasks under Spark, and
compares the table with what it should hold. The reference is one LOAD DATA LOCAL … REPLACE of
the final rows, sorted by primary key, made ready beforehand, on the same server in the same run:
the least that a target has to do.

    python benchmarks/sink_throughput.py [--events 300000] [--shards 4] [--partitions 2]
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import orjson
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from shardmerge.connectors.local.mysql import PASSWORD, USER
from shardmerge.connectors.local.stack import LocalStack, Ports
from shardmerge.schemas.events import Binding, ShardColumn
from shardmerge.schemas.names import ShardId, TargetTable
from shardmerge.schemas.position import BEGINNING
from shardmerge.spark_sink.apply_ranges import ApplyConfig
from shardmerge.spark_sink.batches import start_spark
from shardmerge.spark_sink.columns import encoder
from shardmerge.spark_sink.control import ControlStore
from shardmerge.spark_sink.range_reader import row_consumer
from shardmerge.spark_sink.ranges import RangeResult, RangeTask, Segment, ShardStream
from shardmerge.spark_sink.row_batches import Block
from shardmerge.spark_sink.settings import SinkSettings
from shardmerge.spark_sink.targets.bulk import load_data
from shardmerge.spark_sink.targets.introspection import schema_of, server_context, show_create
from shardmerge.spark_sink.targets.mysql import MySqlAddress, MySqlSession
from shardmerge.spark_sink.task_runs import run_tasks

ROOT = Path(__file__).resolve().parents[1]
COLUMNS = """
    id BIGINT UNSIGNED NOT NULL PRIMARY KEY, customer INT NOT NULL,
    status ENUM('new','paid','sent','back') NOT NULL, amount DECIMAL(12,2) NOT NULL,
    quantity SMALLINT UNSIGNED, email VARCHAR(100), note VARCHAR(255), created DATETIME(3),
    changed TIMESTAMP(6) NULL, due DATE, score DOUBLE, flag TINYINT(1)
"""
INSERTS, UPDATES = 0.60, 0.35
MERGED, REFERENCE = TargetTable("bench", "merged"), TargetTable("bench", "reference")


@dataclass(frozen=True, slots=True)
class Backlog:
    """What is in Kafka, and the rows that must be in the target in the end, by primary key."""

    topics: tuple[str, ...]
    events: int
    size_bytes: int
    rows: dict[int, dict[str, Any]]


def image(key: int, chance: random.Random) -> dict[str, Any]:
    """A row as Debezium writes it."""
    moment = 1_700_000_000_000 + chance.randrange(10**10)
    return {
        "id": key,
        "customer": chance.randrange(1_000_000),
        "status": chance.choice(("new", "paid", "sent", "back")),
        "amount": f"{chance.randrange(10**7)}.{chance.randrange(100):02d}",
        "quantity": chance.randrange(1000),
        "email": f"customer{chance.randrange(10**6)}@example.com",
        "note": None if chance.random() < 0.2 else "a note of some length, as people write " * 2,
        "created": moment,
        "changed": f"2026-03-0{chance.randrange(1, 10)}T10:11:12.{chance.randrange(10**6):06d}Z",
        "due": 20_000 + chance.randrange(1000),
        "score": chance.random(),
        "flag": chance.randrange(2),
    }


def changes(shard: int, count: int, rows: dict[int, dict[str, Any]]) -> Iterator[tuple[int, bytes]]:
    """(key, record value) of one shard's events in order; ``rows`` becomes the final state."""
    chance = random.Random(shard)
    live: list[int] = []
    following = shard * 10_000_000
    for number in range(count):
        kind = chance.random()
        before, after = None, None
        if kind < INSERTS or len(live) < 2:
            op, key, following = "c", following, following + 1
            live.append(key)
            after = image(key, chance)
        elif kind < INSERTS + UPDATES:
            op, key = "u", chance.choice(live)
            before, after = rows[key], image(key, chance)
        else:
            place = chance.randrange(len(live))
            live[place], live[-1] = live[-1], live[place]
            op, key = "d", live.pop()
            before = rows.pop(key)
        if after is not None:
            rows[key] = after
        source = {
            "version": "3.6.1.Final", "connector": "mysql", "name": "bench", "ts_ms": 0,
            "snapshot": "false", "db": "app", "sequence": None, "table": f"t{shard}",
            "server_id": 101, "gtid": None, "file": "binlog.000001", "pos": 1000 + number * 400,
            "row": 0, "thread": 7, "query": None,
        }  # fmt: skip
        yield (
            key,
            orjson.dumps(
                {"before": before, "after": after, "source": source, "transaction": None, "op": op}
            ),
        )


def produce(stack: LocalStack, events: int, shards: int, partitions: int) -> Backlog:
    """Write the backlog: one topic per shard, records of one key in one partition."""
    topics = tuple(f"bench.app.t{shard}" for shard in range(shards))
    admin = AdminClient({"bootstrap.servers": stack.bootstrap_servers})
    for done in admin.create_topics([NewTopic(t, partitions, 1) for t in topics]).values():
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
    rows: dict[int, dict[str, Any]] = {}
    size = 0
    for shard, topic in enumerate(topics):
        for key, value in changes(shard, events // shards, rows):
            size += len(value)
            producer.produce(topic, value, key=b"%d" % key)
            producer.poll(0)
    producer.flush()
    return Backlog(topics, events // shards * shards, size, rows)


def tasks_of(stack: LocalStack, session: MySqlSession, backlog: Backlog, epoch: int) -> list[Any]:
    """One task per partition of the backlog."""
    context = server_context(session, MERGED.database)
    schema = schema_of(show_create(session, MERGED), context)
    assert schema is not None
    columns = tuple(ShardColumn(f"{c.name}#1", c) for c in schema.columns)
    bindings = {c.id: Binding(c.id, c.column.name) for c in columns}
    consumer = row_consumer(stack.bootstrap_servers)
    tasks = []
    for topic in backlog.topics:
        partitions = consumer.list_topics(topic).topics[topic].partitions
        shard = ShardId("bench", "app", topic.rpartition(".")[2])
        stream = ShardStream(shard, MERGED, (Segment(BEGINNING, columns, ("id",)),), None)
        for partition in sorted(partitions):
            _, end = consumer.get_watermark_offsets(TopicPartition(topic, partition))
            tasks.append(RangeTask(topic, partition, 0, end, stream, bindings, epoch))
    consumer.close()
    return tasks


def apply_backlog(tasks: list[RangeTask], config: ApplyConfig) -> float:
    """Seconds of one Spark job that applies the backlog."""
    spark = start_spark(SinkSettings(Path("pipeline.toml"), master="local[2]"))
    try:
        context = spark.sparkContext
        # Python workers start with the first job, not with the one that is measured.
        context.parallelize(range(2), 2).mapPartitions(partial(_warm, config=config)).collect()
        started = time.perf_counter()
        results = (
            context.parallelize(tasks, len(tasks))
            .mapPartitions(partial(run_tasks, config=config))
            .collect()
        )
        seconds = time.perf_counter() - started
    finally:
        spark.stop()
    for result in results:
        if not isinstance(result, RangeResult) or result.hold is not None:
            sys.exit(f"the backlog was not applied: {result}")
    return seconds


def _warm(_: Iterator[int], config: ApplyConfig) -> list[int]:
    return [len(list(run_tasks((), config)))]


def load_reference(session: MySqlSession, backlog: Backlog) -> float:
    """Seconds of one LOAD DATA of the final rows, sorted by primary key."""
    schema = schema_of(show_create(session, REFERENCE), server_context(session, "bench"))
    assert schema is not None
    encoders = [(c.name, encoder(c.type)) for c in schema.columns]
    rows = [backlog.rows[key] for key in sorted(backlog.rows)]
    block = Block(
        tuple(name for name, _ in encoders),
        tuple(enc.form for _, enc in encoders),
        tuple(enc.encode([row[name] for row in rows]) for name, enc in encoders),
        len(rows),
    )
    sql, data = load_data(REFERENCE, block, replace=True)
    started = time.perf_counter()
    with session.transaction():
        session.load(sql, data)
    return time.perf_counter() - started


def differences(session: MySqlSession) -> int:
    """Rows that are not the same in both tables."""
    ((count,),) = session.query(
        f"SELECT COUNT(*) FROM (SELECT * FROM {MERGED.sql} UNION ALL SELECT * FROM {REFERENCE.sql})"
        " AS both_tables"
    )
    ((distinct,),) = session.query(
        f"SELECT COUNT(*) FROM (SELECT * FROM {MERGED.sql} UNION SELECT * FROM {REFERENCE.sql})"
        " AS both_tables"
    )
    return int(2 * distinct - count)


def main() -> None:
    """Run it and print one table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--events", type=int, default=300_000)
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--partitions", type=int, default=2)
    arguments = parser.parse_args()
    (ROOT / ".local").mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="bench-", dir=ROOT / ".local"))
    stack = LocalStack(directory, Ports.free(), cache=ROOT / ".local" / "cache")
    try:
        stack.start("target")
        stack.start("kafka")
        measure(stack, arguments.events, arguments.shards, arguments.partitions)
    finally:
        stack.clean()


def measure(stack: LocalStack, events: int, shards: int, partitions: int) -> None:
    """The measurement, on a running stack."""
    config = ApplyConfig(
        stack.bootstrap_servers,
        MySqlAddress("127.0.0.1", stack.ports.target, USER, PASSWORD),
        "bench_control",
        "bench",
    )
    session = MySqlSession(config.target)
    session.execute("CREATE DATABASE bench")
    for table in (MERGED, REFERENCE):
        session.execute(f"CREATE TABLE {table.sql} ({COLUMNS})")
    control = ControlStore(session, config.control_database, config.pipeline)
    control.prepare()
    backlog = produce(stack, events, shards, partitions)
    tasks = tasks_of(stack, session, backlog, control.take_epoch())
    applied_s = apply_backlog(tasks, config)
    reference_s = load_reference(session, backlog)
    wrong = differences(session)
    print(
        f"sink throughput: {backlog.events:,} events ({INSERTS:.0%} insert, {UPDATES:.0%} update,"
        f" {1 - INSERTS - UPDATES:.0%} delete), 12 columns,"
        f" {backlog.size_bytes / backlog.events:.0f} bytes each,"
        f" {len(tasks)} partitions, {len(backlog.rows):,} rows left\n"
    )
    print(f"{'way':<46}{'seconds':>9}{'events/s':>11}{'ratio':>8}")
    for way, seconds in (
        ("LOAD DATA REPLACE of the final rows, sorted", reference_s),
        ("Kafka to target, Spark local[2]", applied_s),
    ):
        rate = backlog.events / seconds
        print(f"{way:<46}{seconds:>9.2f}{rate:>11,.0f}{reference_s / seconds:>8.2f}")
    print(f"\ntarget and reference {'are equal' if wrong == 0 else f'differ in {wrong} rows'}")
    session.close()
    if wrong:
        sys.exit(1)


if __name__ == "__main__":
    main()
