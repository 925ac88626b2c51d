"""A MySQL table of every type whose rows a connector reads, and its rows as Iceberg shows them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from time import monotonic, sleep
from typing import Any

from confluent_kafka import KafkaException

from shardmerge.cli.validation.inputs.lake_server import LakeServer
from shardmerge.cli.validation.inputs.server_rows import ServerRows
from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.connectors.debezium.source_config import connector_config
from shardmerge.connectors.kafka.topics_admin import create_topics
from shardmerge.local.servers.mysql import PASSWORD, USER
from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.settings import Kafka, Pipeline
from shardmerge.schemas.target.dialects.spark_types import spark_type
from shardmerge.spark_sink.targets.iceberg.target import IcebergTarget
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession
from shardmerge.spark_sink.validation.compared_facts import ShardFacts, TargetFacts
from shardmerge.spark_sink.validation.compared_table import compared_table
from shardmerge.spark_sink.validation.table_validation import TableValidation
from tests.strategies import table

from . import values
from .rig import Rig


def shown(schema: TableSchema, name: str) -> str:
    column = schema.column(name)
    assert column is not None
    if spark_type(column.type) == "timestamp":
        return f"unix_micros(`{name}`) AS `{name}`"
    if spark_type(column.type) == "binary":
        return f"hex(`{name}`) AS `{name}`"
    return f"`{name}`"


@contextmanager
def source_rows(
    stack: LocalStack, row_format: str
) -> Iterator[tuple[str, Kafka, list[dict[str, Any]]]]:
    """The row topic of a table of every type, how to read it, and its rows as Iceberg's."""
    name = f"lakes{os.getpid()}{row_format}"
    session = MySqlSession(MySqlAddress("127.0.0.1", stack.ports.source1, USER, PASSWORD))
    session.execute("CREATE DATABASE lake_types")
    session.execute(f"CREATE TABLE lake_types.t ({values.definitions()})")
    session.execute(values.insert("lake_types.t", 1, snapshot=True))
    text = stack.pipeline_text(
        f"pipeline-{name}",
        '[[routes]]\ndatabase = "lake_types"\ntable = "t"\ntarget = "m.t"\n',
        row_format=row_format,
        schema_registry=stack.registry_url if row_format == "avro" else "",
    )
    pipeline = parse_pipeline(text, {})
    source = replace(pipeline.sources[0], name=name, databases="lake_types", server_id=6002)
    pipeline = replace(pipeline, sources=(source,))
    create_topics(stack.kafka, topics.own_topics(pipeline))
    rest_client = ConnectRest(stack.connect_url)
    connector = connector_name(pipeline, source)
    rest_client.create_or_update(connector, connector_config(pipeline, source))
    rest_client.wait_running(connector)
    rig = Rig(stack, "unused")
    rig.topic = f"{name}.lake_types.t"
    _wait(rig, values.ROWS)
    session.execute(values.insert("lake_types.t", 1000))
    _wait(rig, 2 * values.ROWS)
    schema = table(f"create table t ({values.definitions()})")
    sql = ", ".join(_of_source(schema, c.name) for c in schema.columns)
    rows = session.query(f"SELECT {sql} FROM lake_types.t ORDER BY id")
    shown = [
        {c.name: _value(c.type.name, spark_type(c.type), cell) for c, cell in zip(
            schema.columns, row, strict=True)}
        for row in rows
    ]  # fmt: skip
    yield rig.topic, pipeline.kafka, shown
    rest_client.delete(connector)
    session.execute("DROP DATABASE lake_types")
    session.close()


def _of_source(schema: TableSchema, name: str) -> str:
    column = schema.column(name)
    assert column is not None
    kind = column.type.name
    if kind in ("float", "double"):
        return f"`{name}` + 0e0"
    if kind == "timestamp":
        return f"CAST(UNIX_TIMESTAMP(`{name}`) * 1000000 AS SIGNED)"
    if kind == "bit":
        return f"CAST(`{name}` AS UNSIGNED)"
    if spark_type(column.type) == "binary":
        return f"HEX(`{name}`)"
    if kind == "json":
        return f"CAST(`{name}` AS CHAR)"
    return f"`{name}`"


def _value(kind: str, spark: str, cell: Any) -> Any:
    """A value of PyMySQL as Spark shows it."""
    if cell is None:
        return None
    if kind == "time":
        assert isinstance(cell, timedelta)
        return cell // timedelta(microseconds=1)
    if spark.startswith("decimal"):
        return Decimal(cell)
    if kind == "decimal":
        return f"{cell:f}"
    assert isinstance(cell, int | float | str | date | datetime), (kind, cell)
    return cell


def _wait(rig: Any, count: int) -> None:
    deadline = monotonic() + 90
    while True:
        assert monotonic() < deadline, "the rows did not come from the connector"
        try:
            if rig.end_offset() > count:
                return
        except KafkaException:  # the connector makes the topic with its first row
            pass
        sleep(0.2)


class AtRest:
    """A line that has delivered everything."""

    def note(self) -> object:
        return None

    def passed(self, noted: object) -> bool:
        return True


def compared(
    pipeline: Pipeline,
    target: IcebergTarget,
    shard: ShardId,
    schema: TableSchema,
    name: TargetTable,
) -> TableValidation:
    """The comparison of a shard with the Iceberg table that has its rows."""
    columns = tuple(ShardColumn(f"{c.name}#1", c) for c in schema.columns)
    rule = RoutingRule(shard.source, shard.database, shard.table, name.database, name.table)
    key = () if schema.primary_key is None else schema.primary_key.columns
    table = compared_table(
        TargetFacts(name, columns, key, catalog="lake"), [ShardFacts(shard, columns, rule)]
    )
    with opened(pipeline, target) as servers:
        found = TableValidation(table, servers, AtRest(), 50)
        while not found.is_compared:
            found.compare_next()
        while found.doubts:
            found.settle()
        return found


@contextmanager
def opened(pipeline: Pipeline, target: IcebergTarget) -> Iterator[ServerRows]:
    """Reads the source and the table."""
    servers = ServerRows(pipeline, LakeServer(target, owned=False))
    try:
        yield servers
    finally:
        servers.close()
