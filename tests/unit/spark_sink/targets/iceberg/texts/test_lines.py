"""Lines for Spark and the MERGE that reads them: what is written, what is refused."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from shardmerge.spark_sink.rows.folding.row_batches import Batch
from shardmerge.spark_sink.rows.folding.row_blocks import Block
from shardmerge.spark_sink.rows.values.forms import Form
from shardmerge.spark_sink.targets.iceberg.texts.encoders import Unwritable
from shardmerge.spark_sink.targets.iceberg.texts.layout import Field
from shardmerge.spark_sink.targets.iceberg.texts.lines import (
    lines_of,
)
from shardmerge.spark_sink.targets.iceberg.texts.merge import changes_sql, merge_sql

COLUMNS = (Field(1, "id", "int", required=True), Field(2, "V", "string"))


def block(**columns: tuple[Form, Sequence[object]]) -> Block:
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
    ids, texts = (Form.INTEGER, [1, 2]), (Form.TEXT, ['"\\\n\t😀', None])

    found = read(block(v=texts, id=ids), deletes=block(id=(Form.INTEGER, [3])), group=2)

    assert found == [["7", "4", "3", None], ["7", "5", "1", '"\\\n\t😀'], ["7", "5", "2", None]]


def test_a_column_that_a_row_does_not_have_is_null() -> None:
    assert read(block(id=(Form.INTEGER, [1]))) == [["7", "1", "1", None]]


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        (block(id=(Form.INTEGER, [1, None])), "id is NOT NULL"),
        (block(v=(Form.TEXT, ["x"])), "id is NOT NULL"),
        (block(id=(Form.INTEGER, [1]), w=(Form.TEXT, ["x"])), "lacks column w"),
        (block(id=(Form.TEXT, ["1"])), "no place in a column of type int"),
    ],
)
def test_what_has_no_place_is_refused(columns: Block, reason: str) -> None:
    with pytest.raises(Unwritable, match=reason):
        read(columns)


def test_the_merge_writes_every_column_and_finds_rows_by_the_key() -> None:
    changes = changes_sql("lines", COLUMNS, ("ID",), None, distinct=False)
    sql = merge_sql("`lake`.`m`.`t`", COLUMNS, ("ID",), changes)

    assert "CAST(a[2] AS int) AS c0, a[3] AS c1 " in changes
    assert sql.startswith(f"MERGE INTO `lake`.`m`.`t` t USING ({changes}) s ON t.`id` = s.c0 ")
    assert "UPDATE SET t.`id` = s.c0, t.`V` = s.c1 " in sql
    assert sql.endswith("INSERT (`id`, `V`) VALUES (s.c0, s.c1)")
    assert "row_number" not in changes
    assert "PARTITION BY c0 ORDER BY rank DESC" in changes_sql(
        "lines", COLUMNS, ("id",), [3], distinct=True
    )
