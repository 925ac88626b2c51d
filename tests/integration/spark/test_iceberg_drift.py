"""Iceberg tables that another program changes: noticed, healed, adopted. And no false alarm."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
from click.testing import CliRunner

from shardmerge.cli.drift import lake_drift
from shardmerge.cli.drift.drift_shapes import ShownDrift
from shardmerge.cli.main import main
from shardmerge.connectors.kafka.topic_reader import TopicReader
from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.model.actions import Adoption
from shardmerge.schemas.pipeline import topics
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.pipeline.text import pipeline_text
from shardmerge.schemas.records import codec
from shardmerge.schemas.records.drift import MET_CODE, Difference
from shardmerge.schemas.records.plain import from_plain
from shardmerge.schemas.records.progress import SinkProgress
from shardmerge.schemas.target.drift import adoption_of
from shardmerge.spark_sink.process.settings import SinkSettings
from shardmerge.spark_sink.targets.iceberg.ddl.table_looks import LayoutComparer
from shardmerge.spark_sink.targets.iceberg.maintenance import Maintenance
from shardmerge.spark_sink.targets.iceberg.target import IcebergTarget
from shardmerge.spark_sink.targets.interface import JournalEntry
from tests.strategies import table
from tests.target_statements import written

from .contract import ORIGIN, Contract, IcebergKind, Writer
from .iceberg_line import IcebergLine, sink

# py4j leaves sockets to the collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
DONE = JournalEntry("done")


@pytest.fixture
def with_shards(kind: IcebergKind, stack: LocalStack) -> Contract:
    """A table whose rows say which shard they are from."""
    ddl = "create table t (id int not null primary key, v varchar(20), n int, _s varchar(64))"
    contract = Contract(kind, stack, ddl=ddl)
    contract.topic.make_topic()
    return contract


def comparer(writer: Writer) -> LayoutComparer:
    assert isinstance(writer.target, IcebergTarget)
    return writer.target.comparer()


def kinds(writer: Writer) -> dict[str, str]:
    compared = comparer(writer).compare(writer.contract.target)
    return {each.subject: each.kind.value for each in compared.differences}


# --- no false alarm


def test_the_sinks_own_life_is_no_drift(with_shards: Contract, kind: IcebergKind) -> None:
    """Statements of all kinds, rows, changes of rows, upkeep, and a writer that takes over."""
    contract, shard = with_shards, str(with_shards.shard)
    writer = contract.start()
    name = f"lake.{contract.target.sql}"

    def passes(what: str) -> None:
        assert kinds(writer) == {}, what

    assert writer.execute(1, contract.create()) == DONE
    passes("a new table")
    for number in range(3):
        contract.topic.produce([contract.insert(id=number, v="a", n=number, _s=shard)])
        writer.apply()
    passes("rows")
    for version, statement in enumerate(
        [
            contract.add("b decimal(10,2)"), contract.widen("n", "n bigint"),
            contract.rename("v", "w"), contract.add("v date"), contract.add("doomed bigint"),
            contract.drop("doomed"), contract.drop("gone"), contract.add("b decimal(10,2)"),
        ],
        2,
    ):  # fmt: skip
        assert writer.execute(version, statement) == DONE, statement
        passes(statement)
    assert writer.change(20, contract.fill(contract.shard, n="value 5")) == DONE
    passes("filled rows")
    assert writer.change(21, contract.remove(contract.shard)) == DONE
    assert contract.rows() == []
    passes("removed rows")
    assert isinstance(writer.target, IcebergTarget)
    maintenance = Maintenance(SinkSettings(Path()), contract.pipeline, writer.target)
    for number in range(3):
        image = {"id": number, "w": "a", "n": number, "_s": shard, "b": "1.50", "v": None}
        contract.topic.produce([contract.insert(**image)])
        altered = table(
            "create table t (id int not null primary key, w varchar(20), n bigint,"
            " _s varchar(64), b decimal(10,2), v date)"
        )
        writer.apply(contract.topic.segment(altered))
    maintenance.compact()
    passes("compacted files")
    for procedure in ("rewrite_manifests", "rewrite_position_delete_files"):
        kind.session.sql(f"CALL lake.system.{procedure}(table => '{contract.target.sql}')")
        passes(procedure)
    kind.execute(f"ALTER TABLE {name} ADD PARTITION FIELD bucket(4, id)")
    kind.execute(f"ALTER TABLE {name} WRITE ORDERED BY id")
    kind.execute(f"ALTER TABLE {name} CREATE TAG release")
    kind.execute(f"ALTER TABLE {name} SET TBLPROPERTIES ('team' = 'ann')")
    kind.execute(f"ALTER TABLE {name} ALTER COLUMN n FIRST")
    passes("what the sink does not decide")
    maintenance.expire(1, 0)
    passes("expired snapshots")
    writer = contract.start()
    passes("a new writer")
    assert len(contract.rows()) == 3


# --- columns


def test_columns_that_spark_changed_are_noticed_and_healed(
    contract: Contract, kind: IcebergKind
) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    contract.topic.produce([contract.insert(id=n, v=f"v{n}", n=n) for n in range(3)])
    writer.apply()
    rows = contract.rows()
    alter = f"ALTER TABLE lake.{contract.target.sql}"
    with drift_command(contract, kind) as command:
        for changes, wanted in (
            (["DROP COLUMN v"], {"column:v": "missing"}),
            (["RENAME COLUMN v TO text"], {"column:v": "missing", "column:text": "harmless"}),
            (["ADD COLUMN x struct<a: int>"], {"column:x": "harmless"}),
            (["DROP COLUMN v", "ADD COLUMN v string"], {"column:v": "values"}),
            (["SET IDENTIFIER FIELDS id"], {"identifier": "harmless"}),
        ):
            for change in changes:
                kind.execute(f"{alter} {change}")
            assert kinds(writer) == wanted, changes
            code, found = command("show", contract.target)
            assert {each.subject: each.kind for each in found.differences} == wanted
            assert code == ("missing" in wanted.values() or "values" in wanted.values())
            code, found = command("heal", contract.target, "--harmless", "--yes", "--by", "ann")
            assert (code, found.differences) == (0, ()), changes
            assert kinds(writer) == {}, changes
            assert contract.rows() == rows, "the values are back"
    contract.topic.produce([contract.insert(id=9, v="v9", n=9)])
    assert writer.apply().hold is None
    assert contract.rows() == [*rows, (9, "v9", 9)]


def test_a_statement_overwrites_no_change_and_other_tables_go_on(contract: Contract) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    other = replace(contract.target, table="other")
    statement = contract.create().replace(contract.target.sql, other.sql)
    kind: Any = contract.kind
    kind.execute(f"ALTER TABLE lake.{contract.target.sql} RENAME COLUMN v TO mine")

    entry = writer.execute(2, contract.rename("v", "w"))

    assert (entry.state, entry.code) == ("refused", MET_CODE), entry
    assert set(contract.columns()) == {"id", "mine", "n"}
    assert contract.start().journal.load()[contract.target, 2, 0] == entry
    writer = contract.start()
    assert writer.journal.execute(other, 1, 0, written(statement)) == DONE
    assert comparer(writer).compare(other).differences == ()


def test_a_column_that_others_added_keeps_its_values(contract: Contract) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    contract.topic.produce([contract.insert(id=n, v="a", n=n) for n in (1, 2)])
    writer.apply()
    kind: Any = contract.kind
    name = f"lake.{contract.target.sql}"
    kind.execute(f"ALTER TABLE {name} ADD COLUMNS (score double, more struct<a: int>)")
    kind.execute(f"UPDATE {name} SET score = 0.5, more = named_struct('a', 7) WHERE id = 1")

    def written_now(value: str) -> None:
        contract.topic.produce([contract.topic.event("u", {"id": 1, "v": value, "n": 1})])
        writer.apply()
        assert contract.rows() == [(1, value, 1, 0.5, (7,)), (2, "a", 2, None, None)]

    written_now("b")
    contract.topic.produce([contract.insert(id=2, v="a", n=2)])
    seen = comparer(writer).compare(contract.target)
    for number, each in enumerate(seen.differences, 10):
        adoption = adoption_of(each, seen.found)
        assert isinstance(adoption, Adoption)
        assert writer.change(number, replace(written("adopt"), actions=(adoption,))) == DONE
    assert kinds(writer) == {}
    written_now("c")
    assert contract.start().execute(20, contract.add("score double")) == DONE
    writer = contract.start()
    contract.topic.produce([contract.topic.event("u", {"id": 1, "v": "d", "n": 1})])
    writer.apply()
    assert contract.rows()[0] == (1, "d", 1, None, (7,)), "now the shards have the column"


# --- rows


def test_rows_that_others_commit_are_noticed_until_they_are_adopted(contract: Contract) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    contract.topic.produce([contract.insert(id=1, v="a", n=1)])
    writer.apply()
    kind: Any = contract.kind
    name = f"lake.{contract.target.sql}"
    for change in (
        f"INSERT INTO {name} VALUES (5, 'other', 5)",
        f"UPDATE {name} SET v = 'b' WHERE id = 5",
        f"DELETE FROM {name} WHERE id = 5",
    ):
        kind.execute(change)
        [found] = comparer(writer).compare(contract.target).differences
        assert (found.subject, found.kind.value) == ("rows", "values"), change
        assert "spark (" in found.found
        seen = comparer(writer).compare(contract.target)
        adoption = adoption_of(found, seen.found)
        assert isinstance(adoption, Adoption)
        snapshot = kind.iceberg().load(contract.target).snapshot_id
        assert f"snapshot {snapshot} of " in found.found
        number = 10 + len(writer.journal.load())
        said = replace(written("adopt"), actions=(adoption,))
        assert writer.change(number, said) == DONE
        assert kinds(writer) == {}, change
        contract.topic.produce([contract.insert(id=1, v="a", n=1)])
        writer.apply()
        assert kinds(writer) == {}, change


def test_a_table_that_is_set_back_is_noticed(contract: Contract) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    contract.topic.produce([contract.insert(id=1, v="a", n=1)])
    writer.apply()
    kind: Any = contract.kind
    first = kind.iceberg().load(contract.target).snapshot_id
    contract.topic.produce([contract.insert(id=2, v="a", n=1)])
    writer.apply()
    kind.session.sql(
        f"CALL lake.system.rollback_to_snapshot('{contract.target.sql}', {first})"
    ).collect()
    assert kinds(writer) == {"rollback": "values"}


# --- the table as a whole


def test_a_dropped_table_is_made_again_only_by_command(
    contract: Contract, kind: IcebergKind
) -> None:
    writer = contract.start()
    writer.execute(1, contract.create())
    contract.topic.produce([contract.insert(id=1, v="a", n=1)])
    writer.apply()
    kind.execute(f"DROP TABLE lake.{contract.target.sql}")
    assert kinds(writer) == {"table": "missing"}
    writer = contract.start()
    entry = writer.execute(1, contract.create())
    assert (entry.state, entry.code) == ("refused", "SM-3106")
    assert writer.journal.load() == {}
    with drift_command(contract, kind) as command:
        code, found = command("show", contract.target)
        assert (code, [each.subject for each in found.differences]) == (1, ["table"])
        assert command("heal", contract.target, "--yes")[0] == 0
    writer = contract.start()
    assert writer.execute(1, contract.create()) == DONE
    writer.apply()
    assert contract.rows() == [(1, "a", 1)]
    assert kinds(writer) == {}


# --- the driver's loop


@pytest.mark.timeout(600)
def test_the_sink_reports_drift_and_goes_on_until_it_is_adopted(
    stack: LocalStack, kind: IcebergKind
) -> None:
    line = IcebergLine(stack, kind, ORIGIN)
    a = line.shard("a")
    line.begin()
    line.send(a, table("create table t (id int primary key, x int)"))
    line.rows(a, {"id": 1, "x": 10})
    line.commit()
    line.turn()
    with sink(kind, line.pipeline, 0.2) as moves:
        target = kind.open(line.pipeline)
        assert target.drift is not None and isinstance(target, IcebergTarget)

        def until(wanted: set[str]) -> None:
            deadline = monotonic() + 120
            while {d.subject for d in kept()} != wanted:
                assert monotonic() < deadline, kept()
                moves()
                sleep(0.05)

        def kept() -> tuple[Any, ...]:
            assert target.drift is not None
            return target.drift.load().get(line.target, ())

        for _ in range(10):
            moves()
        kind.execute(f"ALTER TABLE lake.{line.target.sql} ADD COLUMN extra string")
        kind.execute(
            f"INSERT INTO lake.{line.target.sql} (id, x, _s, extra) VALUES (77, 0, '', '')"
        )
        until({"column:extra", "rows"})
        assert all(each.since_ms for each in kept())
        line.begin()
        line.rows(a, {"id": 2, "x": 20})
        line.commit()
        while len(line.found()) < 3:
            moves()
        reported = line_progress(stack, line)
        assert {each.subject for each in reported} == {"column:extra", "rows"}
        compared = target.comparer().compare(line.target)
        for each in compared.differences:
            adoption = adoption_of(each, compared.found)
            assert isinstance(adoption, Adoption)
            line.adopt(adoption)
        until(set())
    assert [row["id"] for row in line.found()] == [1, 2, 77]
    line.session.close()


def line_progress(stack: LocalStack, line: IcebergLine) -> tuple[Difference, ...]:
    """The differences in the sink's last record of progress about the target."""
    reader = TopicReader(stack.kafka)
    try:
        [extent] = reader.extents([topics.sink_progress(line.pipeline).name])
        values = [record.value for record in reader.records(extent) if record.value]
    finally:
        reader.close()
    found = [codec.decode(value) for value in values]
    told = [each for each in found if isinstance(each, SinkProgress) and each.target == line.target]
    return told[-1].drift


@contextmanager
def drift_command(contract: Contract, kind: IcebergKind) -> Iterator[Any]:
    """``shardmerge drift`` with the Spark of the tests; returns its exit code and its report."""
    route = RoutingRule("s", "app", "t", contract.target.database, contract.target.table)
    target = kind.open(contract.pipeline)
    assert isinstance(target, IcebergTarget)
    file = Path(kind.catalog.properties[1][1]).parent / f"{contract.name}.toml"
    file.write_text(pipeline_text(replace(contract.pipeline, routes=(route,))))

    def command(*words: object) -> tuple[int, ShownDrift]:
        call = ["drift", *map(str, words), "--pipeline", str(file), "--json"]
        result = CliRunner().invoke(main, call, catch_exceptions=False)
        assert result.exit_code in (0, 1), result.output
        return result.exit_code, from_plain(ShownDrift, json.loads(result.stdout))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lake_drift, "IcebergTarget", lambda *_: target)
        yield command
