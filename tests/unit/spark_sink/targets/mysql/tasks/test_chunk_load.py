from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.spark_sink.loading.key_order import key_columns
from shardmerge.spark_sink.loading.load_state import LoadKind
from shardmerge.spark_sink.planning.chunk_orders import ChunkEnd, ChunkResult
from shardmerge.spark_sink.rows.folding.line_maker import LineMaker
from shardmerge.spark_sink.rows.folding.loaded_rows import LoadedColumn, LoadedRows
from shardmerge.spark_sink.rows.folding.row_batches import Batch
from shardmerge.spark_sink.rows.values.forms import Form
from shardmerge.spark_sink.rows.values.server_values import server_reader
from shardmerge.spark_sink.sources.chunk_task import ChunkTask, Pack
from shardmerge.spark_sink.sources.packed_rows import PackedRows
from shardmerge.spark_sink.targets.mysql.tasks.chunk_load import Lines, load_chunk
from tests.strategies import table
from tests.unit.spark_sink.loading.loads import SHARD, at, load
from tests.unit.spark_sink.sources.packets import packed

TABLE = table("CREATE TABLE t (id int, a varchar(9), PRIMARY KEY (id))")
LOAD = load(LoadKind.CHUNKS, "5").begin(1)
TASK = ChunkTask(
    replace(LOAD, chunks=()),
    1,
    LOAD.chunks[1].given,
    LOAD.chunks[1].range,
    tuple(ShardColumn(f"{c.name}#1", c) for c in TABLE.columns),
    ("id",),
    key_columns(TABLE),
    TABLE.columns,
    "",
    LoadedRows(
        tuple(LoadedColumn(c.name, c.type, c.name, server_reader(c)) for c in TABLE.columns),
        ("id",),
    ),
    "",
    3,
    7,
)

SELECT = "SELECT `id`, `a` FROM `app`.`t` FORCE INDEX (PRIMARY) WHERE (`id` > 5) ORDER BY `id`"


@dataclass
class Source:
    shown: TableSchema | None = TABLE
    found: list[tuple[str | None, ...]] = field(default_factory=lambda: [("6", "ä"), ("7", None)])
    calls: list[str] = field(default_factory=list)
    fails: bool = False

    def begin(self) -> None:
        self.calls.append("begin")

    def table(self, shard: ShardId) -> TableSchema | None:
        assert shard == SHARD
        self.calls.append("table")
        return self.shown

    def rows(self, sql: str, most: int) -> Sequence[Sequence[Any]]:
        self.calls.append(sql)
        if self.fails:
            raise StackError("gone", code="SM-4402")
        return self.found[:most]

    def packed_rows(self, sql: str, most: int, columns: int) -> PackedRows:
        self.calls.append(f"packed: {sql}")
        found = [[None if v is None else v.encode() for v in row] for row in self.found]
        return packed(found[:most], columns)

    def end(self) -> None:
        self.calls.append("end")

    def binlog_end(self) -> SourcePosition:
        self.calls.append("binlog end")
        return at(77)


@dataclass
class Target:
    wanted: bool = True
    maker: LineMaker | None = None
    batches: list[Batch | Lines | None] = field(default_factory=list)
    results: list[ChunkResult] = field(default_factory=list)
    packs: Pack[Lines] | None = None

    def maker_for(self, task: ChunkTask) -> LineMaker | None:
        assert task is TASK
        return self.maker

    def pack(self, task: ChunkTask) -> Pack[Lines] | None:
        assert task is TASK
        return self.packs

    def write(self, task: ChunkTask, result: ChunkResult, batch: Batch | Lines | None) -> bool:
        assert task is TASK
        self.results.append(result)
        self.batches.append(batch)
        return self.wanted


def test_a_chunk_is_read_in_one_transaction_and_written_in_another() -> None:
    source, target = Source(), Target()
    result = load_chunk(TASK, source, target)
    assert source.calls == [
        "begin",
        "table",
        SELECT,
        "binlog end",
        "end",
    ]
    assert result == ChunkResult(SHARD, 1, ChunkEnd.DONE, 2, 3, at(77))
    assert target.results == [result]
    (batch,) = target.batches
    assert isinstance(batch, Batch)
    assert [list(values) for values in batch.upserts[0].values] == [[6, 7], ["ä", None]]


def test_rows_are_written_as_they_were_sent_if_the_target_can_read_that() -> None:
    lines = Lines(("id", "a"), (Form.INTEGER, Form.TEXT), bytearray(b"6\t\xc3\xa4\n"))
    source, target = Source(), Target(packs=lambda _: lines)
    result = load_chunk(TASK, source, target)
    assert source.calls[2] == f"packed: {SELECT}"
    assert source.calls[3:] == ["binlog end", "end"]
    assert result == ChunkResult(SHARD, 1, ChunkEnd.DONE, 2, 4, at(77))
    assert target.batches == [lines]


def test_rows_are_read_again_in_the_same_transaction_if_it_cannot() -> None:
    source, target = Source(), Target(packs=lambda _: None)
    result = load_chunk(TASK, source, target)
    assert source.calls[2:] == [f"packed: {SELECT}", SELECT, "binlog end", "end"]
    assert result == ChunkResult(SHARD, 1, ChunkEnd.DONE, 2, 3, at(77))
    (batch,) = target.batches
    assert isinstance(batch, Batch)


def test_packed_rows_that_are_too_many_are_not_written() -> None:
    source = Source(found=[(str(n), "") for n in range(6, 10)])
    target = Target(packs=lambda _: None)
    assert load_chunk(TASK, source, target).end is ChunkEnd.TOO_LARGE
    assert (source.calls[3:], target.results) == (["end"], [])


def test_an_empty_chunk_is_done_too() -> None:
    target = Target()
    assert load_chunk(TASK, Source(found=[]), target).end is ChunkEnd.DONE
    assert target.batches == [None]


@pytest.mark.parametrize(
    ("shown", "detail"),
    [
        (None, "there is no such table"),
        (table("CREATE TABLE t (id int, PRIMARY KEY (id))"), "column a is not there"),
    ],
)
def test_another_table_is_not_read(shown: TableSchema | None, detail: str) -> None:
    source, target = Source(shown), Target()
    result = load_chunk(TASK, source, target)
    assert (result.end, result.detail) == (ChunkEnd.OTHER_TABLE, detail)
    assert source.calls == ["begin", "table", "end"]
    assert target.results == []


def test_a_chunk_with_too_many_rows_is_not_written() -> None:
    target = Target()
    result = load_chunk(TASK, Source(found=[(str(n), "") for n in range(6, 10)]), target)
    assert result.end is ChunkEnd.TOO_LARGE
    assert target.results == []


def test_a_chunk_that_is_not_wanted_says_so() -> None:
    assert load_chunk(TASK, Source(), Target(wanted=False)).end is ChunkEnd.REFUSED


def test_the_sources_transaction_ends_whatever_happens() -> None:
    source = Source(fails=True)
    with pytest.raises(StackError):
        load_chunk(TASK, source, Target())
    assert source.calls[-1] == "end"
