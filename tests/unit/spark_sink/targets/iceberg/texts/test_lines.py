"""Lines for Spark and the MERGE that reads them: what is written, what is refused."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from shardmerge.schemas.model.names import ShardId, TargetTable
from shardmerge.schemas.model.position import BEGINNING
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import Column
from shardmerge.schemas.model.types import ColumnType
from shardmerge.spark_sink.planning.ranges import Segment, ShardStream
from shardmerge.spark_sink.rows.folding.row_batches import Batch
from shardmerge.spark_sink.rows.folding.row_blocks import Block
from shardmerge.spark_sink.rows.values.cells import Cells
from shardmerge.spark_sink.rows.values.columns import Form, encoder
from shardmerge.spark_sink.targets.iceberg.texts.layout import Field
from shardmerge.spark_sink.targets.iceberg.texts.lines import (
    Unwritable,
    for_lines,
    lines_of,
    values_sql,
)
from shardmerge.spark_sink.targets.iceberg.texts.merge import changes_sql, merge_sql

COLUMNS = (Field(1, "id", "int", required=True), Field(2, "V", "string"))


def block(**columns: tuple[Form, Sequence[str | None]]) -> Block:
    cells = [list(cells) for _, cells in columns.values()]
    return Block(
        tuple(columns),
        tuple(form for form, _ in columns.values()),
        tuple(cells),
        tuple(None in c for c in cells),
        len(cells[0]),
    )


def read(*blocks: Block, deletes: Block | None = None, group: int = 0) -> list[list[str | None]]:
    batch = Batch(("id",), deletes, blocks)
    return [json.loads(line) for line in lines_of(7, group, batch, COLUMNS)]


def test_a_line_has_task_rank_and_a_cell_per_column_of_the_table() -> None:
    ids, texts = (Form.NUMBER, ["1", "2"]), (Form.TEXT, ['"\\\n\t😀', None])

    found = read(block(v=texts, id=ids), deletes=block(id=(Form.NUMBER, ["3"])), group=2)

    assert found == [["7", "4", "3", None], ["7", "5", "1", '"\\\n\t😀'], ["7", "5", "2", None]]


def test_a_column_that_a_row_does_not_have_is_null() -> None:
    assert read(block(id=(Form.NUMBER, ["1"]))) == [["7", "1", "1", None]]


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        (block(id=(Form.NUMBER, ["1", None])), "id is NOT NULL"),
        (block(v=(Form.TEXT, ["x"])), "id is NOT NULL"),
        (block(id=(Form.NUMBER, ["1"]), w=(Form.TEXT, ["x"])), "lacks column w"),
        (block(id=(Form.TEXT, ["1"])), "no place in a column of type int"),
    ],
)
def test_what_has_no_place_is_refused(columns: Block, reason: str) -> None:
    with pytest.raises(Unwritable, match=reason):
        read(columns)


def cells(form: Form, kind: str, values: Cells) -> list[str | None]:
    batch = Batch(("c",), None, (block(c=(form, values)),))
    return [json.loads(line)[2] for line in lines_of(0, 0, batch, (Field(1, "c", kind),))]


def test_times_are_microseconds() -> None:
    texts: Cells = ["838:59:59", "-838:59:58.999999", "-00:00:00.000001", "00:00:01.5", None]

    assert cells(Form.TIME, "long", texts) == [
        "3020399000000", "-3020398999999", "-1", "1500000", None,
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["date", "timestamp", "timestamptz"])
def test_dates_of_month_or_day_0_are_null(kind: str) -> None:
    form = Form.DATE if kind == "date" else Form.DATETIME
    texts: Cells = ["0000-00-00", "2020-00-01", "2020-01-00", "2020-10-10 00:00:00-00", None]

    assert cells(form, kind, texts) == [None, None, None, "2020-10-10 00:00:00-00", None]


def test_an_enums_error_value_is_the_empty_text() -> None:
    kind = ColumnType("enum", elements=("a", "b"))
    segment = Segment(BEGINNING, (ShardColumn("e#1", Column("e", kind)),), ())
    stream = ShardStream(ShardId("s", "d", "t"), TargetTable("m", "t"), (segment,), None)

    [column] = for_lines(stream).segments[0].columns

    assert encoder(column.column.type).encode(["", "a"]) == ["", "a"]
    assert for_lines(for_lines(stream)) == for_lines(stream)


def test_the_merge_writes_every_column_and_finds_rows_by_the_key() -> None:
    changes = changes_sql("lines", COLUMNS, ("ID",), None, distinct=False)
    sql = merge_sql("`lake`.`m`.`t`", COLUMNS, ("ID",), changes)

    assert values_sql(COLUMNS) == ["CAST(a[2] AS int)", "a[3]"]
    assert sql.startswith(f"MERGE INTO `lake`.`m`.`t` t USING ({changes}) s ON t.`id` = s.c0 ")
    assert "UPDATE SET t.`id` = s.c0, t.`V` = s.c1 " in sql
    assert sql.endswith("INSERT (`id`, `V`) VALUES (s.c0, s.c1)")
    assert "row_number" not in changes
    assert "PARTITION BY c0 ORDER BY rank DESC" in changes_sql(
        "lines", COLUMNS, ("id",), [3], distinct=True
    )
