"""Asks Kafka, Kafka Connect and the target's server for what the views show."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pymysql
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException
from confluent_kafka.admin import AdminClient
from pymysql.cursors import Cursor

from shardmerge.agents.handling.memory_rows import MemoryRows
from shardmerge.agents.handling.stored_table import changelog, table_of
from shardmerge.cli.clients import TIMEOUT_S, connect_rest, kafka_admin, mysql_cursor, topic_reader
from shardmerge.connectors.access.lease_names import NO_FUNCTION, Sinks, names_of, sinks_at
from shardmerge.connectors.access.mysql import mysql_error
from shardmerge.connectors.clock import now_ms
from shardmerge.connectors.connect.pipeline_connectors import pipeline_connectors
from shardmerge.connectors.formats.connector_status import ConnectorState
from shardmerge.connectors.formats.stored_record import Extent, StoredRecord
from shardmerge.connectors.kafka.group_members import group_members
from shardmerge.connectors.kafka.lease_group import lease_group, sinks_in_group
from shardmerge.connectors.kafka.record_formats import record_format
from shardmerge.connectors.kafka.topic_reader import TopicReader
from shardmerge.schemas.model.errors import ConfigError, ShardMergeError, StackError
from shardmerge.schemas.model.names import TargetTable, quote_identifier
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.settings import Pipeline

from .picture import Picture, picture_of
from .shapes import AgentsState, TargetServer

Progress = Callable[[int, int], None]
"""Called with how many offsets were read, and of how many."""


def read_picture(pipeline: Pipeline, progress: Progress, *, servers: bool = False) -> Picture:
    """What a pipeline says now.

    The ends of the topics are asked for one after another, progress before decisions. So the
    picture has every decision that a progress record counts as executed.

    Args:
        pipeline: The pipeline; it may run on other machines.
        progress: Called while the topics are read.
        servers: Whether Connect, the agents' group and the target's server are asked too.

    Raises:
        StackError: Kafka does not answer, or has no topics of this pipeline.
    """
    names = [
        spec(pipeline).name
        for spec in (topics.sink_progress, topics.joined_schemas, topics.ddl, topics.commands)
    ]
    format_ = record_format(pipeline.kafka)
    with topic_reader(pipeline) as reader:
        extents = _extents(pipeline, reader, names)
        # A pipeline of an earlier version lacks this topic until its agents start.
        extents += reader.extents([topics.validations(pipeline).name])
        now = now_ms()
        found = picture_of(pipeline, _records(reader, extents, progress), format_, now)
        if not servers:
            return found
        admin = kafka_admin(pipeline)
        agents, unanswered = _agents(pipeline, reader, admin)
    connectors, silent = _connectors(pipeline)
    return replace(
        found,
        agents=agents,
        connectors=connectors,
        target_server=_target_server(pipeline, admin),
        unanswered=(*unanswered, *silent),
    )


def read_log(pipeline: Pipeline, target: TargetTable, progress: Progress) -> list[StoredRecord]:
    """A target's records of the schema-log, as ``codec``'s bytes; empty when it has none.

    Raises:
        StackError: Kafka does not answer, or has no topics of this pipeline.
    """
    format_ = record_format(pipeline.kafka)
    key = str(target).encode()
    with topic_reader(pipeline) as reader:
        extents = _extents(pipeline, reader, [topics.schema_log(pipeline).name])
        return [
            replace(record, value=format_.to_canonical(record.value))
            for record in _records(reader, extents, progress)
            if record.key == key and record.value is not None
        ]


def read_table(pipeline: Pipeline, progress: Progress) -> MemoryRows:
    """The coordinator's table; empty before the first worker, and if the user may not read it.

    Raises:
        StackError: Kafka does not answer.
    """
    with topic_reader(pipeline) as reader:
        extents = list(reader.extents([changelog(pipeline)]))
        rows = MemoryRows()
        rows.take(table_of(_records(reader, extents, progress)))
        return rows


def _extents(pipeline: Pipeline, reader: TopicReader, names: list[str]) -> list[Extent]:
    extents = [extent for name in names for extent in reader.extents([name])]
    missing = set(names) - {extent.topic for extent in extents}
    if missing:
        raise StackError(
            f"topic {min(missing)} does not exist at {pipeline.kafka.bootstrap_servers}",
            hint="if the pipeline was never started, start it: `shardmerge run`, or `shardmerge "
            "connect apply`; else see whether the file names the right pipeline and Kafka",
            code="SM-4102",
        )
    return extents


def _records(
    reader: TopicReader, extents: list[Extent], progress: Progress
) -> Iterator[StoredRecord]:
    whole, done = sum(e.end - e.begin for e in extents), 0
    for extent in extents:
        for record in reader.records(extent):
            progress(done + record.offset - extent.begin, whole)
            yield record
        done += extent.end - extent.begin
    progress(whole, whole)


def _agents(
    pipeline: Pipeline, reader: TopicReader, admin: AdminClient
) -> tuple[AgentsState | None, tuple[str, ...]]:
    """Workers of the agents' group, and what of their input they have not finished."""
    group = f"{pipeline.name}-agents"
    try:
        workers = len(group_members(admin, group, TIMEOUT_S))
        asked = [ConsumerGroupTopicPartitions(group)]
        answered = admin.list_consumer_group_offsets(asked, request_timeout=TIMEOUT_S)[group]
        committed = {(p.topic, p.partition): p.offset for p in answered.result().topic_partitions}
    except KafkaException as error:
        return None, (f"the agents' group {group} cannot be asked for: {error.args[0].str()}",)
    inputs = [topics.schema_changes(pipeline, source.name).name for source in pipeline.sources]
    inputs += [topics.commands(pipeline).name, topics.schema_log(pipeline).name]
    undecided = 0
    for extent in reader.extents(inputs):
        begin = max(extent.begin, committed.get((extent.topic, extent.partition), 0))
        # Counted, not subtracted: a connector's commit markers are offsets without a record.
        undecided += sum(1 for _ in reader.records(replace(extent, begin=begin)))
    return AgentsState(workers, undecided), ()


