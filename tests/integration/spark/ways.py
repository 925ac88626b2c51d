"""Plays each family of values through each way into a target, and tells which arrive otherwise.

A *way* is how a value comes: read by the first snapshot, read again by an incremental one,
inserted, left behind by an update, or taken along as part of a row without a key (the row before a
delete).
What counts is what the servers themselves show of a value (``exactness.Item.shown``).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic, sleep
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.connectors.debezium.signals import snapshot_signal
from shardmerge.connectors.debezium.source_config import connector_config
from shardmerge.connectors.kafka.registry import RegistryAddress
from shardmerge.connectors.kafka.topics_admin import create_topics
from shardmerge.connectors.sources.signal_table import prepare_signal_table
from shardmerge.local.servers.mysql import PASSWORD, USER
from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.position import BEGINNING
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.file import parse_pipeline
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.spark_sink.kafka.row_avro import row_format
from shardmerge.spark_sink.rows.values.column_values import UnfitValue
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession
from shardmerge.spark_sink.targets.mysql.tasks.connection import TaskConnection

from .exactness import FAMILIES, Item, definitions, insert, rows, shown
from .rig import Rig

SNAPSHOT, REREAD, INSERT, UPDATE, KEYLESS = WAYS = (
    "snapshot",
    "re-read",
    "insert",
    "update",
    "keyless",
)
KEY = "key"
_PATIENCE_S = 120


@dataclass(frozen=True, slots=True)
class Difference:
    """A value that the target shows otherwise than the source.

    Attributes:
        literal: As it was inserted.
        wanted, got: As the servers show it; of raw records, as Debezium wrote it.
    """

    way: str
    column: str
    literal: str
    wanted: object
    got: object


@dataclass(frozen=True, slots=True)
class SourceServer:
    """A server that is read."""

    port: int
    flavour: str = "mysql"
    version: str = "8.0.15"


class Line:
    """A source with a database of its own, and its connector; see the module.

    Args:
        stack: What it runs on.
        row_format: How the connector writes.
        families: Of ``exactness.FAMILIES``.
        exact: Whether the connector has the converter of exact values.
        server: The source's server; None: the stack's first one.
        only: Narrows a family to what the server has.
    """

    def __init__(
        self,
        stack: LocalStack,
        row_format: str,
        families: tuple[str, ...] = tuple(FAMILIES),
        *,
        exact: bool = True,
        server: SourceServer | None = None,
        only: Callable[[MySqlSession, Item], Item | None] | None = None,
    ) -> None:
        self.stack = stack
        self.server = server or SourceServer(stack.ports.source1)
        # Apicurio's converter loses a NULL in a column that has a default: its shard is held.
        left_out = {"d_e"} if row_format == "avro" else set()
        self.families = {
            name: tuple(item for item in FAMILIES[name] if item.column not in left_out)
            for name in families
        }
        number = len(os.listdir(stack.directory)) + int(monotonic() * 10) % 10_000
        self.name, self.database = f"w{number}", f"ways_{number}"
        address = MySqlAddress("127.0.0.1", self.server.port, USER, PASSWORD)
        self.session = MySqlSession(address)
        self.run(f"CREATE DATABASE {self.database} CHARACTER SET utf8mb4")
        # Values that only a lenient server takes belong to it.
        self.run("SET SESSION sql_mode = '', time_zone = '+00:00'")
        if only is not None:
            self.run(f"USE {self.database}")
            self.families = {
                name: tuple(
                    kept for item in items if (kept := only(self.session, item)) is not None
                )
                for name, items in self.families.items()
            }
        self.pipeline = self._pipeline(row_format, exact, 7000 + number)
        self.source = self.pipeline.sources[0]
        self.rest = ConnectRest(stack.connect_url)
        self._restarts = 0
        self.format = row_format_of(self.pipeline)

    def _pipeline(self, row_format: str, exact: bool, server_id: int) -> Pipeline:
        text = self.stack.pipeline_text(
            f"p-{self.name}",
            f'[[routes]]\ndatabase = "{self.database}"\ntable = ".*"\ntarget = "m.t"\n',
            row_format=row_format,
            schema_registry=self.stack.registry_url if row_format == "avro" else "",
        )
        pipeline = parse_pipeline(text, {})
        source = replace(
            pipeline.sources[0],
            name=self.name,
            databases=self.database,
            server_id=server_id,
            port=self.server.port,
            flavour=self.server.flavour,
            version=self.server.version,
        )
        connect = replace(pipeline.connect, exact_values=exact)
        return replace(pipeline, sources=(source,), connect=connect)

    def run(self, sql: str) -> None:
        """A statement on the source."""
        self.session.execute(sql)

    def start(self) -> None:
        """Start the connector: its snapshot reads what is there."""
        create_topics(self.stack.kafka, topics.own_topics(self.pipeline))
        prepare_signal_table(self.pipeline, self.source)
        name = connector_name(self.pipeline, self.source)
        self.rest.create_or_update(name, connector_config(self.pipeline, self.source))
        self.rest.wait_running(name, _PATIENCE_S)
        # A table that is made between its list of tables and its place in the binlog is in neither.
        for family, items in self.families.items():
            for table, times in (("snap", 1), ("less", 2)):
                self.records(f"{family}_{table}", times * len(rows(items)))

    def close(self) -> None:
        """End the connector, drop the database."""
        self.rest.delete(connector_name(self.pipeline, self.source))
        self.run(f"DROP DATABASE {self.database}")
        self.session.close()
        self.rest.close()

    def make(self, table: str, items: tuple[Item, ...], key: str = " PRIMARY KEY") -> None:
        """A table of these columns."""
        self.run(f"CREATE TABLE {self.database}.{table} ({definitions(items, key)})")

    def fill(self, table: str, items: tuple[Item, ...], first: int = 1) -> None:
        """All of their values."""
        for sql in insert(f"{self.database}.{table}", items, first):
            self.run(sql)

    def rig(self, table: str, columns: str) -> tuple[Rig, Any]:
        """A rig that reads the table, and the schema of its target."""
        rig = Rig.make(self.stack)
        rig.topic = f"{self.name}.{self.database}.{table}"
        rig.shard = ShardId(self.name, self.database, table)
        rig.config = replace(rig.config, registry=RegistryAddress.of(self.pipeline.kafka))
        rig.connection.close()
        rig.connection = TaskConnection(rig.config)
        return rig, rig.create(columns)

    def apply(self, rig: Rig, schema: Any, done: Callable[[Rig], bool]) -> None:
        """Apply until it is done."""
        deadline = monotonic() + _PATIENCE_S
        while True:
            try:
                if rig.end_offset() > rig.control.offsets().get(_first(rig), 0):
                    result = rig.apply(rig.segment(schema, BEGINNING))
                    assert result.hold is None, (rig.topic, result.hold)
                if done(rig):
                    return
            except KafkaException:
                # The connector makes the topic with its first row.
                pass
            self.check()
            assert monotonic() < deadline, (rig.topic, "rows did not come", rig.rows("COUNT(*)"))
            sleep(0.2)

    def check(self) -> None:
        """Restart a connector that failed, as the watchdog does; a value fails it again."""
        name = connector_name(self.pipeline, self.source)
        status = self.rest.status(name)
        if status is not None and status.is_failed:
            self._restarts += 1
            assert self._restarts < 5, status.reason(12)
            self.rest.restart_failed(name)
            sleep(1)

    def read_again(self, table: str) -> None:
        """Ask for an incremental snapshot."""
        shard = ShardId(self.name, self.database, table)
        key, value = snapshot_signal(f"again-{table}", shard)
        producer = Producer({"bootstrap.servers": self.stack.bootstrap_servers})
        producer.produce(topics.signals(self.pipeline).name, value, key=key)
        producer.flush()

    def records(self, table: str, count: int) -> list[Any]:
        """The first row records of a table, decoded as a whole."""
        topic = TopicPartition(f"{self.name}.{self.database}.{table}", 0, 0)
        consumer = Consumer(
            {
                "bootstrap.servers": self.stack.bootstrap_servers,
                "group.id": f"look-{self.name}",
                "enable.auto.commit": False,
            }
        )
        found: list[Any] = []
        deadline = monotonic() + _PATIENCE_S
        try:
            consumer.assign([topic])
            while len(found) < count:
                self.check()
                assert monotonic() < deadline, (table, len(found), count)
                message = consumer.poll(1.0)
                if message is not None and not message.error():
                    found.append(self.format.decode(message.value()))
        finally:
            consumer.close()
        return found

    def differences(self, way: str, table: str, rig: Rig, items: tuple[Item, ...]) -> list[Any]:
        """What the servers show otherwise of a table with ids."""
        select, count = shown(items), len(rows(items))
        wanted = self.session.query(f"SELECT {select} FROM {self.database}.{table} ORDER BY id")
        got = {row[0]: row for row in rig.rows(select)}
        assert got.keys() == {row[0] for row in wanted}, (way, table)
        found = []
        for row in wanted:
            literals = rows(items)[(int(row[0]) - 1) % count]
            for item, literal, a, b in zip(items, literals, row[1:], got[row[0]][1:], strict=True):
                if a != b:
                    found.append(Difference(way, item.column, literal, a, b))
        return found


def _first(rig: Rig) -> Any:
    from shardmerge.spark_sink.barrier.partitions import Partition

    return Partition(rig.topic, 0)


def row_format_of(pipeline: Pipeline) -> Any:
    """The format of a pipeline's rows."""
    return row_format(RegistryAddress.of(pipeline.kafka))


