"""Properties of Debezium's connectors that a pipeline file passes through, and those it may not.

``[connect.connector]`` holds properties for the connectors of all sources, ``[sources.connector]``
those of one source, which win. A property is refused if delivery, the barrier, the tracked schemas
or the target's values depend on the value that our configuration gives it. A test compares the
list with what ``connectors.debezium.source_config`` writes: each of its keys is refused here, or is
one of ``TUNABLE``.

Source of the names: Debezium 3.6, "MySQL connector" and "MariaDB connector"; Kafka Connect 4.3,
"Source connector configuration".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from shardmerge.schemas.model.errors import ConfigError

Properties: TypeAlias = tuple[tuple[str, str], ...]
"""Names and values, in the order of the file."""

KEY = "connector"
"""The key under which a table of the pipeline file holds them."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Properties that cannot be passed through.

    Attributes:
        names: Each a property's name; ``*`` at its end stands for any further text.
        reason: Why not, as the end of a sentence that begins with the property.
        instead: What to do instead; "" for nothing.
        values: The only values that are refused; empty: all are.
    """

    names: tuple[str, ...]
    reason: str
    instead: str = ""
    values: tuple[str, ...] = ()

    def concerns(self, name: str, value: str) -> bool:
        """Whether it refuses this property."""
        if self.values and value.lower() not in self.values:
            return False
        return any(
            name.startswith(known[:-1]) if known.endswith("*") else name == known
            for known in self.names
        )


REFUSED = (
    Refused(
        ("name", "connector.class", "tasks.max", "plugin.version", "shardmerge.*"),
        "says which connector it is; the watchdog and the repairs find it by that",
    ),
    Refused(
        ("topic.prefix", "topic.delimiter", "topic.naming.strategy", "topic.heartbeat.prefix"),
        "names the topics, and agents and sink read the topics of the source's name",
        "the source's key name",
    ),
    Refused(
        ("database.hostname", "database.port", "database.user", "database.password"),
        "says which server is read; checks, repairs and rereads connect to the same one",
        "the source's keys host, port, user and password",
    ),
    Refused(
        ("database.server.id", "database.server.id.offset"),
        "is the connector's number among the server's replicas",
        "the source's key server_id",
    ),
    Refused(
        (
            "database.include.list",
            "database.exclude.list",
            "table.include.list",
            "table.exclude.list",
        ),
        "says which tables are read; routes, repairs and checks need to know the same",
        "the source's keys databases and tables",
    ),
    Refused(
        ("column.include.list", "column.exclude.list"),
        "says which columns are read; the joined schema needs to know the same",
        "the route's key leave_out",
    ),
    Refused(
        ("column.mask.*", "column.truncate.*", "column.propagate.*", "datatype.propagate.*"),
        "changes rows on their way; the target would differ from its shards",
        "the route's key leave_out",
    ),
    Refused(
        ("exactly.once.support", "transaction.boundary*", "offsets.storage.topic", "offset.*"),
        "makes delivery exact: rows would come twice, or before the DDL that precedes them",
    ),
    Refused(
        (
            "producer.override.transactional.id",
            "producer.override.transaction.timeout.ms",
            "producer.override.enable.idempotence",
            "producer.override.acks",
            "producer.override.max.in.flight.requests.per.connection",
            "producer.override.partitioner.*",
        ),
        "makes delivery exact and keeps the order of rows",
    ),
    Refused(
        ("producer.override.max.request.size", "producer.override.buffer.memory"),
        "is as large as the largest row: a longer one would stop the connector for good",
    ),
    Refused(
        ("topic.creation.*",),
        "says how row topics are made: rows of a held shard wait in them, however long",
        "row_partitions and replication of [connect]",
    ),
    Refused(
        ("message.key.columns", "key.converter*"),
        "makes the key of a record, by which all changes of a row are in one partition",
    ),
    Refused(
        ("value.converter*", "header.converter*"),
        "is the form of records that agents and sink read",
        "row_format of [kafka]",
    ),
    Refused(
        ("transforms*", "predicates*"),
        "changes records: agents and sink read them as Debezium writes them",
    ),
    Refused(
        ("include.schema.changes", "include.schema.comments", "schema.history.*", "ddl.parser.*"),
        "decides which DDL the tracker sees, and how the repairs know Debezium's tables",
    ),
    Refused(
        ("skipped.operations", "tombstones.on.delete"),
        "decides which row events come",
        "the route's key ignore",
    ),
    Refused(
        ("gtid.source.*",),
        "leaves out transactions: their rows and DDL would be missing",
    ),
    Refused(
        (
            "event.processing.failure.handling.mode",
            "event.deserialization.failure.handling.mode",
            "event.converting.failure.handling.mode",
            "inconsistent.schema.handling.mode",
            "errors.tolerance",
        ),
        "lets the connector go on without a row that it cannot read: it must stop there",
    ),
    Refused(
        (
            "decimal.handling.mode",
            "bigint.unsigned.handling.mode",
            "time.precision.mode",
            "enable.time.adjuster",
            "binary.handling.mode",
            "field.name.adjustment.mode",
            "schema.name.adjustment.mode",
            "sourceinfo.struct.maker",
            "converters",
            "exact.*",
        ),
        "is how a value is written; the sink reads exact values in this form",
    ),
    Refused(
        (
            "driver.tinyInt1isBit",
            "driver.yearIsDateType",
            "driver.connectionTimeZone",
            "database.connectionTimeZone",
            "driver.zeroDateTimeBehavior",
        ),
        "changes values that a snapshot reads",
    ),
    Refused(
        ("snapshot.fetch.size", "driver.useCursorFetch"),
        "lets the server send a cursor's answers, of which Debezium 3.6.1 reads TIME values that "
        "are zero, negative or have a fraction wrongly",
    ),
    Refused(
        ("snapshot.mode", "snapshot.mode.*"),
        "decides what a snapshot brings, and the sink must know it",
        "the source's key snapshot_mode",
    ),
    Refused(
        (
            "snapshot.select.statement.overrides*",
            "snapshot.include.collection.list",
            "snapshot.query.mode*",
            "snapshot.isolation.mode",
        ),
        "lets a snapshot read other rows than the tables had at its position",
    ),
    Refused(
        ("snapshot.locking.mode",),
        "none lets the schema change while a snapshot reads it",
        "minimal, or extended",
        ("none",),
    ),
    Refused(
        (
            "signal.*",
            "notification.*",
            "read.only",
            "incremental.snapshot.watermarking.strategy",
            "incremental.snapshot.allow.schema.changes",
        ),
        "is how tables are read again, and how the sink learns that they were",
    ),
    Refused(
        ("heartbeat.interval.ms",),
        "moves the stored position while only other tables change, so that the server does not "
        "purge it",
    ),
    Refused(
        ("internal.*",),
        "is not documented by Debezium, so nobody knows what it changes",
    ),
)

ONLY_MYSQL = "driver.allowPublicKeyRetrieval"
"""Of ``TUNABLE``, what a MariaDB source's connector does not get."""
TUNABLE = (
    "poll.interval.ms",
    "max.batch.size",
    "max.queue.size",
    "max.queue.size.in.bytes",
    "connect.keep.alive.interval.ms",
    "extended.headers.enabled",
    "incremental.snapshot.chunk.size",
    "producer.override.linger.ms",
    "producer.override.batch.size",
    ONLY_MYSQL,
)
"""Properties that the connector gets anyway, and that a pipeline file may set otherwise."""