def _connectors(pipeline: Pipeline) -> tuple[tuple[ConnectorState, ...], tuple[str, ...]]:
    try:
        rest = connect_rest(pipeline, patience_s=2.0)
    except ConfigError as error:
        return (), (str(error),)
    try:
        return pipeline_connectors(pipeline, rest), ()
    except ShardMergeError as error:
        return (), (str(error),)
    finally:
        rest.close()


def _target_server(pipeline: Pipeline, admin: AdminClient) -> TargetServer:
    target = pipeline.target
    if target.catalog is not None:
        found = TargetServer(target.kind, target.catalog.name)
        try:
            sinks = sinks_in_group(pipeline.kafka, admin, lease_group(pipeline.name))
        except StackError as error:
            return replace(found, error=str(error))
        return replace(found, writer=sinks.writer, standbys=sinks.standbys)
    found = TargetServer(target.kind, f"{target.host}:{target.port}")
    try:
        with mysql_cursor(target) as cursor:
            cursor.execute("SELECT VERSION()")
            found = replace(found, version=str(cursor.fetchall()[0][0]))
            cursor.execute(
                "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = %s"
                " AND table_name = 'writer_epoch'",
                (target.control_database,),
            )
            if not cursor.fetchall()[0][0]:
                return found
            table = f"{quote_identifier(target.control_database)}.writer_epoch"
            cursor.execute(f"SELECT epoch FROM {table} WHERE pipeline = %s", (pipeline.name,))
            epochs = cursor.fetchall()
            found = replace(found, writer_epoch=int(epochs[0][0]) if epochs else 0)
            sinks = _sinks(cursor, pipeline)
            return replace(found, writer=sinks.writer, standbys=sinks.standbys)
    except (pymysql.MySQLError, ConfigError) as error:
        return replace(found, error=mysql_error(error))


def _sinks(cursor: Cursor, pipeline: Pipeline) -> Sinks:
    def query(sql: str, arguments: Sequence[object]) -> Sequence[tuple[object, ...]]:
        cursor.execute(sql, arguments)
        return list(cursor.fetchall())

    try:
        return sinks_at(query, *names_of(pipeline))
    except pymysql.MySQLError as error:
        if error.args[0] != NO_FUNCTION:
            raise
        return Sinks()
