"""What the contract tests of targets stand on: a pipeline on one kind of target, and its rows."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from pyspark import SparkContext
from pyspark.sql import SparkSession

from shardmerge.local.install.iceberg import iceberg_runtime
from shardmerge.local.servers.mysql import PASSWORD, USER
from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.model.names import ShardId, TargetTable, quote_identifier
from shardmerge.schemas.model.origin import Origin, OriginColumn, OriginPart
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.model.tables import Column, TableSchema
from shardmerge.schemas.pipeline.settings import Connect, Kafka, Pipeline, Sink, Source
from shardmerge.schemas.pipeline.settings import Target as Settings
from shardmerge.schemas.pipeline.spark_catalog import SparkCatalog
from shardmerge.schemas.records.decisions import TargetStatement
from shardmerge.schemas.target.dialects.dialects import dialect_of
from shardmerge.schemas.target.row_statements import filling, removal
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.planning.ranges import (
    Advance,
    RangeResult,
    RangeTask,
    Segment,
    TaskFailure,
)
from shardmerge.spark_sink.process.settings import SinkSettings
from shardmerge.spark_sink.process.spark_session import SparkStart, start_spark
from shardmerge.spark_sink.targets.iceberg.fold import close_readers
from shardmerge.spark_sink.targets.iceberg.tables import IcebergCatalog
from shardmerge.spark_sink.targets.iceberg.target import IcebergTarget, spark_conf
from shardmerge.spark_sink.targets.interface import JournalEntry, Target
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession
from shardmerge.spark_sink.targets.mysql.target import MySqlTarget
from shardmerge.spark_sink.targets.mysql.tasks.connection import close_connections
from tests.strategies import table
from tests.target_statements import NO_REASON, written

from .rig import Rig

_numbers = itertools.count()
ROOT = Path(__file__).resolve().parents[3]
TIDB = os.environ.get("SHARDMERGE_TIDB", "")
"""``USER:PASSWORD@HOST:PORT/VERSION`` of a TiDB: it is held against the contract too."""
ORIGIN = Origin((OriginColumn(OriginPart.SHARD, "_s"),))
"""Whose rows are whose, where a table has this column."""


class Kind(Protocol):
    """One kind of target that runs."""

    def settings(self, control_database: str) -> Settings:
        """``[target]`` of a pipeline."""
        ...

    def open(self, pipeline: Pipeline) -> Target:
        """The target, as a process that starts has it."""
        ...

    def rows(self, name: TargetTable) -> list[tuple[Any, ...]]:
        """A table's rows, by their first column."""
        ...

    def columns(self, name: TargetTable) -> list[str]:
        """Its columns' names."""
        ...

    def execute(self, sql: str) -> None:
        """Somebody else's statement; ``TABLE`` would be ambiguous, so names are full."""
        ...

    def clean(self, databases: Sequence[str]) -> None:
        """Drop databases."""
        ...


class MySqlKind:
    """A server of MySQL's kind.

    Args:
        port: On 127.0.0.1, unless ``address`` says where it is.
        kind: Of ``[target]``.
        version: The same.
        address: Of a server that somebody else runs.
    """

    def __init__(
        self,
        port: int,
        kind: str = "mysql",
        version: str = "8.0.15",
        address: MySqlAddress | None = None,
    ) -> None:
        self.address = address or MySqlAddress("127.0.0.1", port, USER, PASSWORD)
        self._kind, self._version = kind, version
        self.session = MySqlSession(self.address)

    def settings(self, control_database: str) -> Settings:
        place = self.address
        server = (place.host, place.port, place.user, place.password)
        return Settings(*server, control_database, self._kind, self._version)

    def open(self, pipeline: Pipeline) -> Target:
        return MySqlTarget(SinkSettings(Path()), pipeline)

    def rows(self, name: TargetTable) -> list[tuple[Any, ...]]:
        return self.session.query(f"SELECT * FROM {name.sql} ORDER BY 1")

    def columns(self, name: TargetTable) -> list[str]:
        return [row[0] for row in self.session.query(f"SHOW COLUMNS FROM {name.sql}")]

    def execute(self, sql: str) -> None:
        self.session.execute(sql)

    def clean(self, databases: Sequence[str]) -> None:
        close_connections()
        for database in databases:
            self.session.execute(f"DROP DATABASE IF EXISTS {quote_identifier(database)}")
        self.session.close()


class IcebergKind:
    """Iceberg tables in a folder; every pipeline shares one Spark session."""

    def __init__(self, warehouse: Path) -> None:
        self.catalog = SparkCatalog("lake", (("type", "hadoop"), ("warehouse", str(warehouse))))
        self.jar = str(iceberg_runtime(ROOT / ".local" / "cache"))
        self._settings = SinkSettings(Path(), jars=self.jar)
        conf = spark_conf(self.catalog, self._settings, "1.12.0")
        end_jvm()
        self.spark = SparkStart(lambda: start_spark(self._settings, conf), "Iceberg")

    @property
    def session(self) -> SparkSession:
        return self.spark.session()

    def settings(self, control_database: str) -> Settings:
        return Settings("", 0, "", "", control_database, "iceberg", "1.12.0", catalog=self.catalog)

    def open(self, pipeline: Pipeline) -> Target:
        return IcebergTarget(self._settings, pipeline, self.spark)

    def rows(self, name: TargetTable) -> list[tuple[Any, ...]]:
        rows = self.session.sql(f"SELECT * FROM lake.{name.sql} ORDER BY 1").collect()
        return [tuple(row) for row in rows]

    def columns(self, name: TargetTable) -> list[str]:
        return list(self.session.table(f"lake.{name.sql}").columns)

    def execute(self, sql: str) -> None:
        self.session.sql(sql)

    def iceberg(self) -> IcebergCatalog:
        return IcebergCatalog(self.session, "lake")

    def clean(self, databases: Sequence[str]) -> None:
        close_readers()


