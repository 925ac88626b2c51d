"""Every MySQL type from a source through Debezium into the target, byte for byte."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from time import monotonic, sleep

import pytest
from confluent_kafka import KafkaException

from shardmerge.connectors.connect_rest import ConnectRest
from shardmerge.connectors.local.mysql import PASSWORD, USER
from shardmerge.connectors.local.stack import LocalStack
from shardmerge.connectors.source_config import connector_config, connector_name
from shardmerge.connectors.topics_admin import create_topics
from shardmerge.schemas import topics
from shardmerge.schemas.pipeline import parse_pipeline
from shardmerge.spark_sink.targets.mysql import bulk
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession

from . import values
from .rig import Rig

SOURCE = f"every{os.getpid()}"


@pytest.fixture(scope="module")
def source(stack: LocalStack) -> Iterator[MySqlSession]:
    """A source with a table of every type, read by a connector: first snapshot, then binlog."""
    session = MySqlSession(MySqlAddress("127.0.0.1", stack.ports.source1, USER, PASSWORD))
    session.execute("CREATE DATABASE every_type")
    session.execute(f"CREATE TABLE every_type.t ({values.definitions()})")
    session.execute(values.insert("every_type.t", 1, snapshot=True))
    text = stack.pipeline_text(
        f"pipeline-{SOURCE}", '[[routes]]\ndatabase = "every_type"\ntable = "t"\ntarget = "m.t"\n'
    )
    pipeline = parse_pipeline(text, {})
    source = replace(pipeline.sources[0], name=SOURCE, databases="every_type", server_id=6001)
    pipeline = replace(pipeline, sources=(source,))
    create_topics(stack.bootstrap_servers, topics.own_topics(pipeline))
    rest = ConnectRest(stack.connect_url)
    name = connector_name(pipeline, source)
    rest.create_or_update(name, connector_config(pipeline, source))
    rest.wait_running(name)
    yield session
    rest.delete(name)
    session.execute("DROP DATABASE every_type")
    session.close()


@pytest.mark.parametrize("way", ["load data", "statements"])
def test_every_value_arrives_byte_for_byte_by(
    way: str, rig: Rig, source: MySqlSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "LOAD_FROM_ROWS", 1 if way == "load data" else 10**9)
    rig.topic = f"{SOURCE}.every_type.t"
    rig.shard = replace(rig.shard, source=SOURCE, database="every_type")
    schema = rig.create(values.definitions())
    _wait_for_rows(rig, values.ROWS)
    first = 1000 if way == "load data" else 2000
    source.execute(values.insert("every_type.t", first))

    deadline = monotonic() + 60
    wanted = source.query(f"SELECT id FROM every_type.t WHERE id >= {first}")
    while rig.rows("id")[-len(wanted) :] != sorted(wanted):
        result = rig.apply(rig.segment(schema))
        assert result.hold is None
        assert monotonic() < deadline, "the rows did not come from the connector"
        sleep(0.1)

    columns = values.digest_columns()
    assert _named(rig.rows(columns)) == _named(
        source.query(f"SELECT {columns} FROM every_type.t ORDER BY 1")
    )


def test_whole_rows_without_a_key_are_found_again(rig: Rig, source: MySqlSession) -> None:
    source.execute(f"CREATE TABLE every_type.k ({values.definitions(key='')})")
    rig.topic = f"{SOURCE}.every_type.k"
    rig.shard = replace(rig.shard, source=SOURCE, database="every_type", table="k")
    schema = rig.create(values.definitions(key=""))
    for _ in range(3):
        source.execute(values.insert("every_type.k", 1))
    _wait_for_rows(rig, 3 * values.ROWS)
    assert rig.apply(rig.segment(schema)).rows == 3 * values.ROWS
    before = rig.end_offset()
    for number in range(1, values.ROWS + 1):
        source.execute(f"DELETE FROM every_type.k WHERE id = {number} LIMIT 1")
        source.execute(f"UPDATE every_type.k SET id = -id WHERE id = {number} LIMIT 1")
    _wait_for_rows(rig, before + 2 * values.ROWS)

    deadline = monotonic() + 60
    columns = values.digest_columns()
    wanted = sorted(map(repr, source.query(f"SELECT {columns} FROM every_type.k")))
    while sorted(map(repr, rig.rows(columns))) != wanted:
        assert monotonic() < deadline, "the changes did not come from the connector"
        result = rig.apply(rig.segment(schema))
        assert result.hold is None
        sleep(0.1)


def _wait_for_rows(rig: Rig, count: int) -> None:
    """The connector makes the topic with its first row."""
    deadline = monotonic() + 60
    while True:
        try:
            if rig.end_offset() > count:
                return
        except KafkaException:
            if monotonic() > deadline:
                raise
        assert monotonic() < deadline
        sleep(0.2)


def _named(rows: list[tuple[object, ...]]) -> dict[tuple[object, str], object]:
    """(id, column) → bytes, so that a failure names its column."""
    names = ["id", *values.TYPES]
    return {(row[0], name): cell for row in rows for name, cell in zip(names, row, strict=True)}
