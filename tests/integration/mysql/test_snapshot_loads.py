"""Snapshots of first loads on real servers, with a writer beside, and processes that are killed.

The stream is played by the binlog itself. It has the text of each statement, and every statement
writes the same whichever copy of the table it finds. So the snapshot's rows and the statements from
its position on must give the table.
"""

from __future__ import annotations

import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from shardmerge.connectors.sources.signal_table import prepare_signal_table
from shardmerge.local.servers.mysql import PASSWORD, USER
from shardmerge.schemas.ddl.apply.statements import apply_create
from shardmerge.schemas.ddl.changes import CreateTable
from shardmerge.schemas.ddl.grammar import parse
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.origin import OriginColumn, OriginPart
from shardmerge.schemas.model.position import BEGINNING, SourcePosition
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import Column
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.pipeline.server_differences import server_context
from shardmerge.schemas.pipeline.settings import Kafka, Pipeline, Source
from shardmerge.schemas.records.decisions import Binding
from shardmerge.spark_sink.loading.load_state import Load, LoadKind
from shardmerge.spark_sink.planning.chunk_orders import (
    ChunkEnd,
    ChunkFailure,
    ChunkOrder,
    ChunkResult,
)
from shardmerge.spark_sink.planning.ranges import Segment, ShardStream
from shardmerge.spark_sink.process.failpoints import SETTING
from shardmerge.spark_sink.sources import table_snapshot
from shardmerge.spark_sink.targets.mysql.control import ControlStore
from shardmerge.spark_sink.targets.mysql.load_store import LoadStore
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession
from shardmerge.spark_sink.targets.mysql.stage_store import StageStore
from shardmerge.spark_sink.targets.mysql.tasks.chunk_runs import copy_snapshot, run_chunks
from shardmerge.spark_sink.targets.mysql.tasks.connection import (
    ApplyConfig,
    close_connections,
    idle_connection,
)
from shardmerge.spark_sink.targets.mysql.tasks.staging import forget_stages
from tests.breadth import with_further

from . import snapshot_run
from .compared_line import S1, TARGET, connected, execute, pipeline
from .conftest import ROOT, source_server

FLAVOURS = {"mysql80": "", "mariadb1011": "source"}
CONTROL = "snapshot_control"
PLACE = OriginColumn(OriginPart.POSITION, "_place")
ROWS = 3_000


@dataclass(frozen=True)
class Kind:
    """A kind of table.

    Attributes:
        definition: Of the shard's table; the target's has the same, and ``extra``.
        statements: What the writer does; ``{n}`` and ``{m}`` are drawn numbers.
        extra: Further definitions of the target.
    """

    definition: str
    statements: tuple[str, ...]
    extra: str = ""


KEYLESS = Kind(
    "n INT, v VARCHAR(40) CHARACTER SET utf8mb4, d DECIMAL(10,3), b VARBINARY(8)",
    (
        "INSERT INTO {t} (n, v, d, b) VALUES ({n}, 'ä{m}', {m} / 7, UNHEX(HEX('\\0{m}')))",
        "INSERT INTO {t} (n) VALUES ({n})",
        "UPDATE {t} SET v = CONCAT(n, '-{m}') WHERE n = {n}",
        "DELETE FROM {t} WHERE n = {n}",
    ),
)
KINDS = {
    "without a key": KEYLESS,
    "with places": replace(KEYLESS, extra="_place VARCHAR(500) DEFAULT (UUID()) PRIMARY KEY"),
    # Of a route that ignores an operation: rows are copied by REPLACE.
    "with a key alone": Kind(
        "id INT PRIMARY KEY, v VARCHAR(40)",
        (
            "REPLACE INTO {t} VALUES ({n}, 'r{m}')",
            "UPDATE IGNORE {t} SET id = {m} WHERE id = {n}",
            "DELETE FROM {t} WHERE id = {n}",
        ),
    ),
    "with another unique key": Kind(
        "id INT PRIMARY KEY, u INT UNIQUE, v VARCHAR(40)",
        (
            "REPLACE INTO {t} VALUES ({n}, {m}, 'r{m}')",
            # A unique value moves to another row.
            "UPDATE {t} SET u = NULL WHERE u = {m}",
            "UPDATE IGNORE {t} SET u = {m}, v = 'moved' WHERE id = {n}",
            "UPDATE IGNORE {t} SET id = {m} WHERE id = {n}",
            "DELETE FROM {t} WHERE id = {n}",
        ),
    ),
}


