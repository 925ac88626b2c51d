from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.schemas.model.errors import UnsupportedDDL
from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.records.decisions import Binding
from shardmerge.spark_sink.loading.load_state import Attempt, Load, LoadKind
from shardmerge.spark_sink.planning.chunk_orders import ChunkOrder
from shardmerge.spark_sink.planning.ranges import Segment, ShardStream
from shardmerge.spark_sink.sources.chunk_task import chunk_task
from tests.strategies import table
from tests.unit.spark_sink.loading.loads import at

SHARD, TARGET = ShardId("s1", "app", "t_1"), TargetTable("merged", "t")
TABLE = table("CREATE TABLE t (a varchar(9), id int, kind int, gone int, PRIMARY KEY (id))")
COLUMNS = tuple(ShardColumn(f"{c.name}#1", c) for c in TABLE.columns)
BOUND = {"id#1": Binding("id#1", "id"), "a#1": Binding("a#1", "text")}


def order(where: str = "", key: tuple[str, ...] = ("id",)) -> ChunkOrder:
    load = Load(SHARD, TARGET, 1, LoadKind.CHUNKS, 1).plan(("5",)).begin(1)
    stream = ShardStream(SHARD, TARGET, (Segment(at(4), COLUMNS, key),), None, where=where)
    return ChunkOrder(replace(load, chunks=()), load.chunks[1], stream, BOUND, "secret", 10, 7)


def test_only_columns_that_the_target_has_are_read() -> None:
    task = chunk_task(order())
    assert [c.name for c in task.columns] == ["a", "id"]
    assert [(c.name, c.target) for c in task.rows.columns] == [("a", "text"), ("id", "id")]
    assert task.rows.key == ("id",)
    assert [k.name for k in task.key] == ["id"]
    assert (task.number, task.attempt) == (1, Attempt(1, 1, 1))
    assert (task.most_rows, task.writer_epoch) == (10, 7)
    assert task.leave_out == "secret"


def test_columns_of_the_condition_are_read_too() -> None:
    task = chunk_task(order(where="kind = 3"))
    assert [(c.name, c.target) for c in task.rows.columns] == [
        ("a", "text"),
        ("id", "id"),
        ("kind", ""),
    ]
    assert task.row_filter == "`kind` = 3"
    batch = task.rows.batch([("x", "6", "3"), ("y", "7", "4")])
    assert batch is not None
    assert [list(values) for values in batch.upserts[0].values] == [["x"], [6]]


def test_a_shard_whose_rows_cannot_be_written_says_why() -> None:
    with pytest.raises(UnsupportedDDL, match="primary-key column gone"):
        chunk_task(order(key=("id", "gone")))
