"""Shards of two sources in one row topic, as Debezium's ByLogicalTableRouter makes it.

One of them is held by a conflict and released later, the sink is killed meanwhile, tables come, go,
are renamed and emptied: the target is the union of its shards, each row once.
"""

from __future__ import annotations

import json
import threading

import pytest
from confluent_kafka import Consumer, TopicPartition

from shardmerge.local.line import Line
from shardmerge.local.union import compare, read_table
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.pipeline.topics import row_topic

DATABASE, TOPIC = "shared_app", "shared.t"
TARGET = TargetTable("shared_merged", "t")
HELD = ShardId("s2", DATABASE, "t_1")
FLOWING = (ShardId("s1", DATABASE, "t_1"), ShardId("s2", DATABASE, "t_2"))


def sql(line: Line, source: str, *statements: str) -> None:
    with line.connect(source, database=DATABASE) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def write(line: Line, shard: ShardId, first: int, count: int) -> None:
    """Rows one by one, so that those of several shards alternate in the topic."""
    with line.connect(shard.source, database=DATABASE) as connection, connection.cursor() as cursor:
        for number in range(first, first + count):
            cursor.execute(f"INSERT INTO {shard.table} (id, a) VALUES ({number}, {number})")
            if number % 3 == 0:
                cursor.execute(f"UPDATE {shard.table} SET a = -1 WHERE id = {number - 2}")
            if number % 5 == 0:
                cursor.execute(f"DELETE FROM {shard.table} WHERE id = {number - 1}")


def difference(line: Line, *shards: ShardId, others: bool = False) -> list[str]:
    """How the target differs from these shards; ``others``: rows of others may be there too."""
    with line.connect_target() as connection:
        target = read_table(connection, TARGET.database, TARGET.table)
    if target is None:
        return ["no target"]
    found = []
    for shard in shards:
        with line.connect(shard.source) as connection:
            table = read_table(connection, shard.database, shard.table)
        assert table is not None
        found.append((str(shard), table))
    if others:
        names = {str(shard) for shard in shards}
        rows = tuple(row for row in target.rows if row["_shard"] in names)
        target = type(target)(target.columns, target.key, rows)
    return list(compare(target, found, shard_column="_shard").differences)


def waiting(line: Line) -> dict[ShardId, str]:
    shards = line.observer.facts().progress[TARGET].shards
    return {shard.shard: shard.waiting for shard in shards if shard.waiting}


@pytest.mark.timeout(900)
def test_shards_of_two_sources_in_one_topic_end_as_their_union(line: Line) -> None:
    for source in ("s1", "s2"):
        with line.connect(source) as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {DATABASE}")
    shards = (FLOWING[0], HELD, FLOWING[1])
    for shard in shards:
        # The same keys on each: the target tells them apart by their origin.
        sql(line, shard.source, f"CREATE TABLE {shard.table} (id INT PRIMARY KEY, a INT)")
        write(line, shard, 1, 20)
    assert line.poll(lambda: difference(line, *shards), seconds=180) == []

    sql(line, "s1", "ALTER TABLE t_1 ADD COLUMN x INT", "INSERT INTO t_1 VALUES (100, 1, 1)")
    assert line.poll(lambda: difference(line, *shards), seconds=120) == []
    sql(line, "s2", "ALTER TABLE t_1 ADD COLUMN x DATE")
    assert line.observer.wait(lambda f: HELD in f.held(TARGET), 120)
    threads = [threading.Thread(target=write, args=(line, s, 200, 300)) for s in shards]
    for thread in threads:
        thread.start()
    line.kill("sink")
    for thread in threads:
        thread.join()
    late = ShardId("s2", DATABASE, "t_3")
    sql(line, "s2", "CREATE TABLE t_3 (id INT PRIMARY KEY, a INT)")
    write(line, late, 1, 40)
    flowing = (*FLOWING, late)
    assert line.poll(lambda: difference(line, *flowing, others=True), seconds=180) == []
    assert difference(line, HELD, others=True), "its rows wait in the topic"
    assert line.poll(lambda: [f"{waiting(line)}"] * (set(waiting(line)) != {HELD}), 30) == []

    sql(line, "s1", "TRUNCATE TABLE t_1")
    write(line, FLOWING[0], 1_000, 20)
    sql(line, "s2", "DROP TABLE t_2", "CREATE TABLE t_2 (id INT PRIMARY KEY, a INT)")
    write(line, FLOWING[1], 1_000, 20)
    line.kill("sink")
    sql(line, "s2", "ALTER TABLE t_1 DROP COLUMN x")
    write(line, HELD, 1_000, 20)
    renamed = ShardId("s2", DATABASE, "t_9")
    sql(line, "s2", "RENAME TABLE t_3 TO t_9")
    write(line, renamed, 1_000, 20)
    last = (*FLOWING, HELD, renamed)
    assert line.poll(lambda: difference(line, *last), seconds=240) == []
    assert line.poll(lambda: [f"{waiting(line)}"] * bool(waiting(line)), 60) == []
    check_topics(line, *last, late)


def check_topics(line: Line, *shards: ShardId) -> None:
    """Each row came in the one topic, under a key that tells its shard."""
    consumer = Consumer(
        {
            "bootstrap.servers": line.pipeline.kafka.bootstrap_servers,
            "group.id": "shared",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    try:
        known = consumer.list_topics(timeout=30).topics
        assert not {row_topic(shard) for shard in shards} & known.keys()
        partitions = known[TOPIC].partitions
        consumer.assign([TopicPartition(TOPIC, number, 0) for number in partitions])
        keys, ended = set(), 0
        while ended < len(partitions):
            message = consumer.poll(30)
            assert message is not None
            if message.error():
                ended += 1
            elif message.key() is not None:
                keys.add(json.loads(message.key() or b"")["__dbz__physicalTableIdentifier"])
    finally:
        consumer.close()
    assert keys == {row_topic(shard) for shard in shards}
