"""``shardmerge rebuild`` of an Iceberg target: writers, DDL, and SIGKILL in the middle."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from shardmerge.cli.rebuild.rebuild_shapes import RebuildReport
from shardmerge.local.servers.mysql import PASSWORD, USER
from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.pipeline.text import pipeline_text
from shardmerge.schemas.records.plain import from_plain
from shardmerge.spark_sink.process.settings import JARS
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession
from tests.background import Background
from tests.breadth import further
from tests.killed_commands import kill_at_place

from .contract import IcebergKind
from .iceberg_line import ReadLine

pytestmark = [
    # On a server the same command is played on the line in tests/e2e/test_e_rebuild.py, and
    # test_iceberg_rebuild.py holds what is Iceberg's own.
    further,
    # py4j leaves sockets to the collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
ROWS = 300
PATIENCE_S = 600.0
DATABASE = "lake_anew"
_numbers = count()


@pytest.fixture
def shards(stack: LocalStack) -> Iterator[MySqlSession]:
    """Two tables of a source with rows, in a database of their own."""
    session = MySqlSession(MySqlAddress("127.0.0.1", stack.ports.source1, USER, PASSWORD))
    session.execute(f"CREATE DATABASE {DATABASE}")
    session.execute(f"USE {DATABASE}")
    for number in (1, 2):
        session.execute(f"CREATE TABLE t{number} (id INT PRIMARY KEY, v VARCHAR(30), n INT)")
        session.execute(
            f"INSERT INTO t{number} WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i"
            f" WHERE n < {ROWS}) SELECT {number} * 10000 + n, CONCAT('a', n), n FROM i"
        )
    yield session
    session.execute(f"DROP DATABASE {DATABASE}")
    session.close()


class Traffic(Background):
    """Writes to both shards while the context lasts."""

    def __init__(self, address: MySqlAddress) -> None:
        self._address, self.written = address, 0
        super().__init__(self._write)

    def _write(self) -> None:
        chance = random.Random(5)
        session = MySqlSession(self._address)
        while not self.ends.wait(0.5):
            number = chance.choice((1, 2))
            key, table = number * 10000 + chance.randrange(1, 2 * ROWS), f"{DATABASE}.t{number}"
            for sql in (
                f"REPLACE INTO {table} (id, v, n) VALUES ({key}, 'new', 1)",
                f"DELETE FROM {table} WHERE id = {key + 1}",
                f"UPDATE {table} SET n = n + 1 WHERE id = {key + 2}",
            ):
                session.execute(sql)
                self.written += 1
        session.close()


class Agents(Background):
    """Decide what comes while the context lasts."""

    def __init__(self, line: ReadLine) -> None:
        self._line = line
        super().__init__(self._decide)

    def _decide(self) -> None:
        while not self.ends.wait(0.2):
            self._line.decide()


class Played:
    """A pipeline that runs, and its calls of ``shardmerge``."""

    def __init__(self, line: ReadLine, shards: MySqlSession, folder: Path) -> None:
        self.line, self._shards = line, shards
        self._file, self._log = folder / "pipeline.toml", folder / "sink.log"
        self._file.write_text(pipeline_text(line.pipeline))
        self.target = f"{line.pipeline.name}.t"

    def words(self, *more: str) -> list[str]:
        return ["rebuild", self.target, "--pipeline", str(self._file), "--by", "olga", *more]

    def call(self, *more: str) -> RebuildReport:
        words = [sys.executable, "-m", "shardmerge.cli.main", *self.words("--json", *more)]
        env = {**os.environ, "PYTHONSAFEPATH": "1"}
        done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1), done.stderr[-3_000:]
        return from_plain(RebuildReport, json.loads(done.stdout))

    def call_to_the_end(self, *more: str) -> RebuildReport:
        """Call it once more as it says when a row changed each time that it was read."""
        report = self.call(*more)
        for _ in range(3):
            if [reason.code for reason in report.reasons] != ["SM-6508"]:
                break
            report = self.call(*more)
        return report

    @contextmanager
    def sink(self) -> Iterator[None]:
        words = [sys.executable, "-m", "shardmerge.cli.main", "sink", "--pipeline", str(self._file)]
        env = {**os.environ, "PYTHONSAFEPATH": "1"}
        with (
            self._log.open("wb") as log,
            subprocess.Popen(words, env=env, stdout=log, stderr=log) as running,
        ):
            try:
                yield
                assert running.poll() is None, self._log.read_text()[-3_000:]
            finally:
                running.terminate()

    def of_shards(self, *columns: str) -> list[tuple[Any, ...]]:
        return sorted(
            (
                (*row, str(ShardId(self.line.pipeline.sources[0].name, DATABASE, name)))
                for name in ("t1", "t2")
                for row in self._shards.query(f"SELECT {', '.join(columns)} FROM {name}")
            ),
            key=repr,
        )

    def of_target(self, *columns: str) -> list[tuple[Any, ...]]:
        names = (*columns, "_s")
        found = (tuple(row.get(name) for name in names) for row in self.line.found())
        return sorted(found, key=repr)

    def wait_for_equal_rows(self, *columns: str) -> None:
        deadline = monotonic() + PATIENCE_S
        while (found := self.of_target(*columns)) != (wanted := self.of_shards(*columns)):
            more = {*found} ^ {*wanted}
            assert monotonic() < deadline, (
                sorted(more, key=repr)[:6],
                self._log.read_text()[-3000:],
            )
            sleep(0.5)

    def alter(self, table_name: str) -> None:
        session = MySqlSession(self._shards.address)
        added = "ADD COLUMN more INT NOT NULL DEFAULT 7"
        session.execute(f"ALTER TABLE {DATABASE}.{table_name} {added}")
        session.close()


@pytest.fixture
def played(
    stack: LocalStack,
    kind: IcebergKind,
    shards: MySqlSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Played]:
    """A pipeline that runs, with the first rows in its target."""
    monkeypatch.setenv(JARS, kind.jar)
    line = ReadLine(stack, kind, f"lakeanew{os.getpid()}x{next(_numbers)}", DATABASE, 6041)
    source = replace(line.pipeline.sources[0], snapshot="spark")
    line.pipeline = replace(line.pipeline, sources=(source,))
    line.deploy()
    found = Played(line, shards, tmp_path)
    try:
        with Agents(line), found.sink():
            found.wait_for_equal_rows("id", "v", "n")
            yield found
    finally:
        line.close()


@pytest.mark.timeout(1800)  # with nine starts of Spark, on a busy machine
def test_a_damaged_iceberg_target_is_rebuilt_while_it_serves(
    kind: IcebergKind, shards: MySqlSession, played: Played
) -> None:
    name = f"lake.{played.target}"
    kind.execute(f"UPDATE {name} SET v = 'by hand' WHERE id % 7 = 0")
    kind.execute(f"DELETE FROM {name} WHERE id % 11 = 0")
    kind.execute(f"INSERT INTO {name} (id, v, _s) VALUES (999999, 'nobody', '')")
    with Traffic(shards.address) as traffic:
        acts = {"load about": lambda: played.alter("t1")}
        kill_at_place(played.words(), "exchange-begun:1", acts)
        kill_at_place(played.words(), "exchange-staged:1")
        assert 999999 in {row["id"] for row in played.line.found()}
        kill_at_place(played.words(), "exchanged:1")
        assert 999999 not in {row["id"] for row in played.line.found()}
        swapped = played.call_to_the_end()
        assert (swapped.reasons, swapped.stage, swapped.by) == ((), "swapped", "olga")
        played.alter("t2")
        assert traffic.written > 100
    played.wait_for_equal_rows("id", "v", "n", "more")
    old = kind.session.sql(f"SELECT * FROM lake.{swapped.old_table}")
    assert old.where("id = 999999").count() == 1
    assert played.call("--drop-old").stage == "ended"


@pytest.mark.timeout(1800)  # with three starts of Spark, on a busy machine
def test_an_iceberg_target_gets_another_condition(shards: MySqlSession, played: Played) -> None:
    where = ("--with", "where=n > 1")
    swapped = played.call_to_the_end(*where)
    assert (swapped.reasons, swapped.stage, swapped.file_changed) == ((), "swapped", True)
    shards.execute("UPDATE t1 SET n = 1 WHERE n = 2")
    shards.execute("UPDATE t2 SET n = 5 WHERE n = 1")
    shards.execute("INSERT INTO t1 (id, n) VALUES (5, 1), (6, 2)")
    wanted = [row for row in played.of_shards("id", "n") if row[1] > 1]
    deadline = monotonic() + PATIENCE_S
    while played.of_target("id", "n") != wanted:
        assert monotonic() < deadline, {*played.of_target("id", "n")} ^ {*wanted}
        sleep(0.5)
