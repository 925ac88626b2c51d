"""First loads into an Iceberg table: chunks on real servers, then a line with writes and a kill."""

from __future__ import annotations

import os
import pickle
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from shardmerge.cli.loads.again import command_for
from shardmerge.local.servers.mysql import PASSWORD, USER
from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.pipeline.settings import Source
from shardmerge.schemas.records.decisions import Binding
from shardmerge.spark_sink.loading.load_estimate import rows_of
from shardmerge.spark_sink.loading.load_state import ChunkState, Load, LoadKind
from shardmerge.spark_sink.planning.chunk_orders import (
    ChunkEnd,
    ChunkFailure,
    ChunkOrder,
    ChunkResult,
)
from shardmerge.spark_sink.planning.ranges import Segment, ShardStream
from shardmerge.spark_sink.process.failpoints import SETTING
from shardmerge.spark_sink.process.settings import JARS
from shardmerge.spark_sink.targets.load_interface import Loads
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession
from tests.background import Background
from tests.running import with_tests

from .contract import Contract, IcebergKind, Writer
from .iceberg_line import ReadLine

# py4j leaves sockets to the collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
ROWS = 2_000
PATIENCE_S = 600.0


@pytest.fixture
def shards(stack: LocalStack) -> Iterator[MySqlSession]:
    """Two tables of a source with rows, in a database of their own."""
    session = MySqlSession(MySqlAddress("127.0.0.1", stack.ports.source1, USER, PASSWORD))
    session.execute("CREATE DATABASE lake_loads")
    session.execute("USE lake_loads")
    session.execute("SET SESSION cte_max_recursion_depth = 1000000")
    for number in (1, 2):
        session.execute(
            f"CREATE TABLE t{number} (id VARCHAR(12) PRIMARY KEY, n INT, v VARCHAR(30),"
            " d DECIMAL(12,3), at DATETIME(3), b VARBINARY(8))"
        )
        session.execute(
            f"INSERT INTO t{number} WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i"
            f" WHERE n < {ROWS}) SELECT CONCAT('{number}-', n), n % 97, CONCAT('ä', n), n / 7,"
            " '2024-02-29 00:00:00.125' + INTERVAL n SECOND, UNHEX(HEX(n)) FROM i"
        )
    yield session
    session.execute("DROP DATABASE lake_loads")
    session.close()


class ChunkLine:
    """A shard with three chunks of a load, without a driver."""

    def __init__(self, contract: Contract, writer: Writer, source: Source) -> None:
        self._contract, self._source = contract, source
        self.take_over(writer)
        self._shard = ShardId(source.name, "lake_loads", "c")
        load = Load(self._shard, contract.target, 1, LoadKind.CHUNKS, 1)
        self.loads.keep(writer.epoch, [(None, load)])
        self.step(load.plan(("1000",), ("2000",)))

    def take_over(self, writer: Writer) -> None:
        self.loads: Loads = writer.target.loads
        self._writer = writer

    @property
    def load(self) -> Load:
        [stored] = self.loads.loads()
        return stored

    def step(self, after: Load) -> None:
        self.loads.keep(self._writer.epoch, [(self.load, after)])

    def order(self, number: int) -> ChunkOrder:
        schema = self._contract.schema
        columns = tuple(ShardColumn(f"{c.name}#1", c) for c in schema.columns)
        bindings = {c.id: Binding(c.id, c.column.name) for c in columns}
        segment = Segment(self._contract.topic.next_place(), columns, ("id",))
        stream = ShardStream(self._shard, self._contract.target, (segment,), None)
        load = self.load
        return ChunkOrder(
            replace(load, chunks=()), load.chunks[number], stream, bindings, "", 5_000,
            self._writer.epoch,
        )  # fmt: skip

    def run(self, order: ChunkOrder, *, small: bool = False) -> ChunkResult | ChunkFailure:
        return self.loads.run(order, self._source, small=small)

    def run_next(self, number: int, *, small: bool = False) -> ChunkEnd:
        self.step(self.load.begin(number))
        result = self.run(self.order(number), small=small)
        assert isinstance(result, ChunkResult), result
        return result.end


