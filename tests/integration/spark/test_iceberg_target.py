"""Iceberg tables as a target: what is held, every type, upkeep, the driver's loop."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from itertools import count
from pathlib import Path
from queue import Empty, Queue
from threading import Event, Thread
from time import monotonic
from typing import Any

import pytest
from click.testing import CliRunner

from shardmerge.cli.main import main
from shardmerge.cli.validation.inputs import lake_server
from shardmerge.cli.validation.inputs.lake_server import LakeServer
from shardmerge.cli.validation.repairs import statements
from shardmerge.cli.validation.report_shapes import ValidatedTarget
from shardmerge.local.servers.mysql import PASSWORD, USER
from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.model.errors import TargetError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.settings import Kafka, Pipeline
from shardmerge.schemas.pipeline.text import pipeline_text
from shardmerge.schemas.records.plain import from_plain
from shardmerge.schemas.target.row_statements import clearing
from shardmerge.spark_sink.planning.ranges import RangeResult, TaskFailure
from shardmerge.spark_sink.process.settings import SinkSettings
from shardmerge.spark_sink.targets.iceberg.maintenance import Maintenance
from shardmerge.spark_sink.targets.iceberg.target import IcebergTarget
from shardmerge.spark_sink.targets.interface import JournalEntry
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession
from tests.breadth import with_further
from tests.strategies import table
from tests.target_statements import NO_REASON

from . import iceberg_values, values
from .contract import ORIGIN, Contract, IcebergKind
from .iceberg_line import IcebergLine, ReadLine

# py4j leaves sockets to the collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
DONE = JournalEntry("done")


def test_a_column_that_another_one_dropped_holds_the_rows(contract: Contract) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    contract.topic.produce([contract.insert(id=1, v="a", n=1)])
    contract.kind.execute(f"ALTER TABLE lake.{contract.target.sql} DROP COLUMN v")

    hold = writer.apply().hold

    assert hold is not None and "lacks column v" in hold.reason
    entry = writer.execute(2, contract.rename("v", "w"))
    assert entry.state == "refused" and "column:v: decided is `v` string" in entry.error


def test_a_table_that_somebody_dropped_is_told(contract: Contract) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    contract.topic.produce([contract.insert(id=1, v="a", n=1)])
    task = writer.task()
    contract.kind.execute(f"DROP TABLE lake.{contract.target.sql}")

    [failure] = writer.run(task)

    assert isinstance(failure, TaskFailure) and "Table does not exist" in failure.message
    with pytest.raises(TargetError, match="somebody dropped it") as raised:
        writer.journal.change_rows(contract.target, clearing(contract.target, NO_REASON))
    assert raised.value.statement


def test_a_shard_without_a_primary_key_is_held(contract: Contract) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    contract.topic.produce([contract.insert(id=1, v="a", n=1)])

    hold = writer.apply(contract.topic.segment(contract.schema, key=())).hold

    assert hold is not None and hold.offset == 0 and "no primary key" in hold.reason


def test_another_primary_key_is_another_merge(contract: Contract) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    contract.topic.produce([contract.insert(id=n, v="a", n=n) for n in range(3)])
    gate = contract.topic.next_place()
    contract.topic.produce([contract.delete(id=0, v="a", n=0), contract.insert(id=7, v="a", n=1)])
    by_id = contract.topic.segment(contract.schema)
    by_number = contract.topic.segment(contract.schema, start=gate, key=["n"])

    first = writer.apply(by_id, by_number)
    second = writer.apply(by_id, by_number)

    assert (first.rows, second.rows) == (3, 2)
    assert contract.rows() == [(2, "a", 2), (7, "a", 1)]


def test_rows_of_two_shards_with_one_key_become_one_row(
    contract: Contract, stack: LocalStack, caplog: pytest.LogCaptureFixture
) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    other = Contract(contract.kind, stack)
    other.topic.make_topic()
    contract.topic.produce([contract.insert(id=1, v="a", n=1), contract.insert(id=2, v="a", n=2)])
    other.topic.produce([other.insert(id=1, v="b", n=3), other.delete(id=2, v="b", n=4)])
    task = replace(other.topic.task(other.topic.segment(other.schema), start=0), writer_epoch=1)
    task = replace(task, stream=replace(task.stream, target=contract.target))

    results = writer.run(writer.task(), task)

    assert [r.rows for r in results if isinstance(r, RangeResult)] == [2, 2]
    assert contract.rows() == [(1, "b", 3), (2, "a", 2)]
    [record] = [r for r in caplog.records if r.__dict__.get("event") == "shards_collided"]
    assert vars(record)["fields"]["keys"] == 1


# --- values


def test_every_type_has_its_boundary_values(
    contract: Contract, stack: LocalStack, source_rows: tuple[str, Kafka, list[dict[str, Any]]]
) -> None:
    """Rows of a MySQL source through Debezium; compared with what MySQL itself says."""
    topic, kafka, expected = source_rows
    every = Contract(contract.kind, stack, ddl=f"create table t ({values.definitions()})")
    every.pipeline = replace(every.pipeline, kafka=kafka)
    every.topic.topic = topic
    source, database, _ = topic.split(".")
    every.topic.shard = replace(every.topic.shard, source=source, database=database)
    writer = every.start()
    assert writer.execute(1, every.create()) == DONE

    task = writer.task()
    # The target keeps what the shards compute: its columns are ordinary ones.
    bound = {key: replace(b, writable=True) for key, b in task.bindings.items()}
    [result] = writer.run(replace(task, bindings=bound))

    assert isinstance(result, RangeResult) and result.hold is None, result
    names = every.columns()
    sql = ", ".join(iceberg_values.shown(every.schema, name) for name in names)
    session = contract.kind.session  # type: ignore[attr-defined]
    found = session.sql(f"SELECT {sql} FROM lake.{every.target.sql} ORDER BY id").collect()
    got = {row["id"]: row.asDict() for row in found}
    for row in expected:
        for name in names:
            column = every.schema.column(name)
            assert column is not None
            wanted = row[name]
            if column.type.name == "json" and wanted is not None:
                assert json.loads(got[row["id"]][name]) == json.loads(wanted), name
            else:
                assert got[row["id"]][name] == wanted, (row["id"], name)
    assert isinstance(writer.target, IcebergTarget)
    assert_hand_made_changes_are_found(every, writer.target)


def assert_hand_made_changes_are_found(every: Contract, target: IcebergTarget) -> None:
    """A comparison of the source with the table tells what Spark changed, and nothing else."""
    shard = replace(every.topic.shard, table="t")
    source = replace(every.pipeline.sources[0], name=shard.source)
    pipeline = replace(every.pipeline, sources=(source,))
    clean = iceberg_values.compared(pipeline, target, shard, every.schema, every.target)
    assert clean.differences == []
    # Spark has no decimal of 65 digits; all other columns are compared.
    assert {*every.columns()} - {*clean.table.columns} == {"c_decimal"}
    name = f"lake.{every.target.sql}"
    changes = {
        "c_double": "-1.5", "c_time6": "1", "c_varbinary": "X'00'", "c_text": "'x'",
        "c_json": "'{}'", "c_datetime6": "TIMESTAMP_NTZ'2001-01-01 00:00:00.000001'",
        "c_timestamp6": "TIMESTAMP'2001-01-01 00:00:00.000001'", "c_geometry": "X'00'",
        "c_bit64": "5", "c_decimal_u": "1.25",
    }  # fmt: skip
    sets = ", ".join(f"{column} = {value}" for column, value in changes.items())
    every.kind.execute(f"UPDATE {name} SET {sets} WHERE id = 1")
    every.kind.execute(f"DELETE FROM {name} WHERE id = 1000")
    every.kind.execute(f"INSERT INTO {name} (id) VALUES (777)")
    found = iceberg_values.compared(pipeline, target, shard, every.schema, every.target)
    told = {d.key: d for d in found.differences}
    assert {key: d.kind.value for key, d in told.items()} == {
        ("1",): "differs", ("1000",): "missing", ("777",): "extra",
    }  # fmt: skip
    assert set(told["1",].columns) == set(changes)
    with iceberg_values.opened(pipeline, target) as servers:
        repairs = statements(found.table, found.differences, servers)
    for sql in repairs.values():
        every.kind.execute(sql.rstrip(";"))
    again = iceberg_values.compared(pipeline, target, shard, every.schema, every.target)
    assert again.differences == []


@pytest.fixture(scope="module", params=with_further("json", "avro"))
def source_rows(
    stack: LocalStack, request: pytest.FixtureRequest
) -> Iterator[tuple[str, Kafka, list[dict[str, Any]]]]:
    """See ``iceberg_values``."""
    with iceberg_values.source_rows(stack, request.param) as rows:
        yield rows


# --- upkeep


def test_compacting_and_expiring_keep_rows_and_offsets(
    contract: Contract, kind: IcebergKind
) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    for number in range(4):
        contract.topic.produce(
            [contract.insert(id=number + n, v=f"r{number}", n=n) for n in range(3)]
        )
        writer.apply()
    rows, offsets = contract.rows(), writer.target.state.offsets()
    target = writer.target
    assert isinstance(target, IcebergTarget)
    maintenance = Maintenance(SinkSettings(Path()), contract.pipeline, target)

    [compacted] = maintenance.compact()
    [expired] = maintenance.expire(1, 0)

    assert compacted.table == expired.table == contract.target
    assert compacted.counts["rewritten_data_files_count"] >= 2
    assert expired.counts["deleted_data_files_count"] >= 2
    snapshots = kind.session.sql(f"SELECT * FROM lake.{contract.target.sql}.snapshots").count()
    assert snapshots == 1
    assert contract.rows() == rows
    later = contract.start()
    assert later.target.state.offsets() == offsets
    contract.topic.produce([contract.delete(id=0, v="", n=0)])
    later.apply()
    assert contract.rows() == [row for row in rows if row[0] != 0]


# --- the driver's loop


@pytest.mark.parametrize("shared", with_further(False, True), ids=["own topics", "one topic"])
def test_shards_that_add_rename_and_drop_at_their_own_time_end_equal(
    stack: LocalStack, kind: IcebergKind, shared: bool
) -> None:
    line = IcebergLine(stack, kind, shared=shared)
    a, b = line.shard("a"), line.shard("b")
    first = table("create table t (id int primary key, x int, gone varchar(9))")
    line.begin()
    line.send(a, first)
    line.send(b, first)
    line.rows(a, {"id": 1, "x": 10, "gone": "g"})
    line.rows(b, {"id": 2, "x": 20, "gone": "g"})
    line.alter(a, "ADD COLUMN more BIGINT UNSIGNED")
    line.rows(a, {"id": 3, "x": 30, "gone": "g", "more": 2**64 - 1})
    line.rows(b, {"id": 4, "x": 40, "gone": "g"})
    line.commit()
    line.turn()
    assert line.found() == [
        {"id": 1, "x": 10, "gone": "g", "more": None},
        {"id": 2, "x": 20, "gone": "g", "more": None},
        {"id": 3, "x": 30, "gone": "g", "more": Decimal(2**64 - 1)},
        {"id": 4, "x": 40, "gone": "g", "more": None},
    ]
    line.begin()
    line.alter(a, "RENAME COLUMN x TO y")
    line.rows(a, {"id": 5, "y": 50, "gone": "g", "more": 5})
    line.rows(b, {"id": 6, "x": 60, "gone": "g"})
    line.alter(a, "DROP COLUMN gone")
    line.rows(a, {"id": 1, "y": 11, "more": 7})
    line.alter(b, "MODIFY x BIGINT, ADD COLUMN more BIGINT UNSIGNED, DROP COLUMN gone")
    line.rows(b, {"id": 2, "x": 2**40, "more": 8})
    line.alter(b, "RENAME COLUMN x TO y")
    line.rows(b, {"id": 7, "y": 70, "more": None})
    line.commit()
    line.turn()
    assert line.found() == [
        {"id": 1, "y": 11, "more": Decimal(7)},
        {"id": 2, "y": 2**40, "more": Decimal(8)},
        {"id": 3, "y": 30, "more": Decimal(2**64 - 1)},
        {"id": 4, "y": 40, "more": None},
        {"id": 5, "y": 50, "more": Decimal(5)},
        {"id": 6, "y": 60, "more": None},
        {"id": 7, "y": 70, "more": None},
    ]
    # Another driver that starts finds nothing to do.
    line.turn()
    assert len(line.found()) == 7
    line.session.close()


@pytest.mark.parametrize("shared", with_further(False, True), ids=["own topics", "one topic"])
def test_the_rows_of_one_shard_are_emptied_filled_and_removed(
    stack: LocalStack, kind: IcebergKind, shared: bool
) -> None:
    line = IcebergLine(stack, kind, ORIGIN, shared=shared)
    a, b = line.shard("a", 2), line.shard("b")
    first = table("create table t (id int primary key, x int)")
    line.begin()
    line.send(a, first)
    line.send(b, first)
    line.rows(a, {"id": 1, "x": 10}, {"id": 4, "x": 40})
    line.rows(b, {"id": 2, "x": 20})
    line.truncation(a)
    line.rows(a, {"id": 3, "x": 30}, partition=1)
    line.rows(a, {"id": 1, "x": 11})
    line.commit()
    line.turn()
    assert line.found() == [
        {"id": 1, "x": 11, "_s": str(a)},
        {"id": 2, "x": 20, "_s": str(b)},
        {"id": 3, "x": 30, "_s": str(a)},
    ]
    line.begin()
    line.alter(b, "ADD COLUMN t TIME NOT NULL DEFAULT '01:00:00'")
    line.rows(b, {"id": 5, "x": 50, "t": 0})
    line.commit()
    line.turn()
    assert [(row["id"], row["t"]) for row in line.found()] == [
        (1, None), (2, 3_600_000_000), (3, None), (5, 0),
    ]  # fmt: skip
    line.begin()
    line.send(b, None, actions=("DROP TABLE",))
    line.commit()
    line.turn()
    assert [row["id"] for row in line.found()] == [1, 3]
    line.session.close()


# --- a source that a connector reads


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
