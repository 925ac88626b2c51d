"""Pure: the Debezium connector configuration of a source, computed from the pipeline file.

Every choice that decides whether something is lost or read wrongly is made here, none in a
file by hand. Source of the keys: Debezium 3.6 "MySQL connector", Kafka Connect 4.3 "Source
connector configuration"; what they do with real servers: tests/integration/connect.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from shardmerge.schemas.errors import ConfigError
from shardmerge.schemas.names import SIGNAL_TABLE
from shardmerge.schemas.pipeline import Pipeline, Source
from shardmerge.schemas.topics import MAX_ROW_BYTES

from .signals import signal_config, signal_database

_CLASSES: Mapping[str, str] = {
    "mysql": "io.debezium.connector.mysql.MySqlConnector",
    "mariadb": "io.debezium.connector.mariadb.MariaDbConnector",
}
_SNAPSHOT_MODES = frozenset(
    (
        "always",
        "initial",
        "initial_only",
        "no_data",
        "never",
        "recovery",
        "when_needed",
        "configuration_based",
    )
)
_VALUES: Mapping[str, str] = {
    # JSON without schemas: the tracked schema tells the types, and it is a fifth of the bytes.
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "key.converter.schemas.enable": "false",
    "key.converter.decimal.format": "NUMERIC",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
    # BIGINT UNSIGNED travels as a decimal of scale 0; base64 bytes would hide the number.
    "value.converter.decimal.format": "NUMERIC",
    # By default the converter writes a column's default where a row holds NULL (KIP-581).
    "value.converter.replace.null.with.default": "false",
    "decimal.handling.mode": "string",
    # The default turns 18446744073709551615 into -1.
    "bigint.unsigned.handling.mode": "precise",
    "time.precision.mode": "adaptive_time_microseconds",
    "binary.handling.mode": "base64",
    # The server has expanded two-digit years already; a second time would turn 0012 into 2012.
    "enable.time.adjuster": "false",
}
_NOTHING_IS_SKIPPED: Mapping[str, str] = {
    # The default drops TRUNCATE.
    "skipped.operations": "none",
    # The delete event says everything, and a tombstone would let compaction forget it.
    "tombstones.on.delete": "false",
    "include.schema.changes": "true",
    # Stop rather than go on without what could not be read.
    "event.processing.failure.handling.mode": "fail",
    "inconsistent.schema.handling.mode": "fail",
    "schema.history.internal.skip.unparseable.ddl": "false",
    "errors.tolerance": "none",
    # DDL of other databases is nothing to us; of other tables it is: they may be renamed to ours.
    "schema.history.internal.store.only.captured.databases.ddl": "true",
    "schema.history.internal.store.only.captured.tables.ddl": "false",
    # Moves the stored position while only other tables change, so that it never stands in a
    # binlog file that the server has purged.
    "heartbeat.interval.ms": "30000",
}
_EXACTLY_ONCE: Mapping[str, str] = {
    "exactly.once.support": "required",
    "transaction.boundary": "poll",
    # A killed worker's open transaction hides later rows until it times out. One transaction is
    # one poll, so that a few seconds are plenty; the default is a minute.
    "producer.override.transaction.timeout.ms": "10000",
}
_SIZES: Mapping[str, str] = {
    # Kafka's own bound is 1 MiB: a longer row would stop the connector for good.
    "producer.override.max.request.size": str(MAX_ROW_BYTES),
    "producer.override.buffer.memory": str(MAX_ROW_BYTES),
    "topic.creation.default.max.message.bytes": str(MAX_ROW_BYTES),
    # Debezium reads events ahead; by number alone they could be gigabytes.
    "max.queue.size.in.bytes": str(64 * 1024 * 1024),
}
_LATENCY: Mapping[str, str] = {
    "poll.interval.ms": "10",
    # A commit flushes at once, so that lingering costs no latency and fills batches.
    "producer.override.linger.ms": "5",
    "producer.override.batch.size": "131072",
    "max.batch.size": "2048",
    "max.queue.size": "8192",
    "connect.keep.alive.interval.ms": "5000",
}


def connector_name(pipeline: Pipeline, source: Source) -> str:
    """The connector's name in Kafka Connect: no other pair of pipeline and source has it."""
    return f"{pipeline.name}.{source.name}"


def schema_history_topic(pipeline: Pipeline, source: Source) -> str:
    """Debezium's own topic, from which a restarted task learns the tables' schemas again."""
    return f"{pipeline.name}.{source.name}.schema-history"


def connector_config(pipeline: Pipeline, source: Source) -> dict[str, str]:
    """The whole configuration of a source's connector.

    Args:
        pipeline: For Kafka, Connect and the names of topics.
        source: One of its sources.

    Returns:
        What ``PUT /connectors/NAME/config`` takes; every value is text.

    Raises:
        ConfigError: The source's snapshot mode is not known, or an expression cannot be handed
            to Debezium as it is, or the signal table's database has no name.
    """
    if source.snapshot_mode not in _SNAPSHOT_MODES:
        raise ConfigError(
            f"source {source.name}: snapshot_mode {source.snapshot_mode!r} is not known",
            hint=f"known: {', '.join(sorted(_SNAPSHOT_MODES))}",
        )
    config = {
        "connector.class": _CLASSES[source.flavour],
        "tasks.max": "1",
        "topic.prefix": source.name,
        "database.hostname": source.host,
        "database.port": str(source.port),
        "database.user": source.user,
        "database.password": source.password,
        "database.server.id": str(source.server_id),
        "database.include.list": ",".join(
            # Debezium matches each with the whole name; the signal table's database has no name
            # that is an expression.
            (_expression(source, "databases", source.databases), signal_database(pipeline, source))
        ),
        "snapshot.mode": source.snapshot_mode,
        "schema.history.internal.kafka.topic": schema_history_topic(pipeline, source),
        "schema.history.internal.kafka.bootstrap.servers": pipeline.kafka.bootstrap_servers,
        "topic.creation.default.partitions": str(pipeline.connect.row_partitions),
        "topic.creation.default.replication.factor": str(pipeline.connect.replication),
        "topic.creation.default.cleanup.policy": "delete",
        # Rows of a held shard wait in Kafka, however long it is held.
        "topic.creation.default.retention.ms": "-1",
        "topic.creation.default.retention.bytes": "-1",
        **_VALUES,
        **_NOTHING_IS_SKIPPED,
        **_EXACTLY_ONCE,
        **_SIZES,
        **_LATENCY,
        **signal_config(pipeline, source),
    }
    if source.tables:
        signals = rf"{re.escape(signal_database(pipeline, source))}\.{SIGNAL_TABLE}"
        tables = _expression(source, "tables", source.tables)
        config["table.include.list"] = f"{tables},{signals}"
    return config


def _expression(source: Source, field: str, pattern: str) -> str:
    """An expression as Debezium reads it: it splits its lists at commas and offers no escape."""
    try:
        re.compile(pattern)
    except re.error as error:
        raise ConfigError(
            f"source {source.name}: {field} {pattern!r} is not a regular expression: {error}"
        ) from None
    if "," in pattern:
        raise ConfigError(
            f"source {source.name}: {field} {pattern!r} has a comma, where Debezium splits it",
            hint="write a list as a|b, and x{1,3} as xx?x?",
        )
    return pattern
