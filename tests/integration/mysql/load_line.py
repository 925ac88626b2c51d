"""A shard on a real server that is loaded into a target on the same or another real server.

What a driver does is played: it stores the load, gives chunks out, and has them run.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import pymysql
from pymysql.cursors import Cursor

from shardmerge.connectors.access.mysql import connect
from shardmerge.connectors.sources.signal_table import prepare_signal_table
from shardmerge.schemas.ddl.apply.statements import apply_create
from shardmerge.schemas.ddl.changes import CreateTable
from shardmerge.schemas.ddl.grammar import parse
from shardmerge.schemas.model.position import BEGINNING
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.pipeline.server_differences import server_context
from shardmerge.schemas.pipeline.settings import Kafka, Pipeline, Source
from shardmerge.schemas.records.decisions import Binding
from shardmerge.spark_sink.loading.load_state import Load, LoadKind
from shardmerge.spark_sink.planning.chunk_orders import ChunkFailure, ChunkOrder, ChunkResult
from shardmerge.spark_sink.planning.ranges import Segment, ShardStream
from shardmerge.spark_sink.sources.idle_readers import close_readers
from shardmerge.spark_sink.targets.mysql.control import ControlStore
from shardmerge.spark_sink.targets.mysql.load_store import LoadStore
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession
from shardmerge.spark_sink.targets.mysql.stage_store import StageStore
from shardmerge.spark_sink.targets.mysql.tasks.chunk_runs import copy_snapshot, run_chunks
from shardmerge.spark_sink.targets.mysql.tasks.connection import ApplyConfig, close_connections

from .compared_line import S1, TARGET

CONTROL = "load_control"
ROWS = 4_000
KEYED = (
    "id INT PRIMARY KEY, v VARCHAR(40) CHARACTER SET utf8mb4, d DECIMAL(20,3), f DOUBLE,"
    " at DATETIME(3), b VARBINARY(8), y YEAR"
)
KEYLESS = KEYED.replace("INT PRIMARY KEY", "INT")
UNIQUE = KEYED.replace("d DECIMAL(20,3)", "d DECIMAL(20,3) UNIQUE")


@dataclass
class LoadLine:
    """A shard with rows, its empty target, and the load that is stored there.

    Args:
        pipeline: Its first source has the shard.
        target: The target's server.
        definition: Of both tables.
        kind: How the shard is read.
        fill: Statements that fill the shard, in place of 4,000 rows.
    """

    pipeline: Pipeline
    target: MySqlAddress
    definition: str = KEYED
    kind: LoadKind = LoadKind.CHUNKS
    fill: tuple[str, ...] = ()
    epoch: int = field(init=False)

    def __post_init__(self) -> None:
        self.config = ApplyConfig(
            Kafka("127.0.0.1:1"), self.target, CONTROL, "loads", round_records=500
        )
        self.session = MySqlSession(self.target)
        self.in_target(
            f"DROP DATABASE IF EXISTS {CONTROL}",
            "DROP DATABASE IF EXISTS merged",
            "CREATE DATABASE merged",
            f"CREATE TABLE merged.t ({self.definition})",
        )
        numbers = ", ".join(
            f"({n}, 'ä{n % 7}', {n}.125, {n} / 3e0, '2024-02-29 00:00:00.125' + INTERVAL {n}"
            f" SECOND, UNHEX(HEX({n})), 1999)"
            for n in range(1, ROWS + 1)
        )
        self.in_source(
            "DROP DATABASE IF EXISTS app",
            "CREATE DATABASE app",
            f"CREATE TABLE app.t_1 ({self.definition})",
            *(self.fill or (f"INSERT INTO app.t_1 VALUES {numbers}",)),
        )
        prepare_signal_table(self.pipeline, self.source)
        self.control = ControlStore(self.session, CONTROL, "loads")
        self.control.prepare()
        self.store = LoadStore(self.session, CONTROL, "loads")
        self.store.prepare()
        StageStore(self.session, CONTROL, "loads").prepare()
        load = Load(S1, TARGET, 1, self.kind, 1)
        cuts = ("1000",), ("2500",)
        self.store.keep(None, load.plan(*cuts) if self.kind is LoadKind.CHUNKS else load.plan())
        self.epoch = self.control.take_epoch()

    @property
    def source(self) -> Source:
        return self.pipeline.sources[0]

    @property
    def load(self) -> Load:
        """As it is stored."""
        (stored,) = self.store.loads()
        return stored

    def read_from(self, **changes: Any) -> None:
        """Change the source in the pipeline file."""
        sources = (replace(self.source, **changes), *self.pipeline.sources[1:])
        self.pipeline = replace(self.pipeline, sources=sources)

    def step(self, after: Load) -> None:
        """The driver stores a step."""
        self.store.keep(self.load, after)

    def order(self, number: int) -> ChunkOrder:
        """For a chunk that is given out."""
        context = server_context(self.source)
        statement = parse(f"CREATE TABLE t ({self.definition})", context)
        assert isinstance(statement, CreateTable)
        table = apply_create(statement, context)
        key = () if table.primary_key is None else tuple(table.primary_key.columns)
        columns = tuple(ShardColumn(f"{c.name}#1", c) for c in table.columns)
        bindings = {
            c.id: Binding(c.id, c.column.name, writable=c.column.generated is None) for c in columns
        }
        stream = ShardStream(S1, TARGET, (Segment(BEGINNING, columns, key),), None)
        load = self.load
        return ChunkOrder(
            replace(load, chunks=()), load.chunks[number], stream, bindings, "", 3_000, self.epoch,
            f"shardmerge_{self.pipeline.name}_s1",
        )  # fmt: skip

    def run(self, order: ChunkOrder) -> ChunkResult | ChunkFailure:
        return next(run_chunks([order], self.source, self.config))

    def run_next(self, number: int = 0) -> ChunkResult | ChunkFailure:
        """Give a chunk out, and run it."""
        self.step(self.load.begin(number))
        return self.run(self.order(number))

    def copy(self) -> ChunkFailure | None:
        return copy_snapshot(self.order(0), self.config)

    def in_source(self, *statements: str) -> None:
        with _connected(self.source) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def in_target(self, *statements: str) -> None:
        for statement in statements:
            self.session.execute(statement)

    def rows(self) -> tuple[Counter[Any], Counter[Any]]:
        """The rows of the shard, and those of the target."""
        with _connected(self.source) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT * FROM app.t_1")
            of_shard = Counter(cursor.fetchall())
        with pymysql.connect(
            host=self.target.host, port=self.target.port, user=self.target.user,
            password=self.target.password, charset="utf8mb4", ssl_disabled=True,
        ) as connection, connection.cursor() as cursor:  # fmt: skip
            cursor.execute("SELECT * FROM merged.t")
            return of_shard, Counter(cursor.fetchall())

    def close(self) -> None:
        self.session.close()
        close_connections()
        close_readers()


def _connected(source: Source) -> pymysql.connections.Connection[Cursor]:
    return connect(source, charset="utf8mb4", autocommit=True)