def count_is(number: int) -> Callable[[Rig], bool]:
    """Whether the target has so many rows."""
    return lambda rig: rig.rows("COUNT(*)") == [(number,)]


def before_start(line: Line) -> None:
    """What the snapshot is to find."""
    for family, items in line.families.items():
        line.make(f"{family}_snap", items)
        line.fill(f"{family}_snap", items)
        line.make(f"{family}_less", items, key="")
        line.fill(f"{family}_less", items)
        line.fill(f"{family}_less", items)


def after_start(line: Line) -> None:
    """What the binlog is to bring."""
    for family, items in line.families.items():
        every = rows(items)
        line.make(f"{family}_ins", items)
        line.fill(f"{family}_ins", items)
        line.make(f"{family}_upd", items)
        # Each row gets the values of the row of its own id by an update.
        for n in range(len(every)):
            other = every[(n + 1) % len(every)]
            line.run(
                f"INSERT INTO {line.database}.{family}_upd VALUES ({n + 1}, {', '.join(other)})"
            )
        for n, row in enumerate(every):
            changes = ", ".join(
                f"`{item.column}` = {literal}" for item, literal in zip(items, row, strict=True)
            )
            line.run(f"UPDATE {line.database}.{family}_upd SET {changes} WHERE id = {n + 1}")
        # The row before a delete must be, byte for byte, the row that the snapshot read.
        for n in range(len(every)):
            line.run(f"DELETE FROM {line.database}.{family}_less WHERE id = {n + 1} LIMIT 1")


