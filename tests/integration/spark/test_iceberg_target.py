"""Iceberg tables as a target: crashes, other writers, every type, upkeep, the driver's loop."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from shardmerge.connectors.local.mysql import PASSWORD, USER
from shardmerge.connectors.local.stack import LocalStack
from shardmerge.connectors.topics_admin import create_topics
from shardmerge.schemas import topics
from shardmerge.schemas.errors import TargetError
from shardmerge.schemas.model import TableSchema
from shardmerge.schemas.names import ShardId
from shardmerge.schemas.pipeline import Kafka
from shardmerge.schemas.render.spark_types import spark_type
from shardmerge.spark_sink.failpoints import SETTING
from shardmerge.spark_sink.partitions import Partition
from shardmerge.spark_sink.ranges import RangeResult, TaskFailure
from shardmerge.spark_sink.settings import SinkSettings
from shardmerge.spark_sink.targets.iceberg import journal
from shardmerge.spark_sink.targets.iceberg.batches import IcebergBatches
from shardmerge.spark_sink.targets.iceberg.maintenance import Maintenance
from shardmerge.spark_sink.targets.iceberg.staging import stage
from shardmerge.spark_sink.targets.iceberg.tables import IcebergTable, Moved, Uncertain
from shardmerge.spark_sink.targets.iceberg.target import IcebergTarget
from shardmerge.spark_sink.targets.interface import JournalEntry
from shardmerge.spark_sink.targets.mysql.session import MySqlAddress, MySqlSession
from tests.strategies import table

from . import values
from .contract import ORIGIN, ROOT, Contract, IcebergKind, Writer
from .iceberg_line import IcebergLine, ReadLine

# py4j leaves sockets to the collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
DONE = JournalEntry("done")


@pytest.fixture(scope="module")
def warehouse() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="iceberg-", dir=ROOT / ".local"))
    yield folder / "warehouse"
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def kind(warehouse: Path) -> Iterator[IcebergKind]:
    kind = IcebergKind(warehouse)
    yield kind
    kind.spark.stop()


@pytest.fixture
def contract(kind: IcebergKind, stack: LocalStack) -> Iterator[Contract]:
    contract = Contract(kind, stack)
    contract.topic.make_topic()
    yield contract
    contract.clean()


# --- crashes and other writers


@pytest.mark.parametrize(
    "place",
    ["rows-read", "rows-written", "committed", "statement-begun", "statement-executed"],
)
def test_a_writer_killed_at_any_place_loses_and_repeats_nothing(
    place: str, contract: Contract, warehouse: Path
) -> None:
    first = contract.start()
    first.execute(1, contract.create())
    contract.topic.produce([contract.insert(id=n, v="a", n=n) for n in range(10)])
    first.apply()
    contract.topic.produce(
        [
            contract.insert(id=10, v="b", n=0),
            contract.delete(id=3, v="a", n=3),
            contract.topic.event("u", {"id": 4, "v": "c", "n": 4}),
        ]
    )
    before = contract.rows()

    bootstrap = contract.topic.stack.bootstrap_servers
    script = [sys.executable, "-m", "tests.integration.spark.killed_writer"]
    killed = subprocess.run(
        [*script, str(warehouse), bootstrap, contract.name], cwd=ROOT,
        env={**os.environ, "PYTHONSAFEPATH": "", "PYTHONPATH": _paths(), SETTING: f"{place}:1"},
        check=False, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-2_000:]
    assert "applying" in killed.stdout

    if place in ("rows-read", "rows-written"):
        assert contract.rows() == before
    writer = contract.start()
    [result] = writer.run(writer.task())
    assert isinstance(result, RangeResult)
    assert writer.execute(2, contract.add("w int")) == DONE
    expected = {n: (n, "a", n) for n in range(10)} | {4: (4, "c", 4), 10: (10, "b", 0)}
    del expected[3]
    assert contract.rows() == [(*expected[n], None) for n in sorted(expected)]
    # Not one event was counted twice: what was committed was not applied again.
    assert writer.target.state.rows() == {contract.target: 13}
    assert set(writer.journal.load()) == {(contract.target, 1, 0), (contract.target, 2, 0)}
    assert writer.epoch == 3


def _paths() -> str:
    return os.pathsep.join([p for p in sys.path if p] + [str(ROOT)])


def test_a_commit_that_comes_between_is_not_carried_over(
    contract: Contract, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    contract.topic.produce([contract.insert(id=1, v="a", n=1)])
    stage = IcebergBatches._stage

    def staging(*arguments: Any, **named: Any) -> None:
        stage(*arguments, **named)
        values = f"lake.{contract.target.sql} VALUES (5, 'other', 5)"
        contract.kind.execute(f"INSERT INTO {values}")

    with monkeypatch.context() as patch:
        patch.setattr(IcebergBatches, "_stage", staging)
        [failure] = writer.run(writer.task())
    assert isinstance(failure, TaskFailure) and not failure.final
    assert contract.rows() == [(5, "other", 5)]
    assert writer.target.state.offsets() == {}
    writer.apply()
    assert contract.rows() == [(1, "a", 1), (5, "other", 5)]


def test_a_writer_that_is_replaced_while_it_merges_publishes_nothing(
    contract: Contract, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = contract.start()
    older.execute(1, contract.create())
    contract.topic.produce([contract.insert(id=1, v="a", n=1)])
    stage = IcebergBatches._stage
    newer: list[Writer] = []

    def staging(*arguments: Any, **named: Any) -> None:
        stage(*arguments, **named)
        newer.append(contract.start())

    with monkeypatch.context() as patch:
        patch.setattr(IcebergBatches, "_stage", staging)
        [failure] = older.run(older.task())
    assert isinstance(failure, TaskFailure) and "another writer took over" in failure.message
    assert contract.rows() == []
    newer[0].apply()
    assert contract.rows() == [(1, "a", 1)]


@pytest.mark.parametrize("took_effect", [True, False])
def test_a_commit_without_an_answer_is_looked_up(
    contract: Contract, monkeypatch: pytest.MonkeyPatch, *, took_effect: bool
) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    contract.topic.produce([contract.insert(id=1, v="a", n=1)])
    commit, unanswered = IcebergTable.commit, [True, True]

    def committing(table: IcebergTable, properties: Any, **what: Any) -> None:
        lost = unanswered and unanswered.pop()
        if took_effect or not lost:
            commit(table, properties, **what)
        if lost:
            raise Uncertain

    with monkeypatch.context() as patch:
        patch.setattr(IcebergTable, "commit", committing)
        assert writer.apply().rows == 1
        unanswered[:] = [True]
        assert writer.execute(2, contract.add("w int")) == DONE
    assert contract.rows() == [(1, "a", 1, None)]
    assert writer.target.state.rows() == {contract.target: 1}


def test_a_reading_that_is_stale_cannot_be_committed(contract: Contract, kind: IcebergKind) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    catalog = kind.iceberg()
    stale, fresh = catalog.load(contract.target), catalog.load(contract.target)
    fresh.commit({"a": "1"})

    with pytest.raises(Moved):
        stale.commit({"a": "2"})
    assert catalog.load(contract.target).property("a") == "1"


def test_a_commit_between_rows_and_their_statement_is_seen(
    contract: Contract, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    contract.topic.produce([contract.insert(id=1, v="a", n=1)])
    writer.apply()
    others = [5, 6]

    def staging(session: Any, *arguments: Any) -> None:
        stage(session, *arguments)
        if others:
            row = f"({others.pop()}, 'other', 5)"
            contract.kind.execute(f"INSERT INTO lake.{contract.target.sql} VALUES {row}")

    with monkeypatch.context() as patch:
        patch.setattr(journal, "stage", staging)
        writer.journal.change_rows(f"DELETE FROM {contract.target.sql}")
    assert others == [] and contract.rows() == []


def test_a_writer_that_is_replaced_while_it_changes_rows_changes_none(
    contract: Contract, kind: IcebergKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = contract.start()
    older.execute(1, contract.create())
    contract.topic.produce([contract.insert(id=1, v="a", n=1)])
    older.apply()

    def staging(session: Any, *arguments: Any) -> None:
        stage(session, *arguments)
        contract.start()

    with monkeypatch.context() as patch:
        patch.setattr(journal, "stage", staging)
        with pytest.raises(TargetError, match="another writer took over") as raised:
            older.journal.change_rows(f"DELETE FROM {contract.target.sql}")
    assert not raised.value.retryable and not raised.value.statement
    assert contract.rows() == [(1, "a", 1)]


def test_batches_and_statements_stage_side_by_side(
    contract: Contract, kind: IcebergKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    contract.topic.produce([contract.insert(id=1, v="a", n=1)])
    writer.apply()
    in_session = []

    def staging(session: Any, *arguments: Any) -> None:
        kind.session.conf.set("spark.wap.id", "of a batch")
        stage(session, *arguments)
        in_session.append(kind.session.conf.get("spark.wap.id"))
        kind.session.conf.unset("spark.wap.id")

    with monkeypatch.context() as patch:
        patch.setattr(journal, "stage", staging)
        writer.journal.change_rows(f"DELETE FROM {contract.target.sql}")
    assert in_session == ["of a batch"] and contract.rows() == []


def test_moves_and_changes_of_rows_without_an_answer_are_looked_up(
    contract: Contract, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    contract.topic.produce([contract.insert(id=1, v="a", n=1)])
    writer.apply()
    end, commit, unanswered = contract.topic.end_offset(), IcebergTable.commit, [True]

    def committing(table: IcebergTable, properties: Any, **what: Any) -> None:
        commit(table, properties, **what)
        if unanswered:
            unanswered.clear()
            raise Uncertain

    with monkeypatch.context() as patch:
        patch.setattr(IcebergTable, "commit", committing)
        writer.move((0, end, 0))
        unanswered.append(True)
        writer.journal.change_rows(f"DELETE FROM {contract.target.sql}")
    assert contract.rows() == []
    assert writer.target.state.offsets() == {Partition(contract.topic.topic, 0): 0}
    assert writer.target.state.rows() == {contract.target: 1}


def test_a_column_that_another_one_dropped_holds_the_rows(contract: Contract) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    contract.topic.produce([contract.insert(id=1, v="a", n=1)])
    contract.kind.execute(f"ALTER TABLE lake.{contract.target.sql} DROP COLUMN v")

    hold = writer.apply().hold

    assert hold is not None and "lacks column v" in hold.reason
    entry = writer.execute(2, contract.rename("v", "w"))
    assert entry.state == "refused" and "no column v" in entry.error


def test_a_table_that_somebody_dropped_is_told(contract: Contract) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    contract.topic.produce([contract.insert(id=1, v="a", n=1)])
    task = writer.task()
    contract.kind.execute(f"DROP TABLE lake.{contract.target.sql}")

    [failure] = writer.run(task)

    assert isinstance(failure, TaskFailure) and "Table does not exist" in failure.message
    with pytest.raises(TargetError, match="somebody dropped it") as raised:
        writer.journal.change_rows(f"DELETE FROM {contract.target.sql}")
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
    [record] = [r for r in caplog.records if r.message == "shards collide"]
    assert vars(record)["keys"] == 1


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
    sql = ", ".join(_shown(every.schema, name) for name in names)
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


def _shown(schema: TableSchema, name: str) -> str:
    column = schema.column(name)
    assert column is not None
    if spark_type(column.type) == "timestamp":
        return f"unix_micros(`{name}`) AS `{name}`"
    if spark_type(column.type) == "binary":
        return f"hex(`{name}`) AS `{name}`"
    return f"`{name}`"


@pytest.fixture(scope="module", params=["json", "avro"])
def source_rows(
    stack: LocalStack, request: pytest.FixtureRequest
) -> Iterator[tuple[str, Kafka, list[dict[str, Any]]]]:
    """The row topic of a table of every type, how to read it, and its rows as Iceberg's."""
    from shardmerge.connectors.connect_rest import ConnectRest
    from shardmerge.connectors.source_config import connector_config, connector_name
    from shardmerge.schemas.pipeline import parse_pipeline

    from .rig import Rig

    row_format: str = request.param
    name = f"lakes{os.getpid()}{row_format}"
    session = MySqlSession(MySqlAddress("127.0.0.1", stack.ports.source1, USER, PASSWORD))
    session.execute("CREATE DATABASE lake_types")
    session.execute(f"CREATE TABLE lake_types.t ({values.definitions()})")
    session.execute(values.insert("lake_types.t", 1, snapshot=True))
    text = stack.pipeline_text(
        f"pipeline-{name}",
        '[[routes]]\ndatabase = "lake_types"\ntable = "t"\ntarget = "m.t"\n',
        row_format=row_format,
        schema_registry=stack.registry_url if row_format == "avro" else "",
    )
    pipeline = parse_pipeline(text, {})
    source = replace(pipeline.sources[0], name=name, databases="lake_types", server_id=6002)
    pipeline = replace(pipeline, sources=(source,))
    create_topics(stack.bootstrap_servers, topics.own_topics(pipeline))
    rest_client = ConnectRest(stack.connect_url)
    connector = connector_name(pipeline, source)
    rest_client.create_or_update(connector, connector_config(pipeline, source))
    rest_client.wait_running(connector)
    rig = Rig(stack, "unused")
    rig.topic = f"{name}.lake_types.t"
    _wait(rig, values.ROWS)
    session.execute(values.insert("lake_types.t", 1000))
    _wait(rig, 2 * values.ROWS)
    schema = table(f"create table t ({values.definitions()})")
    sql = ", ".join(_of_source(schema, c.name) for c in schema.columns)
    rows = session.query(f"SELECT {sql} FROM lake_types.t ORDER BY id")
    shown = [
        {c.name: _value(c.type.name, spark_type(c.type), cell) for c, cell in zip(
            schema.columns, row, strict=True)}
        for row in rows
    ]  # fmt: skip
    yield rig.topic, pipeline.kafka, shown
    rest_client.delete(connector)
    session.execute("DROP DATABASE lake_types")
    session.close()


