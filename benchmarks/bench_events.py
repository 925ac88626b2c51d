"""A backlog of row events in Kafka, and what a target must hold when they are applied."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.bench_rows import Avro, Bare, Form, event, image
from shardmerge.local.servers.stack import LocalStack

COLUMNS = """
    id BIGINT UNSIGNED NOT NULL PRIMARY KEY, customer INT NOT NULL,
    status ENUM('new','paid','sent','back') NOT NULL, amount DECIMAL(12,2) NOT NULL,
    quantity SMALLINT UNSIGNED, email VARCHAR(100), note VARCHAR(255), created DATETIME(3),
    changed TIMESTAMP(6) NULL, due DATE, score DOUBLE, flag TINYINT(1)
"""
KEYS_PER_SHARD = 100_000_000


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
