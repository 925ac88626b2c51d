"""Every type in an Iceberg table: its boundary values, and a comparison that finds each change."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from shardmerge.cli.validation.repairs import statements
from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.pipeline.settings import Kafka
from shardmerge.spark_sink.planning.ranges import RangeResult
from shardmerge.spark_sink.targets.iceberg.target import IcebergTarget
from shardmerge.spark_sink.targets.interface import JournalEntry
from tests.breadth import with_further

from . import iceberg_values, values
from .contract import Contract

# py4j leaves sockets to the collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
DONE = JournalEntry("done")


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