def snapshot_and_binlog(line: Line, family: str, schema: Any) -> Iterator[Difference]:
    """Values that the binlog's row before a delete has otherwise than the snapshot's row.

    What counts is what conversion makes of them.
    """
    items = line.families[family]
    every = rows(items)
    records = line.records(f"{family}_less", 3 * len(every))
    read = {r.image["id"]: r.image for r in records if r.op == "r"}
    names = {item.column: line.format.image_names(item.column)[0] for item in items}
    types = {column.name: column.type for column in schema.columns}
    cell: dict[str, Callable[[Any], object]] = {
        item.column: partial(_cell, line.format.reader, types[item.column]) for item in items
    }
    for record in records:
        if record.op != "d":
            continue
        number = record.image["id"]
        for item, literal in zip(items, every[number - 1], strict=True):
            name = names[item.column]
            a, b = read[number][name], record.image[name]
            if cell[item.column](a) != cell[item.column](b):
                yield Difference(KEYLESS, item.column, literal, a, b)


def _cell(reader: Callable[[Any], Any], kind: Any, value: object) -> object:
    try:
        return [*reader(kind).read([value])]
    except UnfitValue as error:
        return error.message


def played(line: Line, family: str) -> list[Difference]:
    """All differences of a family, over all ways but that of a key."""
    items = line.families[family]
    count = len(rows(items))
    found: list[Difference] = []
    columns = definitions(items)
    rig, schema = line.rig(f"{family}_snap", columns)
    line.apply(rig, schema, count_is(count))
    found += line.differences(SNAPSHOT, f"{family}_snap", rig, items)
    rig.session.execute(f"DELETE FROM {rig.target.sql}")
    line.read_again(f"{family}_snap")
    line.apply(rig, schema, count_is(count))
    found += line.differences(REREAD, f"{family}_snap", rig, items)
    rig.close()
    rig, schema = line.rig(f"{family}_ins", columns)
    line.apply(rig, schema, count_is(count))
    found += line.differences(INSERT, f"{family}_ins", rig, items)
    rig.close()
    found += updated(line, family)
    found += snapshot_and_binlog(line, family, schema)
    return found