def connector_properties(entry: object, where: str) -> Properties:
    """Read a table of properties.

    Args:
        entry: The table of the pipeline file.
        where: How error messages name it.

    Raises:
        ConfigError: It is no table, a value is neither text nor number nor boolean, or a property
            cannot be passed through.
    """
    if not isinstance(entry, Mapping):
        raise ConfigError(f"{where} must be a table, not {entry!r}", code="SM-5004")
    found = []
    for name, value in _flat(entry, where):
        for refused in REFUSED:
            if refused.concerns(name, value):
                raise ConfigError(
                    f"{where}: {name} = {value!r} cannot be set: it {refused.reason}"
                    if not refused.values
                    else f"{where}: {name} = {value!r} cannot be set: {refused.reason}",
                    hint=f"use {refused.instead}" if refused.instead else "leave it out",
                    code="SM-5105",
                )
        found.append((name, value))
    return tuple(found)


def _flat(entry: Mapping[str, Any], where: str, prefix: str = "") -> list[tuple[str, str]]:
    """Names and values as text; TOML reads ``a.b = 1`` as a table within a table."""
    found: list[tuple[str, str]] = []
    for key, value in entry.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            found += _flat(value, where, f"{name}.")
        elif isinstance(value, bool):
            found.append((name, str(value).lower()))
        elif isinstance(value, str | int | float):
            found.append((name, str(value)))
        else:
            raise ConfigError(
                f"{where}: {name} must be a text, a number, true or false, not {value!r}",
                code="SM-5004",
            )
        if not re.fullmatch(r"[^\s=]+", name):
            raise ConfigError(f"{where}: {name!r} is no name of a property", code="SM-5004")
    return found
