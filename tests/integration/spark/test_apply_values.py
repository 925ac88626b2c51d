"""Every MySQL type from a source through Debezium into the target, in each format."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from time import monotonic, sleep

import pytest
from confluent_kafka import KafkaException

from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.connectors.debezium.source_config import connector_config
from shardmerge.connectors.kafka.registry import RegistryAddress
from shardmerge.connectors.kafka.topics_admin import create_topics
from shardmerge.local.servers.mysql import PASSWORD, USER
from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.settings import ROW_FORMATS, Kafka
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession
from shardmerge.spark_sink.targets.mysql.tasks import bulk
from shardmerge.spark_sink.targets.mysql.tasks.connection import TaskConnection

from . import values
from .rig import Rig


@dataclass(frozen=True, slots=True)
class Every:
    """A source with a table of every type in a database of its own, and its connector."""

    session: MySqlSession
    name: str
    database: str
    kafka: Kafka

    def read_by(self, rig: Rig, table: str) -> None:
        """Let a rig read one of its tables."""
        rig.topic = f"{self.name}.{self.database}.{table}"
        rig.shard = replace(rig.shard, source=self.name, database=self.database, table=table)
        rig.config = replace(rig.config, registry=RegistryAddress.of(self.kafka))
        rig.connection.close()
        rig.connection = TaskConnection(rig.config)


@pytest.fixture(scope="module", params=ROW_FORMATS)
def source(stack: LocalStack, request: pytest.FixtureRequest) -> Iterator[Every]:
    """Read by a connector that writes in one format: first snapshot, then binlog."""
    row_format: str = request.param
    number = ROW_FORMATS.index(row_format)
    name, database = f"e{os.getpid()}-{number}", f"every_{row_format}"
    session = MySqlSession(MySqlAddress("127.0.0.1", stack.ports.source1, USER, PASSWORD))
    session.execute(f"CREATE DATABASE `{database}`")
    session.execute(f"CREATE TABLE `{database}`.t ({values.definitions()})")
    session.execute(values.insert(f"`{database}`.t", 1, snapshot=True))
    text = stack.pipeline_text(
        f"p-{name}",
        f'[[routes]]\ndatabase = "{database}"\ntable = "t"\ntarget = "m.t"\n',
        row_format=row_format,
        schema_registry=stack.registry_url if row_format == "avro" else "",
    )
    pipeline = parse_pipeline(text, {})
    source = replace(pipeline.sources[0], name=name, databases=database, server_id=6001 + number)
    pipeline = replace(pipeline, sources=(source,))
    create_topics(stack.kafka, topics.own_topics(pipeline))
    rest = ConnectRest(stack.connect_url)
    connector = connector_name(pipeline, source)
    rest.create_or_update(connector, connector_config(pipeline, source))
    rest.wait_running(connector)
    yield Every(session, name, database, pipeline.kafka)
    rest.delete(connector)
    session.execute(f"DROP DATABASE `{database}`")
    session.close()


@pytest.mark.parametrize("way", ["load data", "statements"])
def test_every_value_arrives_byte_for_byte_by(
    way: str, rig: Rig, source: Every, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "LOAD_FROM_ROWS", 1 if way == "load data" else 10**9)
    source.read_by(rig, "t")
    table = f"`{source.database}`.t"
    schema = rig.create(values.definitions())
    _wait_for_rows(rig, values.ROWS)
    first = 1000 if way == "load data" else 2000
    source.session.execute(values.insert(table, first))

    deadline = monotonic() + 60
    wanted = source.session.query(f"SELECT id FROM {table} WHERE id >= {first}")
    while rig.rows("id")[-len(wanted) :] != sorted(wanted):
        result = rig.apply(rig.segment(schema))
        assert result.hold is None
        assert monotonic() < deadline, "the rows did not come from the connector"
        sleep(0.1)

    columns = values.digest_columns()
    assert _named(rig.rows(columns)) == _named(
        source.session.query(f"SELECT {columns} FROM {table} ORDER BY 1")
    )


def test_whole_rows_without_a_key_are_found_again(rig: Rig, source: Every) -> None:
    run, table = source.session.execute, f"`{source.database}`.k"
    run(f"CREATE TABLE {table} ({values.definitions(key='')})")
    source.read_by(rig, "k")
    schema = rig.create(values.definitions(key=""))
    for _ in range(3):
        run(values.insert(table, 1))
    _wait_for_rows(rig, 1)
    applied, deadline = 0, monotonic() + 60
    while applied < 3 * values.ROWS:
        result = rig.apply(rig.segment(schema))
        assert result.hold is None
        assert monotonic() < deadline, "the rows did not come from the connector"
        applied += result.rows
        sleep(0.1)
    assert applied == 3 * values.ROWS
    for number in range(1, values.ROWS + 1):
        run(f"DELETE FROM {table} WHERE id = {number} LIMIT 1")
        run(f"UPDATE {table} SET id = -id WHERE id = {number} LIMIT 1")

    deadline = monotonic() + 60
    columns = values.digest_columns()
    wanted = sorted(map(repr, source.session.query(f"SELECT {columns} FROM {table}")))
    while sorted(map(repr, rig.rows(columns))) != wanted:
        assert monotonic() < deadline, "the changes did not come from the connector"
        result = rig.apply(rig.segment(schema))
        assert result.hold is None
        sleep(0.1)


DEFAULTS = (
    "a_int INT NOT NULL DEFAULT -1, a_big BIGINT UNSIGNED NOT NULL DEFAULT 18446744073709551615, "
    "a_dec DECIMAL(10,3) NOT NULL DEFAULT 1.5, a_float FLOAT NOT NULL DEFAULT 0.5, "
    "a_double DOUBLE NOT NULL DEFAULT 1e100, a_bit1 BIT(1) NOT NULL DEFAULT b'1', "
    "a_bit BIT(12) NOT NULL DEFAULT b'100000001111', a_bool TINYINT(1) NOT NULL DEFAULT 1, "
    "a_year YEAR NOT NULL DEFAULT 2001, a_date DATE NOT NULL DEFAULT '2001-02-03', "
    "a_time TIME(6) NOT NULL DEFAULT '-01:02:03.000004', "
    "a_datetime DATETIME(6) NOT NULL DEFAULT '2001-02-03 04:05:06.000007', "
    "a_stamp TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3), "
    "a_char CHAR(4) NOT NULL DEFAULT 'é€', a_varchar VARCHAR(9) NOT NULL DEFAULT '', "
    "a_binary BINARY(4) NOT NULL DEFAULT 'ab', a_varbinary VARBINARY(9) NOT NULL DEFAULT 0x00ff, "
    "a_enum ENUM('x','y') NOT NULL DEFAULT 'y', a_set SET('x','y') NOT NULL DEFAULT 'x,y'"
)


def test_columns_with_defaults_arrive_as_they_are(rig: Rig, source: Every) -> None:
    run, table = source.session.execute, f"`{source.database}`.d"
    definitions = f"id INT PRIMARY KEY, {DEFAULTS}"
    run(f"CREATE TABLE {table} ({definitions})")
    source.read_by(rig, "d")
    schema = rig.create(definitions)
    run(f"INSERT INTO {table} (id) VALUES (1)")
    run(f"INSERT INTO {table} (id, a_int, a_binary) VALUES (2, 7, 0xff)")
    _wait_for_rows(rig, 2)

    deadline = monotonic() + 60
    while rig.rows() != (wanted := source.session.query(f"SELECT * FROM {table} ORDER BY id")):
        result = rig.apply(rig.segment(schema))
        assert result.hold is None
        assert monotonic() < deadline, (rig.rows(), wanted)
        sleep(0.1)


def test_null_is_not_taken_for_a_columns_default(rig: Rig, source: Every) -> None:
    run, table = source.session.execute, f"`{source.database}`.n"
    definitions = "id INT PRIMARY KEY, a VARCHAR(9) DEFAULT 'x', b INT DEFAULT 7, c DATE"
    run(f"CREATE TABLE {table} ({definitions})")
    source.read_by(rig, "n")
    schema = rig.create(definitions)
    run(f"INSERT INTO {table} VALUES (1, NULL, NULL, NULL), (2, 'x', 7, '2001-02-03')")
    _wait_for_rows(rig, 2)

    result = rig.apply(rig.segment(schema))
    if source.kafka.row_format == "avro":
        assert result.hold is not None
        assert "default where a row has NULL" in result.hold.reason
        assert (rig.rows(), result.next_offset) == ([], 0)
    else:
        assert result.hold is None
        assert rig.rows() == source.session.query(f"SELECT * FROM {table} ORDER BY id")


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