@pytest.fixture(params=with_further(*FLAVOURS), scope="module")
def flavour(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def port(flavour: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a server that is source and target."""
    with source_server(flavour, tmp_path_factory.getbasetemp(), 902) as number:
        execute(number, "SET GLOBAL local_infile = 1")
        if flavour == "mysql80":
            execute(number, "SET GLOBAL binlog_rows_query_log_events = 1")
        yield number


@dataclass
class Line:
    """A shard, its target, and what a driver stores about its load."""

    port: int
    pipeline: Pipeline
    kind: Kind
    folder: Path
    config: ApplyConfig = field(init=False)
    epoch: int = 0

    def __post_init__(self) -> None:
        address = MySqlAddress("127.0.0.1", self.port, USER, PASSWORD)
        self.config = ApplyConfig(
            Kafka("127.0.0.1:1"), address, CONTROL, "compare", round_records=500
        )
        extra = f", {self.kind.extra}" if self.kind.extra else ""
        execute(
            self.port,
            f"DROP DATABASE IF EXISTS {CONTROL}",
            "DROP DATABASE IF EXISTS app",
            "DROP DATABASE IF EXISTS merged",
            "CREATE DATABASE app",
            "CREATE DATABASE merged",
            f"CREATE TABLE app.t_1 ({self.kind.definition})",
            f"CREATE TABLE merged.t ({self.kind.definition}{extra})",
        )
        prepare_signal_table(self.pipeline, self.source)
        self.session = MySqlSession(address)
        self.control = ControlStore(self.session, CONTROL, "compare")
        self.control.prepare()
        self.store = LoadStore(self.session, CONTROL, "compare")
        self.store.prepare()
        self.stages = StageStore(self.session, CONTROL, "compare")
        self.stages.prepare()
        self.load = Load(S1, TARGET, 1, LoadKind.SNAPSHOT, 1).plan()
        self.store.keep(None, self.load)
        self.new_driver()

    @property
    def source(self) -> Source:
        return self.pipeline.sources[0]

    def new_driver(self) -> None:
        """Another driver takes over, and gives the chunk out."""
        self.epoch = self.control.take_epoch()
        (stored,) = self.store.loads()
        self.store.keep(stored, begun := stored.give_all_back().begin(0))
        self.load = begun

    def order(self) -> ChunkOrder:
        context = server_context(self.source)
        statement = parse(f"CREATE TABLE t ({self.kind.definition})", context)
        assert isinstance(statement, CreateTable)
        table = apply_create(statement, context)
        key = () if table.primary_key is None else tuple(table.primary_key.columns)
        columns = [ShardColumn(f"{c.name}#1", c) for c in table.columns]
        if self.kind.extra:
            columns.append(ShardColumn(PLACE.column_id, Column("_place", ColumnType("varchar"))))
            key = ("_place",)
        bindings = {c.id: Binding(c.id, c.column.name) for c in columns}
        stream = ShardStream(S1, TARGET, (Segment(BEGINNING, tuple(columns), key),), None)
        (stored,) = self.store.loads()
        return ChunkOrder(
            replace(stored, chunks=()), stored.chunks[0], stream, bindings, "", 700, self.epoch,
            "shardmerge_compare_s1",
        )  # fmt: skip

    def read(self) -> ChunkResult | ChunkFailure:
        return next(run_chunks([self.order()], self.source, self.config))

    def copy(self) -> ChunkFailure | None:
        return copy_snapshot(self.order(), self.config)

    def killed(self, step: str, failpoint: str) -> None:
        """Run a step in a process that is killed on the way."""
        file = self.folder / "order"
        file.write_bytes(pickle.dumps((self.order(), self.source, self.config)))
        ended = subprocess.run(
            [sys.executable, "-m", snapshot_run.__name__, step, str(file)],
            env={**os.environ, "PYTHONSAFEPATH": "", SETTING: failpoint},
            cwd=ROOT,
            check=False,
        )
        assert ended.returncode == -signal.SIGKILL

    def rows(self, table: str) -> Counter[Any]:
        names = ", ".join(
            part.split()[0] for part in self.kind.definition.split(", ") if part[0].islower()
        )
        with connected(self.port) as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT {names} FROM {table}")
            return Counter(cursor.fetchall())

    def play_from(self, place: SourcePosition) -> int:
        """Run the binlog's statements about the shard from a position on, on the target."""
        found = []
        with connected(self.port) as connection, connection.cursor() as cursor:
            cursor.execute("SHOW BINARY LOGS")
            files = [str(row[0]) for row in cursor.fetchall()]
            for file in files[files.index(place.file) :]:
                start = f"FROM {place.pos}" if file == place.file else ""
                cursor.execute(f"SHOW BINLOG EVENTS IN '{file}' {start}")
                texts = [
                    str(row[5]).removeprefix("# ").strip()
                    for row in cursor.fetchall()
                    if row[2] in ("Rows_query", "Annotate_rows")
                ]
                found += [text for text in texts if " app.t_1 " in text and "merged" not in text]
            for text in found:
                cursor.execute(text.replace("app.t_1", "merged.t", 1))
        return len(found)


class Writer:
    """Writes to the shard, until it is told to end."""

    def __init__(self, line: Line, pause_s: float) -> None:
        self._line, self._pause_s = line, pause_s
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._write)
        self.count = 0

    def __enter__(self) -> Writer:
        self._thread.start()
        self.goes_on(20)
        return self

    def goes_on(self, statements: int) -> None:
        """Wait until it has executed so many more statements."""
        end = self.count + statements
        while self.count < end:
            assert self._thread.is_alive()
            time.sleep(0.01)

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()

    def _write(self) -> None:
        chance = random.Random(7)
        with connected(self._line.port) as connection, connection.cursor() as cursor:
            while not self._ends.is_set():
                text = chance.choice(self._line.kind.statements)
                numbers = {"n": chance.randrange(ROWS), "m": chance.randrange(ROWS)}
                cursor.execute(text.format(t="app.t_1", **numbers))
                self.count += 1
                if self._pause_s:
                    time.sleep(self._pause_s)


@pytest.fixture(params=KINDS)
def line(request: pytest.FixtureRequest, port: int, flavour: str, tmp_path: Path) -> Iterator[Line]:
    of = pipeline(port, port, maria=FLAVOURS[flavour])
    made = Line(port, of, KINDS[request.param], tmp_path)
    chance = random.Random(3)
    first = made.kind.statements[0]
    with connected(port) as connection, connection.cursor() as cursor:
        cursor.execute("BEGIN")
        for _ in range(ROWS):
            numbers = {"n": chance.randrange(ROWS), "m": chance.randrange(ROWS)}
            cursor.execute(first.format(t="app.t_1", **numbers))
        cursor.execute("COMMIT")
    yield made
    made.session.close()
    close_connections()


def test_a_snapshot_and_what_follows_it_give_the_table(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_lock(shard: ShardId) -> str:
        raise AssertionError("the table was locked")

    monkeypatch.setattr(table_snapshot, "lock_table", no_lock)
    # A busy machine may take longer for an attempt than the writer pauses.
    monkeypatch.setattr(table_snapshot, "_ATTEMPTS", 1_000)
    with Writer(line, 0.05) as writer:
        result = line.read()
        assert isinstance(result, ChunkResult) and result.end is ChunkEnd.DONE
        assert line.copy() is None
        writer.goes_on(25)
    assert result.read_before is not None
    assert sum(line.rows("merged.t").values()) > ROWS // 3
    with connected(line.port) as connection, connection.cursor() as cursor:
        if line.kind.extra:
            cursor.execute("SELECT COUNT(*) FROM merged.t WHERE _place NOT LIKE 's1/%.t_1:%'")
            assert cursor.fetchall() == ((0,),)
    assert line.play_from(result.read_before) > 0
    assert line.rows("merged.t") == line.rows("app.t_1")


def test_a_table_that_is_never_quiet_is_locked_for_a_moment(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_snapshot, "_ATTEMPTS", 0)
    with Writer(line, 0.0) as writer:
        result = line.read()
        assert isinstance(result, ChunkResult) and result.end is ChunkEnd.DONE
        # The lock is not held any more.
        writer.goes_on(60)
        assert line.copy() is None
    assert result.read_before is not None
    line.play_from(result.read_before)
    assert line.rows("merged.t") == line.rows("app.t_1")


def test_processes_that_are_killed_lose_nothing_and_double_nothing(line: Line) -> None:
    with Writer(line, 0.004):
        line.killed("read", "rows-staged:2")
        line.new_driver()
        result = line.read()
        assert isinstance(result, ChunkResult) and result.end is ChunkEnd.DONE
        stopped = copy_snapshot(line.order(), line.config, lambda: True)
        assert isinstance(stopped, ChunkFailure) and stopped.message == "the sink ends"
        assert not stopped.final and not line.rows("merged.t")
        line.killed("copy", "snapshot-copied:2")
        assert sum(line.rows("merged.t").values()) in range(1, 1001)
        assert line.copy() is None
    assert result.read_before is not None
    line.play_from(result.read_before)
    assert line.rows("merged.t") == line.rows("app.t_1")
    assert line.copy() is None
    assert line.rows("merged.t") == line.rows("app.t_1")
    current = line.stages.current(line.load)
    assert current is not None
    line.stages.drop([current[0]])
    failed = line.copy()
    assert isinstance(failed, ChunkFailure) and failed.code == "SM-1627"
    with idle_connection(line.config) as connection:
        forget_stages([line.load], connection)
    failed = line.copy()
    assert isinstance(failed, ChunkFailure) and failed.code == "SM-1627"
