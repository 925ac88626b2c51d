"""Pure: the Debezium connector configuration of a source, computed from the pipeline file.

Every choice that decides whether something is lost or read wrongly is made here, none in a
file by hand. Source of the keys: Debezium 3.6 "MySQL connector", Kafka Connect 4.3 "Source
connector configuration"; what they do with real servers: tests/integration/connect.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from shardmerge.connectors.formats.avro_names import ADJUSTMENT
from shardmerge.schemas.model.errors import ConfigError
from shardmerge.schemas.model.names import SIGNAL_TABLE, ShardId
from shardmerge.schemas.pipeline.secrets import for_connect
from shardmerge.schemas.pipeline.server_differences import version_numbers
from shardmerge.schemas.pipeline.settings import (
    CCOMPAT,
    MODES_WITHOUT_ROWS,
    Kafka,
    Pipeline,
    Source,
)
from shardmerge.schemas.pipeline.topics import (
    MAX_ROW_BYTES,
    connector_offsets,
    row_topic,
    shared_pattern,
    unnamed,
)

from .client_config import debezium_client, registry_tls, source_login, source_tls
from .envelope import EPOCH_FIELD
from .signals import signal_config, signal_database

_EPOCH_KEY = "transforms.epoch.static.value"
"""Where ``_epoch`` stands in the configuration."""
MAX_TABLES = 65_536
"""Of one source that can share topics: how many tables' schemas the transformation keeps."""
_CLASSES: Mapping[str, str] = {
    "mysql": "io.debezium.connector.mysql.MySqlConnector",
    "mariadb": "io.debezium.connector.mariadb.MariaDbConnector",
}
_GRAMMARS: Mapping[str, Mapping[str, str]] = {
    # Measured by benchmarks/debezium_parsers.py: the default grammar of 3.6 refuses `url`, `auto`
    # and `manual` as names without quotes, SET DEFAULT NULL and SET DEFAULT b'101', and cuts off
    # the head of CREATE UNIQUE INDEX and CREATE VIEW. What this one refuses is rarer.
    "mysql": {"ddl.parser.type": "legacy"},
    "mariadb": {},  # Its connector has one grammar; of the names above it refuses `auto` (3.5.0).
}
_KEYS: Mapping[str, str] = {
    # The same in every format: a key's bytes choose its partition, so they must not change with its
    # schema. An embedded schema would change them, and so would a schema's id in Avro.
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "key.converter.schemas.enable": "false",
    "key.converter.decimal.format": "NUMERIC",
}
_JSON: Mapping[str, str] = {
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    # BIGINT UNSIGNED travels as a decimal of scale 0; base64 bytes would hide the number.
    "value.converter.decimal.format": "NUMERIC",
    "binary.handling.mode": "base64",
    # The default writes a column's default where the row has NULL (KIP-581).
    "value.converter.replace.null.with.default": "false",
}
_APICURIO: Mapping[str, str] = {
    "value.converter": "io.apicurio.registry.utils.converter.AvroConverter",
    # By default a schema that is there already is taken. That is not set here: versions 2 and 3
    # have different words for it, and 3 fails at that of 2.
    "value.converter.apicurio.registry.auto-register": "true",
    # A schema never changes, so it need not be asked for again, by default every 30 s: a registry
    # that is away for a moment would stop the task (measured: the heartbeat stopped it).
    "value.converter.apicurio.registry.check-period-ms": "86400000",
    "value.converter.apicurio.registry.fault-tolerant-refresh": "true",
    # Confluent's framing, with the id of Confluent's interface: version 2's default has 8 bytes.
    "value.converter.apicurio.registry.headers.enabled": "false",
    "value.converter.apicurio.registry.as-confluent": "true",
    "value.converter.apicurio.registry.use-id": "contentId",
}
_CONFLUENT: Mapping[str, str] = {
    "value.converter": "io.confluent.connect.avro.AvroConverter",
    "value.converter.auto.register.schemas": "true",
    # The default writes a column's default where the row has NULL.
    "value.converter.ignore.default.for.nullables": "true",
}
# There is no snapshot.fetch.size here: a cursor's answers would give FLOAT with all its digits, but
# Debezium 3.6.1 reads TIME values that are zero, negative or have a fraction wrongly from them.
_VALUES: Mapping[str, str] = {
    "decimal.handling.mode": "string",
    # The default turns 18446744073709551615 into -1.
    "bigint.unsigned.handling.mode": "precise",
    "time.precision.mode": "adaptive_time_microseconds",
    # The server has expanded two-digit years already; a second time would turn 0012 into 2012.
    "enable.time.adjuster": "false",
}
TRUE_SCHEMA_HISTORY = "shardmerge.connect.TrueSchemaHistory"
"""Of ``connectors/java``: a schema history that applies what is before an offset, and no more."""
_EXACT_VALUES: Mapping[str, str] = {
    # connectors/java: integers of BOOL columns, the server's text of JSON, zero dates.
    "converters": "exact",
    "exact.type": "shardmerge.connect.ExactValues",
    # The driver would hand it true for 127, and 2000 for the year 0000.
    "driver.tinyInt1isBit": "false",
    "driver.yearIsDateType": "false",
    # Debezium's own applies statements that are still to come, see TrueSchemaHistory.java.
    "schema.history.internal": TRUE_SCHEMA_HISTORY,
}
NO_ROW_TWICE = "shardmerge.connect.NoRowTwice"
"""Of ``connectors/java``, the first of the transformations: it must see each row."""
EXACT_VALUES_PLUGIN = "shardmerge.connect.ExactValuesPresent"
"""The plugin that Connect lists where that converter is."""
SHARED_TOPICS_PLUGIN = "io.debezium.transforms.ByLogicalTableRouter"
"""The transformation that moves rows to topics of several shards."""
_NOTHING_IS_SKIPPED: Mapping[str, str] = {
    # The default drops TRUNCATE.
    "skipped.operations": "none",
    # The delete event says everything, and a tombstone would let compaction forget it.
    "tombstones.on.delete": "false",
    "include.schema.changes": "true",
    # Stop rather than go on without what could not be read.
    "event.processing.failure.handling.mode": "fail",
    # The default warns, and writes NULL for a value that it cannot convert.
    "event.converting.failure.handling.mode": "fail",
    "inconsistent.schema.handling.mode": "fail",
    "schema.history.internal.skip.unparseable.ddl": "false",
    "errors.tolerance": "none",
    # DDL of other databases does not matter. DDL of other tables does: they may be renamed to ours.
    "schema.history.internal.store.only.captured.databases.ddl": "true",
    "schema.history.internal.store.only.captured.tables.ddl": "false",
    # Heartbeats move the stored position while only other tables change, so that it is never in a
    # binlog file that the server has purged.
    "heartbeat.interval.ms": "30000",
}
_EXACTLY_ONCE: Mapping[str, str] = {
    "exactly.once.support": "required",
    "transaction.boundary": "poll",
    # A transaction that is open for longer is ended by the broker, and the task fails: it "was
    # unable to finish writing records before its producer transaction expired" (measured: a worker
    # that stood for 25 s, with 10 s here). The watchdog restarts it; a first snapshot begins again.
    # Connect's producer itself waits for a broker without end. So this is longer than a broker or a
    # worker was ever seen to stand (24 s under load). It costs little: the worker that takes the
    # task over has the same transactional id, so it ends a dead worker's transaction at once, and
    # no worker waits for it (``topics.connector_offsets``). Only if no worker takes over, rows of
    # other sources behind it in a shared topic wait this long.
    "producer.override.transaction.timeout.ms": "120000",
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
    # With ChangeEventQueue of connectors/java: how long events gather while many come.
    "poll.interval.ms": "10",
    # A commit flushes at once, so that lingering costs no latency and fills batches.
    "producer.override.linger.ms": "5",
    "producer.override.batch.size": "131072",
    "max.batch.size": "2048",
    "max.queue.size": "8192",
    "connect.keep.alive.interval.ms": "5000",
    # Three headers with each row that tell the connector's name, which the topic tells.
    "extended.headers.enabled": "false",
}


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
            to Debezium as it is, or the signal table's database has no name, or a MariaDB source
            is to be read without our schema history.
    """
    if source.flavour == "mariadb" and not pipeline.connect.exact_values:
        # Measured, tests/integration/connect/test_mariadb.py: silently, behind a DDL and a pause.
        raise ConfigError(
            f"source {source.name}: without the jar of connectors/java a connector of a MariaDB "
            "server loses rows when it is restarted",
            hint="put the jar into the folder of Debezium's MariaDB connector on every worker "
            "(python -m shardmerge.local.install.exact_values), and remove "
            "exact_values = false under [connect]",
            code="SM-5203",
        )
    config = {
        "connector.class": _CLASSES[source.flavour],
        "tasks.max": "1",
        "topic.prefix": source.name,
        "database.hostname": source.host,
        "database.port": str(source.port),
        "database.user": source.user,
        "database.password": source.connect_password or for_connect(source.password),
        **source_tls(source),
        **source_login(source),
        "database.server.id": str(source.server_id),
        "database.include.list": ",".join(
            # Debezium matches each expression with the whole name. The name of the signal table's
            # database has no character that is special in an expression.
            (_expression(source, "databases", source.databases), signal_database(pipeline, source))
        ),
        "offsets.storage.topic": connector_offsets(pipeline, source.name).name,
        "snapshot.mode": source.connector_snapshot_mode,
        "schema.history.internal.kafka.topic": schema_history_topic(pipeline, source),
        "schema.history.internal.kafka.bootstrap.servers": pipeline.kafka.bootstrap_servers,
        **debezium_client(pipeline, "schema.history.internal.producer."),
        **debezium_client(pipeline, "schema.history.internal.consumer."),
        "topic.creation.default.partitions": str(pipeline.connect.row_partitions),
        "topic.creation.default.replication.factor": str(pipeline.connect.replication),
        "topic.creation.default.cleanup.policy": "delete",
        # Rows of a held shard wait in Kafka, however long it is held.
        "topic.creation.default.retention.ms": "-1",
        "topic.creation.default.retention.bytes": "-1",
        **_KEYS,
        **_format_config(pipeline.kafka),
        **_VALUES,
        **_GRAMMARS[source.flavour],
        **_NOTHING_IS_SKIPPED,
        **_EXACTLY_ONCE,
        **_SIZES,
        **_LATENCY,
        **signal_config(pipeline, source),
        **_transforms({**_once(pipeline), **_shared_topics(pipeline, source), **_epoch(source)}),
    }
    if pipeline.connect.exact_values:
        config |= _EXACT_VALUES
        config["exact.binary.handling.mode"] = config["binary.handling.mode"]
        if source.flavour == "mariadb":
            config["exact.flavour"] = source.flavour
        elif version_numbers(source.version) < (8,):
            config["exact.json"] = "mysql57"
    if left_out := _left_out(pipeline, source):
        config["column.exclude.list"] = ",".join(left_out)
    if source.tables:
        signals = rf"{re.escape(signal_database(pipeline, source))}\.{SIGNAL_TABLE}"
        tables = _expression(source, "tables", source.tables)
        config["table.include.list"] = f"{tables},{signals}"
    # What delivery needs is not among them: ``connector_properties`` refuses it.
    return config | dict(pipeline.connect.connector) | dict(source.connector)


def keeping_snapshot(config: Mapping[str, str], before: Mapping[str, str]) -> dict[str, str]:
    """A configuration for a connector whose first snapshot is under way.

    The snapshot goes on as it began. With another mode Debezium would begin it anew, without rows,
    and the sink would take out what has come. When the snapshot is complete its mode no longer
    matters.

    Args:
        config: What the connector is to be given.
        before: What it has.
    """
    mode = before.get("snapshot.mode", "")
    if config["snapshot.mode"] != "no_data" or mode in ("", *MODES_WITHOUT_ROWS):
        return dict(config)
    return {**config, "snapshot.mode": mode}


def _transforms(found: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Transformations by name, in their order."""
    settings = {
        f"transforms.{name}.{key}": value
        for name, keys in found.items()
        for key, value in keys.items()
    }
    return {"transforms": ",".join(found), **settings} if found else {}


