from __future__ import annotations

import json
from dataclasses import replace

import pytest

from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.model.names import ShardId
from shardmerge.schemas.model.tables import TableSchema
from shardmerge.schemas.pipeline.settings import Source as SourceSettings
from shardmerge.spark_sink.planning.chunk_orders import ChunkEnd, ChunkFailure
from shardmerge.spark_sink.targets.iceberg import chunk_lines as module
from shardmerge.spark_sink.targets.iceberg.chunk_lines import (
    ReadChunk,
    chunk_lines,
    lines_of_chunk,
)
from shardmerge.spark_sink.targets.iceberg.heads import read_head
from shardmerge.spark_sink.targets.iceberg.texts.encoders import Unwritable
from shardmerge.spark_sink.targets.iceberg.texts.layout import Field
from tests.unit.spark_sink.sources.test_chunk_task import SHARD, TABLE, order
from tests.unit.spark_sink.targets.mysql.tasks.test_chunk_load import Source

COLUMNS = (Field(1, "id", "int", required=True), Field(2, "text", "string"))
SETTINGS = SourceSettings("s1", "127.0.0.1", 1, "u", "p", 1)


class ShownTable(Source):
    def table(self, shard: ShardId) -> TableSchema | None:
        assert shard == SHARD
        return self.shown


def source(*rows: tuple[str | None, ...], shown: TableSchema = TABLE) -> Source:
    return ShownTable(shown=shown, found=list(rows))


def test_a_chunk_becomes_lines_in_the_order_of_the_tables_columns() -> None:
    read, lines = lines_of_chunk(order(), source(("ä", "6"), (None, "7")), COLUMNS)
    assert [json.loads(line) for line in lines] == [["0", "1", "6", "ä"], ["0", "1", "7", None]]
    assert (read.result.end, read.result.rows, read.key, read.count) == (
        ChunkEnd.DONE,
        2,
        ("id",),
        2,
    )


def test_rows_that_the_route_leaves_out_are_no_lines() -> None:
    found = source(("x", "6", "3"), ("y", "7", "4"))
    read, lines = lines_of_chunk(order(where="kind = 3"), found, COLUMNS)
    assert (read.result.rows, read.count, len(lines)) == (2, 1, 1)


def test_another_table_has_no_lines() -> None:
    other = replace(TABLE, columns=TABLE.columns[:-1])
    read, lines = lines_of_chunk(order(), source(("x", "6"), shown=other), COLUMNS)
    assert (read.result.end, lines) == (ChunkEnd.OTHER_TABLE, [])


def test_a_value_that_does_not_fit_is_refused() -> None:
    required = (COLUMNS[0], replace(COLUMNS[1], required=True))
    with pytest.raises(Unwritable, match="NOT NULL"):
        lines_of_chunk(order(), source((None, "7")), required)


def head_of_failure(monkeypatch: pytest.MonkeyPatch, error: Exception) -> ChunkFailure:
    def fail(*_: object) -> tuple[ReadChunk, list[str]]:
        raise error

    monkeypatch.setattr(module, "lines_of_chunk", fail)
    [head] = chunk_lines([order()], SETTINGS, COLUMNS)
    failure = read_head(head)
    assert isinstance(failure, ChunkFailure)
    return failure


def test_an_error_becomes_a_head(monkeypatch: pytest.MonkeyPatch) -> None:
    failure = head_of_failure(monkeypatch, StackError("gone", hint="look", code="SM-4402"))
    assert (failure.message, failure.hint, failure.code) == ("gone", "look", "SM-4402")
    failure = head_of_failure(monkeypatch, Unwritable("too wide", "widen it"))
    assert (failure.message, failure.code, failure.number) == ("too wide", "SM-1521", 1)


def test_a_line_is_no_head() -> None:
    assert read_head('["0","1"]') is None
