"""Rows that a connector reads from shards, in an Iceberg table and in a comparison with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from queue import Empty, Queue
from threading import Event, Thread
from time import monotonic

import pytest
from click.testing import CliRunner

from shardmerge.cli.main import main
from shardmerge.cli.validation.inputs import lake_server
from shardmerge.cli.validation.inputs.lake_server import LakeServer
from shardmerge.cli.validation.report_shapes import ValidatedTarget
from shardmerge.local.servers.mysql import PASSWORD, USER
from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.settings import Pipeline
from shardmerge.schemas.pipeline.text import pipeline_text
from shardmerge.schemas.records.plain import from_plain
from shardmerge.spark_sink.targets.iceberg.target import IcebergTarget
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession
from tests.breadth import with_further

from .contract import IcebergKind
from .iceberg_line import ReadLine

# py4j leaves sockets to the collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def shards(stack: LocalStack) -> Iterator[MySqlSession]:
    """Two tables of a source, in a database of their own."""
    session = MySqlSession(MySqlAddress("127.0.0.1", stack.ports.source1, USER, PASSWORD))
    session.execute("CREATE DATABASE lake_forms")
    session.execute("USE lake_forms")
    for table_name in ("t1", "t2"):
        session.execute(
            f"CREATE TABLE {table_name} (id BIGINT UNSIGNED PRIMARY KEY, `a-b` DECIMAL(20,5), "
            "x INT NOT NULL DEFAULT 7, gone VARBINARY(9), at DATETIME(6))"
        )
    yield session
    session.execute("DROP DATABASE lake_forms")
    session.close()


class Validated:
    """``shardmerge validate`` with the Spark of the tests."""

    def __init__(
        self, pipeline: Pipeline, kind: IcebergKind, patch: pytest.MonkeyPatch, folder: Path
    ) -> None:
        self._file = folder / "pipeline.toml"
        self._file.write_text(pipeline_text(pipeline))
        target = kind.open(pipeline)
        assert isinstance(target, IcebergTarget)
        patch.setattr(lake_server, "lake_server", lambda *_: LakeServer(target, owned=False))

    def report(self, *more: str) -> ValidatedTarget:
        words = ["validate", "--json", "--pipeline", str(self._file), *more]
        result = CliRunner().invoke(main, words, catch_exceptions=False)
        assert result.exit_code in (0, 1), result.output
        report = from_plain(ValidatedTarget, json.loads(result.stdout))
        assert report.complete, report
        assert len(report.shards) == 2
        return report

    @contextmanager
    def continuous(self, jars: str) -> Iterator[Continuous]:
        """``shardmerge validate --continuous`` in a process with a Spark of its own."""
        words = [sys.executable, "-m", "shardmerge.cli.main", "validate", "--json", "--continuous"]
        with subprocess.Popen(
            [*words, "--pause", "0.5", "--pipeline", str(self._file)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONSAFEPATH": "1", "SHARDMERGE_SPARK_JARS": jars},
        ) as running:  # fmt: skip
            try:
                yield Continuous(running)
            finally:
                running.terminate()
                running.wait(60)


class Continuous:
    """Reads the reports of a ``validate --continuous``."""

    def __init__(self, running: subprocess.Popen[str]) -> None:
        self._running = running
        self._lines: Queue[str] = Queue()
        self._errors: list[str] = []
        for read in (self._reports, self._told):
            Thread(target=read, daemon=True).start()

    def _reports(self) -> None:
        for line in self._running.stdout or ():
            self._lines.put(line)

    def _told(self) -> None:
        self._errors += self._running.stderr or ()

    def until(self, wanted: list[tuple[str, str]]) -> None:
        """Wait for a report with these differences."""
        deadline = monotonic() + 150
        came: list[str] = []
        while True:
            try:
                came.append(self._lines.get(timeout=max(0.0, deadline - monotonic())))
            except Empty:
                seen = "".join((*came, *self._errors))
                raise AssertionError(f"no report of {wanted}: {seen}") from None
            report = from_plain(ValidatedTarget, json.loads(came[-1]))
            if report.complete and told(report) == wanted:
                return


def told(report: ValidatedTarget) -> list[tuple[str, str]]:
    return sorted((d.kind, d.key[0]) for d in report.differences)


@contextmanager
def traffic(run: Callable[..., object], moves: Callable[[], bool]) -> Iterator[None]:
    """Write new rows to a shard and apply them, so that the connector gets on."""
    ends = Event()

    def write() -> None:
        for number in count(1_000):
            if ends.wait(0.5):
                return
            run(f"INSERT INTO t1 (id, y) VALUES ({number}, {number})")
            moves()

    thread = Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join(60)


@pytest.mark.timeout(600)  # with two starts of Spark, on a busy machine
@pytest.mark.parametrize("row_format", with_further("json", "avro"))
def test_rows_of_a_connector_are_the_shards_rows_in_each_format(  # noqa: PLR0917 - fixtures
    stack: LocalStack,
    kind: IcebergKind,
    shards: MySqlSession,
    row_format: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """What the shards have, over every kind of row and changes of their schemas."""
    run = shards.execute
    is_avro = row_format == "avro"
    line = ReadLine(
        stack, kind, f"lake{os.getpid()}{row_format}", "lake_forms", 6011 + is_avro,
        row_format=row_format,
        **({"record_format": "avro-registry", "schema_registry": stack.registry_url}
           if is_avro else {}),
    )  # fmt: skip

    def settled(columns: str) -> None:
        """Wait for the union of the shards; the sink is asked only where nothing moves."""
        names = [name.strip(" `") for name in columns.split(",")]
        wanted = sorted(
            (*row, str(ShardId(line.pipeline.name, "lake_forms", table_name)))
            for table_name in ("t1", "t2")
            for row in shards.query(f"SELECT {columns} FROM {table_name}")
        )
        deadline = monotonic() + 90
        while True:
            line.decide()
            if moves():
                continue
            found = [tuple(row.get(name) for name in (*names, "_s")) for row in line.found()]
            if found == wanted:
                return
            assert monotonic() < deadline, (found, wanted)

    run("INSERT INTO t1 VALUES (1, 1.5, 10, 0x00ff, '1000-01-01 00:00:00.000001')")
    run("INSERT INTO t1 VALUES (2, NULL, -20, NULL, NULL), (3, -0.00001, 30, '', NULL)")
    run("INSERT INTO t2 VALUES (11, 0, 1, 'b', NULL), (12, 0, 2, 'b', NULL)")
    line.deploy()
    try:
        with line.sink() as moves:
            settled("id, `a-b`, x, gone, at")

            run("INSERT INTO t1 VALUES (18446744073709551615, 999999999999999.99999, 0, '', NULL)")
            run("UPDATE t1 SET `a-b` = NULL, gone = 0x5c WHERE id = 1")
            run("DELETE FROM t1 WHERE id = 2")
            run("UPDATE t1 SET id = 4 WHERE id = 3")
            run("ALTER TABLE t1 ADD COLUMN more BIGINT UNSIGNED")
            run("INSERT INTO t1 VALUES (5, 5, 50, 'g', NULL, 18446744073709551615)")
            run("INSERT INTO t2 VALUES (13, 0, 3, 'b', NULL)")
            run("ALTER TABLE t1 RENAME COLUMN x TO y")
            run("UPDATE t1 SET y = 51, more = NULL WHERE id = 5")
            run("UPDATE t2 SET x = 11 WHERE id = 11")
            run("ALTER TABLE t1 DROP COLUMN gone")
            run("UPDATE t1 SET y = 41 WHERE id = 4")
            run("INSERT INTO t2 VALUES (14, 0, 4, 'late', NULL)")
            run(
                "ALTER TABLE t2 CHANGE x y BIGINT NOT NULL DEFAULT 7, "
                "ADD COLUMN more BIGINT UNSIGNED, DROP COLUMN gone"
            )
            run("INSERT INTO t2 VALUES (15, 0, 1099511627776, NULL, 15)")
            run("DELETE FROM t2 WHERE id = 12")
            settled("id, `a-b`, y, at, more")

            run("TRUNCATE TABLE t2")
            run("INSERT INTO t2 VALUES (16, 0, 16, NULL, 16)")
            settled("id, `a-b`, y, at, more")
            validated = Validated(line.pipeline, kind, monkeypatch, tmp_path)
            assert told(validated.report()) == []
            if not is_avro:
                name = f"lake.{line.pipeline.name}.t"
                kind.execute(f"UPDATE {name} SET y = 99 WHERE id = 4")
                kind.execute(f"DELETE FROM {name} WHERE id = 16")
                kind.execute(f"INSERT INTO {name} (id, y, _s) VALUES (77, 1, 'nobody')")
                planted = [("differs", "4"), ("extra", "77"), ("missing", "16")]
                with traffic(run, moves), validated.continuous(kind.jar) as continuous:
                    assert told(validated.report("--repair", "reread")) == planted
                    # Rows come by the connector, and the extra one stays.
                    continuous.until([("extra", "77")])

        written = [
            value
            for topic in (f"{line.pipeline.name}.lake_forms.t1", topics.ddl(line.pipeline).name)
            for value in line.stored(topic)
        ]
        assert {(value or b"?")[:1] == b"\0" for value in written} == {is_avro}
    finally:
        line.close()