def _of_source(schema: TableSchema, name: str) -> str:
    column = schema.column(name)
    assert column is not None
    kind = column.type.name
    if kind in ("float", "double"):
        return f"`{name}` + 0e0"
    if kind == "timestamp":
        return f"CAST(UNIX_TIMESTAMP(`{name}`) * 1000000 AS SIGNED)"
    if kind == "bit":
        return f"CAST(`{name}` AS UNSIGNED)"
    if spark_type(column.type) == "binary":
        return f"HEX(`{name}`)"
    if kind == "json":
        return f"CAST(`{name}` AS CHAR)"
    return f"`{name}`"


def _value(kind: str, spark: str, cell: Any) -> Any:
    """A value of PyMySQL as Spark shows it."""
    if cell is None:
        return None
    if kind == "time":
        assert isinstance(cell, timedelta)
        return cell // timedelta(microseconds=1)
    if spark.startswith("decimal"):
        return Decimal(cell)
    if kind == "decimal":
        return f"{cell:f}"
    assert isinstance(cell, int | float | str | date | datetime), (kind, cell)
    return cell


def _wait(rig: Any, count: int) -> None:
    from time import monotonic, sleep

    from confluent_kafka import KafkaException

    deadline = monotonic() + 90
    while True:
        assert monotonic() < deadline, "the rows did not come from the connector"
        try:
            if rig.end_offset() > count:
                return
        except KafkaException:  # the connector makes the topic with its first row
            pass
        sleep(0.2)


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


@pytest.mark.parametrize("shared", [False, True], ids=["own topics", "one topic"])
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


@pytest.mark.parametrize("shared", [False, True], ids=["own topics", "one topic"])
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


@pytest.mark.timeout(400)  # with the start of Spark, on a busy machine
@pytest.mark.parametrize("row_format", ["json", "avro"])
def test_rows_of_a_connector_are_the_shards_rows_in_each_format(
    stack: LocalStack, kind: IcebergKind, shards: MySqlSession, row_format: str
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

        written = [
            value
            for topic in (f"{line.pipeline.name}.lake_forms.t1", topics.ddl(line.pipeline).name)
            for value in line.stored(topic)
        ]
        assert {(value or b"?")[:1] == b"\0" for value in written} == {is_avro}
    finally:
        line.close()