def end_jvm() -> None:
    """End the JVM that earlier tests left: it was started without Iceberg's jar."""
    session = SparkSession.getActiveSession()
    if session is not None:
        session.stop()
    gateway, SparkContext._gateway, SparkContext._jvm = SparkContext._gateway, None, None
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()


class Contract:
    """One pipeline with one shard and one target table.

    Attributes:
        target: The table.
        schema: The shard's, as the table has it at first.
        topic: Makes the shard's records.
    """

    def __init__(self, kind: Kind, stack: LocalStack, name: str = "", ddl: str = "") -> None:
        self.kind = kind
        self.name = name or f"contract{os.getpid()}x{next(_numbers)}"
        self.topic = Rig(stack, self.name)
        self.shard, self.target = self.topic.shard, self.topic.target
        self.schema: TableSchema = table(
            ddl or "create table t (id int not null primary key, v varchar(20), n int not null)"
        )
        settings = kind.settings(f"{self.name}_control")
        self._dialect = dialect_of(settings.kind, settings.version)
        source = Source(self.shard.source, "127.0.0.1", stack.ports.source1, USER, PASSWORD, 1)
        self.pipeline = Pipeline(
            self.name,
            Kafka(stack.bootstrap_servers),
            Connect(stack.connect_url),
            (replace(source, snapshot="debezium"),),
            (),
            settings,
            Sink(retry_interval_s=1, lock_wait_timeout_s=5),
        )

    def clean(self) -> None:
        self.kind.clean([self.name, f"{self.name}_control"])

    def start(self) -> Writer:
        """A writer that takes over, as a process that starts."""
        target = self.kind.open(self.pipeline)
        target.state.prepare()
        return Writer(self, target, target.state.take_epoch())

    # --- statements, as decisions hold them

    def create(self) -> str:
        return self._only(self._dialect.create_table(self.target, self.schema))

    def add(self, definition: str) -> str:
        [column] = table(f"create table t ({definition})").columns
        return self._only(self._dialect.add_column(self.target, column))

    def drop(self, name: str) -> str:
        return self._only(self._dialect.drop_column(self.target, self._column(name)))

    def rename(self, name: str, to: str) -> str:
        return self._only(self._dialect.rename_column(self.target, self._column(name), to))

    def widen(self, name: str, definition: str) -> str:
        [after] = table(f"create table t ({definition})").columns
        before = self._column(name)
        texts = self._dialect.change_column(self.target, before, after, in_key=False)
        return self._only(texts)

    def remove(self, shard: ShardId) -> TargetStatement:
        return removal(self.target, shard, ORIGIN, NO_REASON)

    def fill(self, shard: ShardId, **fills: str) -> TargetStatement:
        """Values as ``fill_text`` tells them."""
        values = []
        for name, fill in fills.items():
            column = self._column(name)
            literal = self._dialect.row_value(fill, column)
            assert literal is not None
            values.append((column, literal))
        return filling(self.target, shard, ORIGIN, values, NO_REASON, dialect=self._dialect)

    def _column(self, name: str) -> Column:
        found = self.schema.column(name)
        return found or Column(name, self.schema.columns[1].type, nullable=True)

    def _only(self, texts: Any) -> str:
        [one] = texts
        return str(one.sql)

    # --- records

    def insert(self, **image: Any) -> bytes:
        return self.topic.event("c", image)

    def delete(self, **image: Any) -> bytes:
        return self.topic.event("d", image)

    def truncation(self) -> bytes:
        """The event of a TRUNCATE TABLE."""
        record = json.loads(self.topic.event("t", {}))
        del record["after"]
        return json.dumps(record).encode()

    def rows(self) -> list[tuple[Any, ...]]:
        return self.kind.rows(self.target)

    def columns(self) -> list[str]:
        return self.kind.columns(self.target)


class Writer:
    """A driver's half: an epoch, a journal, batches."""

    def __init__(self, contract: Contract, target: Target, epoch: int) -> None:
        self.contract, self.target, self.epoch = contract, target, epoch
        self.journal = target.journal(epoch)

    def execute(self, version: int, sql: str) -> JournalEntry:
        return self.change(version, written(sql))

    def change(self, version: int, statement: TargetStatement) -> JournalEntry:
        return self.journal.execute(self.contract.target, version, 0, statement)

    def move(self, *moves: tuple[int, int, int]) -> None:
        """Move offsets: partition, from, to."""
        topic, target = self.contract.topic.topic, self.contract.target
        self.target.state.move(
            self.epoch, [Advance(topic, *move, target, 0, 0, 0) for move in moves]
        )

    def task(self, *segments: Segment, stop: SourcePosition | None = None) -> RangeTask:
        """From the stored offset to the topic's end."""
        topic = self.contract.topic
        start = self.target.state.offsets().get(Partition(topic.topic, 0), 0)
        segments = segments or (topic.segment(self.contract.schema),)
        task = topic.task(*segments, stop=stop, start=start)
        return replace(task, writer_epoch=self.epoch)

    def run(self, *tasks: RangeTask) -> list[RangeResult | TaskFailure]:
        return list(self.target.batches.run(tasks, lambda: True))

    def apply(self, *segments: Segment, stop: SourcePosition | None = None) -> RangeResult:
        [result] = self.run(self.task(*segments, stop=stop))
        assert isinstance(result, RangeResult), result
        return result
