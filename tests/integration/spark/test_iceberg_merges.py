"""Batches merged into an Iceberg table: what is held, which row a key is, and what upkeep keeps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from shardmerge.local.servers.stack import LocalStack
from shardmerge.schemas.model.errors import TargetError
from shardmerge.schemas.target.row_statements import clearing
from shardmerge.spark_sink.planning.ranges import RangeResult, TaskFailure
from shardmerge.spark_sink.process.settings import SinkSettings
from shardmerge.spark_sink.targets.iceberg.maintenance import Maintenance
from shardmerge.spark_sink.targets.iceberg.target import IcebergTarget
from tests.target_statements import NO_REASON

from .contract import Contract, IcebergKind

# py4j leaves sockets to the collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


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