def _once(pipeline: Pipeline) -> dict[str, dict[str, str]]:
    """The transformation that leaves out rows which the binlog's reader reads again."""
    return {"once": {"type": NO_ROW_TWICE}} if pipeline.connect.exact_values else {}


def epoch_of(config: Mapping[str, str]) -> int:
    """The epoch that a connector's configuration has."""
    return int(config.get(_EPOCH_KEY, "0"))


def _epoch(source: Source) -> dict[str, dict[str, str]]:
    """The transformation that writes the source's epoch into every record."""
    if source.epoch == 0:
        return {}
    return {
        "epoch": {
            "type": "org.apache.kafka.connect.transforms.InsertField$Value",
            "static.field": EPOCH_FIELD,
            "static.value": str(source.epoch),
        }
    }


def _shared_topics(pipeline: Pipeline, source: Source) -> dict[str, dict[str, str]]:
    """The transformations that move rows to topics of several shards, one for each such route.

    Nothing else has a topic that they match: schema changes have the source's name, the
    heartbeats begin otherwise, and what the connector writes for itself is left where it is.
    """
    signals = row_topic(ShardId(source.name, signal_database(pipeline, source), SIGNAL_TABLE))
    found: dict[str, dict[str, str]] = {}
    for number, rule in enumerate(pipeline.routes, 1):
        if not (pattern := shared_pattern(rule, source.name)):
            continue
        found[f"rows{number}"] = {
            "type": SHARED_TOPICS_PLUGIN,
            "topic.regex": f"(?!{re.escape(signals)}$){pattern}",
            "topic.replacement": rule.row_topic,
            # Rows of two shards with one key get different keys, so no compaction merges them.
            "key.enforce.uniqueness": "true",
            # By default it keeps the schemas of 16 tables, and makes others anew for every record.
            # The cache takes memory only for tables that have rows.
            "logical.table.cache.size": str(MAX_TABLES),
        }
    return found


