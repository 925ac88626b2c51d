"""Puts records on Debezium's topics that Debezium would not write: for tests of bad input.

Each copies the newest record of its topic and changes what the test is about, so it has the form,
the keys and the position of a real one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from shardmerge.local.line import Line
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.pipeline.topics import row_topic


def put_row(line: Line, shard: ShardId, row: Mapping[str, Any], key: Mapping[str, Any]) -> None:
    """A created row right after the newest one of the shard."""
    topic = row_topic(shard)
    partition, _, record = _newest(line, topic, lambda value: "after" in value)
    record |= {"op": "c", "before": None, "after": dict(row)}
    _put(line, topic, partition, dict(key), record)


def put_schema_change(line: Line, shard: ShardId, ddl: str) -> None:
    """A statement on the shard right after the newest one of its database."""
    _, key, record = _newest(
        line, shard.source, lambda value: value.get("databaseName") == shard.database
    )
    record |= {"ddl": ddl, "tableChanges": []}
    record["source"] |= {"table": shard.table, "snapshot": "false"}
    _put(line, shard.source, 0, key, record)


def _newest(line: Line, topic: str, wanted: Any) -> tuple[int, Any, dict[str, Any]]:
    consumer = Consumer(
        {
            "bootstrap.servers": line.pipeline.kafka.bootstrap_servers,
            "group.id": "forge",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    try:
        partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        ended: set[int] = set()
        found: list[tuple[int, Any, dict[str, Any]]] = []
        while len(ended) < len(partitions):
            message = consumer.poll(10)
            assert message is not None, f"topic {topic} does not answer"
            if message.error():
                ended.add(message.partition() or 0)
                continue
            value = json.loads(message.value() or b"null")
            if value and wanted(value):
                key = json.loads(message.key() or b"null")
                found.append((message.partition() or 0, key, value))
    finally:
        consumer.close()
    partition, key, value = max(found, key=lambda entry: _place(entry[2]))
    value["source"]["pos"] += 1
    return partition, key, value


def _place(value: dict[str, Any]) -> tuple[str, int]:
    return value["source"]["file"], value["source"]["pos"]


def _put(line: Line, topic: str, partition: int, key: Any, value: Any) -> None:
    producer = Producer({"bootstrap.servers": line.pipeline.kafka.bootstrap_servers})
    producer.produce(topic, json.dumps(value), json.dumps(key), partition=partition)
    assert producer.flush(30) == 0, f"{topic} does not take the record"
