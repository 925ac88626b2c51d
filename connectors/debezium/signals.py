"""Pure: how a connector is asked to read a table again, and how it tells that it has.

An incremental snapshot reads a table in chunks while the binlog is streamed on. Each chunk is read
between two marks that the connector writes to a table of its own on the source, the *signal table*;
what the binlog has between the marks wins over what was read. Its rows (``op`` r, ``snapshot``
incremental) stand at the position of the second mark, so that they are ordered with all other rows
and DDL. Requests come through a Kafka topic, notifications about them go to another.

Source: Debezium 3.6, "Sending signals", "Notifications", "MySQL connector: incremental snapshots";
what it does with real servers: tests/integration/connect/test_signals.py.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from shardmerge.schemas.model.errors import ConfigError, ContractError
from shardmerge.schemas.model.mysql_facts import MAX_NAME_CHARACTERS
from shardmerge.schemas.model.names import (
    SIGNAL_DATABASE_PREFIX,
    SIGNAL_TABLE,
    ShardId,
    quote_identifier,
)
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.settings import Pipeline, Source

from .client_config import debezium_client
from .envelope import unwrapped

_SPECIAL = re.compile(r"[\s.\"'`,\\]")
"""With one of these in a table's name Debezium misreads the table's id, silently (measured)."""


@dataclass(frozen=True, slots=True)
class Notice:
    """What a connector says about its incremental snapshots.

    Attributes:
        source: The source's name.
        id: Of the signal that the connector had read last when it wrote the notice.
        type: ``STARTED``, ``IN_PROGRESS``, ``TABLE_SCAN_COMPLETED``, ``COMPLETED``, ….
        status: Of a table's scan: ``SUCCEEDED``, ``EMPTY``, or why there was none.
        table: ``database.table`` that was scanned; "" elsewhere.
    """

    source: str
    id: str
    type: str
    status: str = ""
    table: str = ""

    @property
    def tells_scan(self) -> bool:
        """Whether it answers a request to read a table; rows that were read precede the notice."""
        # After SQL_EXCEPTION the rows were not read: it is asked for again.
        return self.type == "TABLE_SCAN_COMPLETED" and self.status != "SQL_EXCEPTION"


def signal_database(pipeline: Pipeline, source: Source) -> str:
    """The database of a source's signal table: no other connector reads or writes it.

    Raises:
        ConfigError: The names of pipeline and source are too long together.
    """
    name = f"{SIGNAL_DATABASE_PREFIX}{pipeline.name}_{source.name}".lower()
    if len(name) > MAX_NAME_CHARACTERS:
        raise ConfigError(
            f"source {source.name}: the database of its signal table would be called {name!r}, "
            f"which is longer than {MAX_NAME_CHARACTERS} characters",
            hint="shorten the name of the pipeline or of the source",
            code="SM-5104",
        )
    return name


def signal_table_ddl(pipeline: Pipeline, source: Source) -> tuple[str, ...]:
    """The statements that make a source's signal table."""
    database = quote_identifier(signal_database(pipeline, source))
    return (
        f"CREATE DATABASE IF NOT EXISTS {database}",
        f"CREATE TABLE IF NOT EXISTS {database}.{SIGNAL_TABLE} "
        "(id VARCHAR(255) PRIMARY KEY, type VARCHAR(32) NOT NULL, data TEXT)",
    )


def signal_config(pipeline: Pipeline, source: Source) -> dict[str, str]:
    """The part of a connector's configuration that incremental snapshots need.

    The signal table's database must be captured too: see ``source_config``.
    """
    return {
        "signal.enabled.channels": "source,kafka",
        "signal.data.collection": f"{signal_database(pipeline, source)}.{SIGNAL_TABLE}",
        "signal.kafka.topic": topics.signals(pipeline).name,
        "signal.kafka.bootstrap.servers": pipeline.kafka.bootstrap_servers,
        **debezium_client(pipeline, "signal.consumer."),
        # One group for each connector: in a common group they would use each other's offsets.
        "signal.kafka.groupId": f"{pipeline.name}.{source.name}.signals",
        "signal.poll.interval.ms": "500",
        "notification.enabled.channels": "sink",
        "notification.sink.topic.name": topics.notifications(pipeline).name,
        # Debezium then reads the table's columns from the server first, and after each DDL, and
        # waits until the binlog has reached them. Else a chunk's columns could be ahead of it.
        "incremental.snapshot.allow.schema.changes": "true",
        "incremental.snapshot.chunk.size": "2048",
        # The second mark deletes the first, so that the table stays empty.
        "incremental.snapshot.watermarking.strategy": "insert_delete",
    }


def can_be_asked_for(shard: ShardId) -> bool:
    """Whether Debezium can tell the table from others by its name."""
    return not _SPECIAL.search(shard.database + shard.table)


def signal_id(change_id: str, shard: ShardId) -> str:
    """The id of the request for a shard's snapshot: a repeated request has the same."""
    return f"{change_id}/{shard.database}.{shard.table}"


def snapshot_signal(change_id: str, shard: ShardId, rows: str = "") -> tuple[bytes, bytes]:
    """Key and value of the record that asks for an incremental snapshot of one table.

    Args:
        change_id: Of the schema change whose decision asks.
        shard: The table; its source is the key, which is how a connector knows its signals.
        rows: SQL condition of the rows to read; "" for all.
    """
    # A regular expression of Java.
    table = rf"\Q{shard.database}.{shard.table}\E"
    data: dict[str, object] = {"type": "incremental", "data-collections": [table]}
    if rows:
        data["additional-conditions"] = [{"data-collection": table, "filter": rows}]
    value = {"id": signal_id(change_id, shard), "type": "execute-snapshot", "data": data}
    return shard.source.encode(), json.dumps(value, ensure_ascii=False, sort_keys=True).encode()


def notice(value: bytes | None) -> Notice | None:
    """Read a notification; None for one that is not about incremental snapshots.

    Raises:
        ContractError: It is not a notification.
    """
    try:
        document = unwrapped(json.loads(value or b""))
        if document["aggregate_type"] != "Incremental Snapshot":
            return None
        data = document.get("additional_data")
        facts = data if isinstance(data, dict) else {}
        return Notice(
            source=str(facts.get("connector_name", "")),
            id=str(document["id"]),
            type=str(document["type"]),
            status=str(facts.get("status", "")),
            table=str(facts.get("scanned_collection", "")),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise ContractError(
            f"not a notification of Debezium: {value!r}",
            hint="notification.sink.topic.name must name a topic that only connectors write",
            code="SM-2108",
        ) from error