def test_chunks_come_into_an_iceberg_table(contract: Contract, shards: MySqlSession) -> None:
    """One is late, one is of an older base, one was given out by a writer that is gone."""
    shards.execute("CREATE TABLE c (id INT NOT NULL PRIMARY KEY, v VARCHAR(20), n INT NOT NULL)")
    shards.execute(
        "INSERT INTO c WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i"
        " WHERE n < 3000) SELECT n, CONCAT('ä', n % 7), n FROM i"
    )

    def of_shard() -> list[tuple[Any, ...]]:
        return list(shards.query("SELECT id, v, n FROM c ORDER BY id"))

    writer = contract.start()
    source = replace(contract.pipeline.sources[0], snapshot="spark")
    line = ChunkLine(contract, writer, source)
    # The load was stored before the table was there.
    assert not line.load.has_begun
    writer.execute(1, contract.create())

    assert line.run_next(0) is ChunkEnd.DONE
    assert contract.rows() == of_shard()[:1_000]
    line.step(line.load.begin(1))
    late = line.order(1)
    before = line.load.chunks[0].read_before
    assert before is not None
    line.step(line.load.move(2, before))
    result = line.run(late)
    assert isinstance(result, ChunkResult) and result.end is ChunkEnd.REFUSED
    assert line.run_next(1, small=True) is ChunkEnd.DONE
    # The driver stores another step before it has taken that result.
    known = line.load.give_back(1).begin(1)
    line.loads.keep(writer.epoch, [(known, known.begin(2))])
    assert line.load.chunks[1].state is ChunkState.DONE
    assert line.run_next(2) is ChunkEnd.DONE
    assert contract.rows() == of_shard()

    # A chunk that is read again writes its rows over those that are there.
    shards.execute("UPDATE c SET v = 'new' WHERE id <= 10")
    line.step(line.load.give_back(0).begin(0))
    given = line.order(0)
    later = contract.start()
    failed = line.run(given)
    assert isinstance(failed, ChunkFailure) and failed.final and failed.code == "SM-3103"
    line.take_over(later)
    assert line.run_next(0) is ChunkEnd.DONE
    assert contract.rows() == of_shard()
    line.step(line.load.proven())
    assert (len(line.load.chunks), rows_of(line.load)) == (1, 3_000)


class Traffic(Background):
    """Writes to both shards until it is told to end."""

    def __init__(self, address: MySqlAddress) -> None:
        self._address = address
        self.written = 0
        super().__init__(self._write)

    def _write(self) -> None:
        chance = random.Random(5)
        session = MySqlSession(self._address)
        while not self.ends.wait(0.03):
            number, n = chance.choice((1, 2)), chance.randrange(1, ROWS + 1)
            key, table = f"{number}-{n}", f"lake_loads.t{number}"
            session.execute(
                chance.choice(
                    (
                        f"UPDATE {table} SET n = n + 1, v = 'changed' WHERE id = '{key}'",
                        f"DELETE FROM {table} WHERE id = '{key}'",
                        f"REPLACE INTO {table} (id, n, v) VALUES ('{key}', 5, NULL)",
                        f"UPDATE IGNORE {table} SET id = '{key}x{n % 9}' WHERE id = '{key}'",
                    )
                )
            )
            self.written += 1
        session.close()


def killed_sink(line: ReadLine, folder: Path, decide: Callable[[], None]) -> None:
    """A sink in a process of its own; it dies between the MERGE of a chunk and its commit."""
    pickled = folder / "pipeline"
    pickled.write_bytes(pickle.dumps(line.pipeline))
    command = [sys.executable, "-m", "tests.integration.spark.played_sink", str(pickled), "--spark"]
    env = {**with_tests(), SETTING: "chunk-written:4", JARS: line.kind.jar}
    with (folder / "sink.log").open("wb") as log:
        process = subprocess.Popen(command, env=env, stdout=log, stderr=log)
        deadline = monotonic() + PATIENCE_S
        try:
            while process.poll() is None:
                decide()
                assert monotonic() < deadline, (folder / "sink.log").read_text()[-2_000:]
                sleep(0.2)
        finally:
            process.kill()
            process.wait()
    assert process.returncode == -9, (folder / "sink.log").read_text()[-2_000:]