def updated(line: Line, family: str) -> list[Difference]:
    """The differences of a family's rows after their updates, which are applied to a new table."""
    items = line.families[family]
    count = len(rows(items))
    rig, schema = line.rig(f"{family}_upd", definitions(items))
    line.records(f"{family}_upd", 2 * count)
    line.apply(rig, schema, count_is(count))
    found: list[Difference] = line.differences(UPDATE, f"{family}_upd", rig, items)
    rig.close()
    return found


@dataclass(frozen=True, slots=True)
class _KeyTable:
    """A table whose primary key is of one type, and what reads it.

    Attributes:
        numbered: The source's keys by their numbers, as SQL.
        literals: The keys as they were inserted, by number.
    """

    item: Item
    name: str
    numbered: str
    literals: list[str]
    rig: Rig
    schema: Any

    @property
    def shown(self) -> str:
        return self.item.shown.format(f"`{self.item.column}`")

    def apply(self, line: Line, wanted: dict[int, object]) -> None:
        """Apply until the target has these numbers."""
        rows_of = partial(_shown_by_number, self.shown)
        line.apply(self.rig, self.schema, partial(_has_keys, rows_of, wanted))


def played_as_keys(line: Line, family: str) -> list[Difference]:
    """Differences of values that are primary keys: inserted, half of them changed or deleted.

    All tables get their rows before any is applied: one wait for the connector is enough for all.
    """
    tables = [_key_table(line, family, *numbered) for numbered in enumerate(_keys(line, family))]
    # The changes must find the keys in the target, so they are not in the batch of the inserts.
    for table in tables:
        table.apply(line, dict(line.session.query(table.numbered)))
    for table in tables:
        line.run(f"UPDATE {table.name} SET n = -n WHERE n % 3 = 1")
        line.run(f"DELETE FROM {table.name} WHERE n % 3 = 2")
    found: list[Difference] = []
    for table in tables:
        wanted = dict(line.session.query(table.numbered))
        table.apply(line, wanted)
        got = _shown_by_number(table.shown, table.rig)
        found += [
            Difference(KEY, table.item.column, table.literals[abs(n)], value, got[n])
            for n, value in wanted.items()
            if got[n] != value
        ]
        table.rig.close()
    return found


def _keys(line: Line, family: str) -> list[Item]:
    return [i for i in line.families[family] if i.is_key and "DEFAULT" not in i.definition]


def _key_table(line: Line, family: str, number: int, item: Item) -> _KeyTable:
    """Make the table and insert its rows."""
    table, name = f"key_{family}_{number}", f"`{item.column}`"
    kind = item.definition.removesuffix(" NULL").removesuffix(" NOT")
    columns = f"{name} {kind} NOT NULL PRIMARY KEY, n INT"
    whole = f"{line.database}.{table}"
    line.run(f"CREATE TABLE {whole} ({columns})")
    literals = [literal for literal in item.literals if literal != "NULL"]
    for n, literal in enumerate(literals):
        line.run(f"INSERT IGNORE INTO {whole} VALUES ({literal}, {n})")
    numbered = f"SELECT n, {item.shown.format(name)} FROM {whole} ORDER BY n"
    rig, schema = line.rig(table, columns)
    return _KeyTable(item, whole, numbered, literals, rig, schema)


def _has_keys(
    rows_of: Callable[[Rig], dict[int, object]], wanted: dict[int, object], rig: Rig
) -> bool:
    return rows_of(rig).keys() == wanted.keys()


def _shown_by_number(column: str, rig: Rig) -> dict[int, object]:
    return dict(rig.session.query(f"SELECT n, {column} FROM {rig.target.sql} ORDER BY n"))


def matrix(items: tuple[Item, ...], found: list[Difference]) -> str:
    """A line per type: how many of its values differ, by way."""
    counts = Counter((d.column, d.way) for d in found)
    lines = [f"{'':24}" + "".join(f"{way:>10}" for way in WAYS)]
    for item in items:
        cells = "".join(f"{counts[item.column, way] or 'exact':>10}" for way in WAYS)
        lines.append(f"{item.column[:23]:24}{cells}  {item.definition[:50]}")
    return "\n".join(lines)
