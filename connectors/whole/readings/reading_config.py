"""The connector that reads tables as a whole, once: its name, configuration and topics. Pure.

It is made for one reading and deleted after it. Its name ends with a token of its own: Connect
keeps each connector's offset in the worker's own topic, too, and a second connector of the same
name would find there that the tables are read already.

Its configuration names the shards that are read, under a key that Connect and Debezium ignore. So
another process finds everything there.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from shardmerge.connectors.debezium.source_config import connector_config
from shardmerge.connectors.repair.schema_history.history import named_table
from shardmerge.connectors.repair.schema_history.left_out import literal
from shardmerge.schemas.ddl.changes import TableName
from shardmerge.schemas.model.errors import ContractError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.pipeline.settings import Pipeline, Source
from shardmerge.schemas.pipeline.topics import TopicSpec, connector_offsets
from shardmerge.schemas.records.plain import dump, from_plain

from .open_readings import Wanted

READING = "shardmerge.reading"
"""Key of the configuration: the shards that are read, see ``Wanted``."""
_HEARTBEATS = "__debezium-heartbeat."
_OTHERS = ("signal.", "notification.", "incremental.snapshot.")
"""Prefixes of settings that only the source's own, lasting connector needs."""
_CLOCK_SLACK_MS = 3_600_000


def reading_topics_among(names: Iterable[str], connector: str) -> tuple[str, ...]:
    """The topics among ``names`` that readings of a source have made for themselves.

    Args:
        names: Of topics.
        connector: The source's own connector.
    """
    reading = rf"{re.escape(connector)}\.whole\.[0-9a-f]{{12}}"
    form = re.compile(
        rf"{reading}\.(?:offsets|schema-history)|{re.escape(_HEARTBEATS)}{reading}\.[\w-]+",
        re.ASCII,
    )
    return tuple(sorted(name for name in names if form.fullmatch(name)))


def reading_offsets(pipeline: Pipeline, source: Source, name: str) -> TopicSpec:
    """The topic in which Connect keeps how far the reading is."""
    spec = connector_offsets(pipeline, source.name)
    return TopicSpec(f"{name}.offsets", spec.partitions, spec.replication, spec.config)


def reading_history(name: str) -> str:
    """Debezium's own topic, in which each run of the reading writes the tables down first."""
    return f"{name}.schema-history"


def reading_config(
    pipeline: Pipeline, source: Source, name: str, wanted: Sequence[Wanted]
) -> dict[str, str]:
    """The whole configuration.

    Args:
        pipeline: Whose source.
        source: What is read.
        name: The connector's.
        wanted: Shards of that source.

    Raises:
        ConfigError: As ``connector_config``.
    """
    config = {
        key: value
        for key, value in connector_config(pipeline, source).items()
        if not key.startswith(_OTHERS)
    }
    tables = sorted({(w.shard.database, w.shard.table) for w in wanted})
    databases = dict.fromkeys(database for database, _ in tables)
    return config | {
        "snapshot.mode": "initial_only",
        # Debezium compares without regard to case: another table must not be read, too.
        "database.include.list": ",".join(f"(?-i){literal(d)}" for d in databases),
        "table.include.list": ",".join(f"(?-i){literal(d)}[.]{literal(t)}" for d, t in tables),
        # They are told by the source's own connector.
        "include.schema.changes": "false",
        "schema.history.internal.store.only.captured.tables.ddl": "true",
        "schema.history.internal.kafka.topic": reading_history(name),
        "offsets.storage.topic": reading_offsets(pipeline, source, name).name,
        # Debezium sends a heartbeat when a snapshot is complete. Only the heartbeat's offset says
        # so: the last row's offset does not, and an empty table has no row.
        "topic.heartbeat.prefix": f"{_HEARTBEATS}{name}",
        # Names of MBeans have topic.prefix: while the source's connector has the same, Debezium
        # would try for a minute to register them.
        "custom.metric.tags": "reading=whole",
        # By default Debezium tries again within the task, without end and without a word, while the
        # source's own connector waits.
        "errors.max.retries": "0",
        READING: dump(tuple(sorted(wanted))).decode(),
    }


def wanted_of(config: Mapping[str, str]) -> tuple[Wanted, ...]:
    """The shards that a connector reads, by its configuration.

    Raises:
        ContractError: It is none of ours.
    """
    try:
        return tuple(from_plain(Wanted, item) for item in json.loads(config[READING]))
    except (KeyError, ValueError, TypeError) as error:
        raise ContractError(
            f"the configuration of {config.get('name', 'a connector')} has no {READING} that can "
            f"be read: {error}",
            hint="delete the connector",
            code="SM-2121",
        ) from error


@dataclass(frozen=True, slots=True)
class Runs:
    """What a reading's schema history tells.

    Attributes:
        tables: How many runs have written each table down.
        began_ms: When the first record was made, by the connector's clock.
    """

    tables: Mapping[TableName, int]
    began_ms: int

    def is_one_of(self, shards: Iterable[ShardId]) -> bool:
        """Whether one run has read exactly these tables.

        If the task began again, on another worker for example, it read all tables again, and the
        row topics have rows of both runs. If a table is gone, or replaced, it was not read as
        asked.
        """
        return dict(self.tables) == {TableName(s.database, s.table): 1 for s in shards}

    def lacking(self, shards: Iterable[ShardId]) -> list[ShardId]:
        """The shards whose table no run has read. Such a table does not exist."""
        return [s for s in shards if not self.tables.get(TableName(s.database, s.table))]

    @property
    def rows_from_ms(self) -> int:
        """A time from which on the rows of the run were read, by the connector's clock.

        The position alone tells these rows from all others, since the binlog was moved before the
        reading. So this time may be early: it leaves room for a clock that is set back meanwhile.
        """
        return max(1, self.began_ms - _CLOCK_SLACK_MS)


def runs_of(values: Iterable[bytes | None]) -> Runs:
    """Read a reading's schema history.

    Args:
        values: Of all its records, in their order.

    Raises:
        ContractError: One is none of a schema history.
    """
    tables: Counter[TableName] = Counter()
    began_ms = 0
    try:
        for value in values:
            document = json.loads(value or b"{}")
            began_ms = began_ms or int(document.get("ts_ms") or 0)
            for change in document.get("tableChanges") or ():
                if change["type"] == "CREATE" and (name := named_table(change["id"])) is not None:
                    tables[TableName(*name)] += 1
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ContractError(f"not a schema history of Debezium: {error}", code="SM-2109") from error
    return Runs(tables, began_ms)
