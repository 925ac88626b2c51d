from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.spark_sink.loading.load_state import LoadKind
from shardmerge.spark_sink.planning.chunk_orders import ChunkEnd, ChunkOrder, ChunkResult
from shardmerge.spark_sink.rows.folding.line_maker import LineMaker
from shardmerge.spark_sink.rows.folding.row_batches import Batch
from shardmerge.spark_sink.sources.chunk_task import ChunkTask, chunk_task
from shardmerge.spark_sink.targets.mysql.tasks.snapshot_task import read_snapshot
from tests.strategies import table
from tests.unit.spark_sink.loading.loads import at
from tests.unit.spark_sink.sources.test_chunk_task import SHARD, TABLE, order


def snapshot_order(**changes: Any) -> ChunkOrder:
    made = order(key=(), **changes)
    load = replace(made.load, kind=LoadKind.SNAPSHOT).plan().begin(0)
    return replace(made, load=replace(load, chunks=()), chunk=load.chunks[0])


class Source:
    def __init__(self, *parts: Sequence[Sequence[Any]]) -> None:
        self.parts, self.sql, self.is_open = parts, "", False
        self.shown: TableSchema | None = replace(TABLE, indexes=())
        self.lost = False

    def begin(self, shard: ShardId) -> SourcePosition:
        assert shard == SHARD
        self.is_open = True
        return at(70)

    def table(self, shard: ShardId) -> TableSchema | None:
        return self.shown

    def rows(self, sql: str, most: int, size: int) -> Iterator[Sequence[Sequence[Any]]]:
        self.sql = sql
        yield from self.parts
        if self.lost:
            raise StackError("the server is gone", code="SM-4409")

    def end(self) -> None:
        self.is_open = False


class Stage:
    maker: LineMaker | None = None

    def __init__(self, source: Source) -> None:
        self.source, self.is_wanted, self.counts = source, True, True
        self.moves_on = 0
        self.batches: list[Batch] = []
        self.finished: list[ChunkResult] = []

    def begin(self, task: ChunkTask) -> bool:
        return self.is_wanted

    def add(self, task: ChunkTask, batch: Batch) -> bool:
        self.batches.append(batch)
        return self.moves_on != len(self.batches)

    def finish(self, task: ChunkTask, result: ChunkResult) -> bool:
        assert not self.source.is_open
        self.finished.append(result)
        return self.counts


def test_all_rows_go_beside_the_target_and_the_chunk_has_the_snapshots_position() -> None:
    source = Source([("x", "6"), ("y", "7")], [("z", None)])
    stage = Stage(source)
    result = read_snapshot(chunk_task(snapshot_order()), source, stage)
    assert result == ChunkResult(SHARD, 0, ChunkEnd.DONE, 3, 5, at(70))
    assert source.sql == "SELECT `a`, `id` FROM `app`.`t_1`"
    blocks = [block for batch in stage.batches for block in batch.upserts]
    # Columns are called by their places in the shard's table.
    assert [block.names for block in blocks] == [("c0", "c1")] * 2
    assert [list(values) for values in blocks[1].values] == [["z"], [None]]


def test_rows_that_are_not_merged_stay_out() -> None:
    source = Source([("x", "6", "3"), ("y", "7", "4")], [("z", "8", "5")])
    stage = Stage(source)
    result = read_snapshot(chunk_task(snapshot_order(where="kind = 3")), source, stage)
    assert (result.rows, len(stage.batches)) == (3, 1)
    assert source.sql.endswith("WHERE (`kind` = 3)")


@pytest.mark.parametrize("shown", [None, table("CREATE TABLE t (id int, PRIMARY KEY (id))")])
def test_another_table_is_not_read(shown: TableSchema | None) -> None:
    source = Source([("x", "6")])
    source.shown = shown
    stage = Stage(source)
    result = read_snapshot(chunk_task(snapshot_order()), source, stage)
    assert result.end is ChunkEnd.OTHER_TABLE and result.detail
    assert (stage.batches, stage.finished, source.is_open) == ([], [], False)


def test_an_attempt_that_is_not_wanted_is_refused() -> None:
    for attribute in ("is_wanted", "counts"):
        source = Source([("x", "6")])
        stage = Stage(source)
        setattr(stage, attribute, False)
        result = read_snapshot(chunk_task(snapshot_order()), source, stage)
        assert result.end is ChunkEnd.REFUSED


def test_an_attempt_ends_early_when_the_load_has_moved() -> None:
    source = Source([("x", "6")], [("y", "7")], [("z", "8")])
    stage = Stage(source)
    stage.moves_on = 2
    result = read_snapshot(chunk_task(snapshot_order()), source, stage)
    assert result.end is ChunkEnd.REFUSED
    assert (len(stage.batches), stage.finished, source.is_open) == (2, [], False)


def test_a_transaction_that_is_lost_finishes_nothing() -> None:
    source = Source([("x", "6")])
    source.lost = True
    stage = Stage(source)
    with pytest.raises(StackError):
        read_snapshot(chunk_task(snapshot_order()), source, stage)
    assert (len(stage.batches), stage.finished, source.is_open) == (1, [], False)