def _left_out(pipeline: Pipeline, source: Source) -> list[str]:
    """The columns that routes leave out, as Debezium's expressions of ``database.table.column``."""
    found = []
    for rule in pipeline.routes:
        if rule.leave_out and re.fullmatch(rule.source, source.name):
            parts = (rule.database, rule.table, rule.leave_out)
            text = r"\.".join(f"(?:{unnamed(part)})" for part in parts)
            found.append(_expression(source, "leave_out", text))
    return found


def _format_config(kafka: Kafka) -> Mapping[str, str]:
    """The part of a configuration that the format of values decides."""
    if kafka.row_format != "avro":
        # Without schemas: the tracked schema tells the types, and it is a fifth of the bytes.
        embedded = "true" if kafka.row_format == "json-schemas" else "false"
        return {**_JSON, "value.converter.schemas.enable": embedded}
    named = {
        "binary.handling.mode": "bytes",
        "field.name.adjustment.mode": ADJUSTMENT,
        "schema.name.adjustment.mode": ADJUSTMENT,
    }
    user, password = kafka.schema_registry_user, for_connect(kafka.schema_registry_password)
    if kafka.avro_converter == "apicurio":
        root = kafka.schema_registry.partition(CCOMPAT)[0]
        address = {"value.converter.apicurio.registry.url": f"{root}/apis/registry/v2"}
        if user:
            # 2.6 calls them apicurio.auth., 3 apicurio.registry.auth.; each ignores the other's
            # names. Debezium's image of 3.6 brings 3.2, Maven's repository has 2.6.
            for names in ("apicurio.auth", "apicurio.registry.auth"):
                address |= {
                    f"value.converter.{names}.username": user,
                    f"value.converter.{names}.password": password,
                }
        return {**_APICURIO, **address, **registry_tls(kafka), **named}
    address = {"value.converter.schema.registry.url": kafka.schema_registry}
    if user:
        address |= {
            "value.converter.basic.auth.credentials.source": "USER_INFO",
            "value.converter.basic.auth.user.info": f"{user}:{password}",
        }
    return {**_CONFLUENT, **address, **registry_tls(kafka), **named}


def _expression(source: Source, field: str, pattern: str) -> str:
    """An expression as Debezium reads it: it splits its lists at commas and offers no escape."""
    try:
        re.compile(pattern)
    except re.error as error:
        raise ConfigError(
            f"source {source.name}: {field} {pattern!r} is not a regular expression: {error}",
            code="SM-5302",
        ) from None
    if "," in pattern:
        raise ConfigError(
            f"source {source.name}: {field} {pattern!r} has a comma, where Debezium splits it",
            hint="write a list as a|b, and x{1,3} as xx?x?",
            code="SM-5302",
        )
    return pattern