def load_again(line: ReadLine, moves: Callable[[], bool], loads: Loads, before: Load) -> None:
    """One shard's rows come anew, after somebody has changed them by hand."""
    name, shard = f"lake.{line.pipeline.name}.t", before.shard
    # The sink rests, and its session stages nothing now.
    line.kind.execute(f"UPDATE {name} SET v = 'wrong' WHERE _s = '{shard}'")
    line.kind.execute(f"INSERT INTO {name} (id, _s) VALUES ('stray', '{shard}')")
    line.command(command_for(line.pipeline, shard, by="olga"))
    deadline = monotonic() + PATIENCE_S
    while True:
        moves()
        [load] = [each for each in loads.loads() if each.shard == shard]
        if load.version > before.version and load.is_complete:
            return
        assert monotonic() < deadline, load


@pytest.mark.timeout(2400)  # with a start of Spark, on a busy machine
def test_a_load_is_right_although_rows_and_schema_change_and_the_sink_is_killed(
    stack: LocalStack, kind: IcebergKind, shards: MySqlSession, tmp_path: Path
) -> None:
    line = ReadLine(stack, kind, f"lakeload{os.getpid()}", "lake_loads", 6021)
    source = replace(line.pipeline.sources[0], snapshot="spark", load_rows_per_s=600)
    line.pipeline = replace(line.pipeline, sources=(source,))

    def of_shards() -> list[tuple[Any, ...]]:
        return sorted(
            (*row, str(ShardId(source.name, "lake_loads", name)))
            for name in ("t1", "t2")
            for more in ("more" if name == begun.table else "NULL",)
            for row in shards.query(f"SELECT id, n, v, d, at, b, {more} FROM {name}")
        )

    def of_target() -> list[tuple[Any, ...]]:
        names = ("id", "n", "v", "d", "at", "b", "more", "_s")
        return sorted(tuple(row.get(name) for name in names) for row in line.found())

    line.deploy()
    try:
        with Traffic(shards.address):
            killed_sink(line, tmp_path, line.decide)
            assert 0 < len(line.found()) < 2 * ROWS
            # One shard's load is under way: it meets the statement.
            stored = kind.open(line.pipeline).loads.loads()
            begun = next(load.shard for load in stored if load.running)
            shards.execute(f"ALTER TABLE {begun.table} ADD COLUMN more INT NOT NULL DEFAULT 7")
        deadline = monotonic() + PATIENCE_S
        with line.sink() as moves:
            target = kind.open(line.pipeline)
            with Traffic(shards.address) as traffic:
                while not all(load.is_complete for load in target.loads.loads()):
                    line.decide()
                    moves()
                    assert monotonic() < deadline, target.loads.loads()
            assert traffic.written > 100
            while moves() or of_target() != of_shards():
                line.decide()
                assert monotonic() < deadline, (of_target()[:5], of_shards()[:5])
            [first] = [load for load in target.loads.loads() if load.shard == begun]
            load_again(line, moves, target.loads, first)
            while moves() or of_target() != of_shards():
                assert monotonic() < deadline + PATIENCE_S, (of_target()[:5], of_shards()[:5])
        loads = target.loads.loads()
        assert [load.shard.table for load in loads] == ["t1", "t2"]
        assert first.base > first.version
        # No row came by Debezium's snapshot.
        for name in ("t1", "t2"):
            values = line.stored(f"{source.name}.lake_loads.{name}")
            assert not any(b'"op":"r"' in (value or b"") for value in values)
    finally:
        line.close()
