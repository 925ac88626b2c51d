from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.agents.status.matrix import MAX_ROWS, Cell, Matrix, matrix
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.records.decisions import Release
from tests.example_pages import ORDERS, ExampleLine, example, orders, pipeline, wide


def shown(found: Matrix) -> dict[str, dict[str, tuple[str, str]]]:
    """Shard → column → cell."""
    return {
        str(shard): {
            column.name: (cell.kind.value, cell.text)
            for column, cell in zip(found.columns, row.cells, strict=True)
        }
        for row in found.rows
        for shard in row.shards
    }


def target_of(line: ExampleLine):
    target = line.view.target(str(ORDERS))
    assert target is not None
    return target


@pytest.fixture(scope="module")
def full() -> dict[str, dict[str, tuple[str, str]]]:
    return shown(matrix(target_of(example())))


@pytest.mark.parametrize(
    ("shard", "column", "cell"),
    [
        (orders(1), "buyer", ("same", "")),
        (orders(0), "buyer", ("renamed", "customer")),
        (orders(0), "total", ("same", "")),
        (orders(1), "total", ("type differs", "int NOT NULL")),
        (orders(2), "note", ("dropped", "")),
        (orders(5), "level", ("missing", "")),
        (orders(7), "level", ("waits", "date")),
    ],
)
def test_a_cell_says_what_the_shard_has_of_the_column(full, shard, column, cell):
    assert full[str(shard)][column] == cell


def test_columns_that_all_shards_have_are_shown_only_when_asked_for():
    target = target_of(example())
    short, whole = matrix(target), matrix(target, every_column=True)
    assert short.alike == ("id", "created")
    assert [c.name for c in short.columns] == ["buyer", "total", "note", "level"]
    assert whole.alike == ()
    assert [c.name for c in whole.columns] == [
        "id", "buyer", "total", "note", "created", "level",
    ]  # fmt: skip


def test_equal_shards_are_one_row_and_those_that_stand_come_first():
    found = matrix(target_of(example()))
    assert [(row.state, len(row.shards)) for row in found.rows] == [
        ("held", 1), ("paused", 1), ("waits", 1),
        ("flows", 1), ("flows", 1), ("flows", 2), ("flows", 5),
    ]  # fmt: skip
    assert (found.total, found.found, found.row_count) == (12, 12, 7)


def test_the_search_keeps_shards_whose_name_contains_it():
    found = matrix(target_of(example()), "ORDERS_1")
    assert sorted(shown(found)) == ["s1/app.orders_10", "s2/app.orders_1", "s2/app.orders_11"]
    assert found.found == 3
    assert matrix(target_of(example()), "nobody").rows == ()


def test_shards_that_came_to_the_same_columns_by_different_ways_are_one_row():
    line = ExampleLine(pipeline())
    line.table(orders(0), "id INT PRIMARY KEY, a INT")
    line.table(orders(1), "a INT, id INT PRIMARY KEY")
    assert len(matrix(target_of(line)).rows) == 1


def test_two_types_that_both_differ_are_two_rows():
    line = ExampleLine(pipeline())
    for number, kind in enumerate(("BIGINT", "INT", "SMALLINT")):
        line.table(orders(number), f"id INT PRIMARY KEY, a {kind}")
    cells = [row.cells[0].text for row in matrix(target_of(line)).rows]
    assert sorted(cells) == ["", "int", "smallint"]


def test_a_column_that_is_left_out_of_a_shards_rows_says_so():
    line = ExampleLine(pipeline())
    line.table(orders(0), "id INT PRIMARY KEY, a INT")
    line.table(orders(1), "id INT PRIMARY KEY, a INT")
    latest = target_of(line).decisions[0]
    columns = (latest.columns[0], ShardColumn("", latest.columns[1].column))
    line.view.apply(replace(latest, version=3, columns=columns, releases=(Release(orders(0), 1),)))
    found = shown(matrix(target_of(line)))
    assert found[str(latest.shard)]["a"] == ("left out", "")


def test_a_left_out_column_that_the_target_lacks_has_a_column_of_its_own():
    line = ExampleLine(pipeline())
    line.table(orders(0), "id INT PRIMARY KEY, a INT")
    latest = target_of(line).decisions[0]
    extra = ShardColumn("", replace(latest.columns[1].column, name="odd"))
    line.view.apply(replace(latest, version=2, columns=(*latest.columns, extra)))
    found = matrix(target_of(line))
    assert [(c.name, c.id) for c in found.columns] == [("odd", "")]
    assert shown(found)[str(orders(0))]["odd"] == ("left out", "")


def test_a_shard_that_left_is_not_in_the_picture():
    line = ExampleLine(pipeline())
    line.table(orders(0), "id INT PRIMARY KEY")
    line.table(orders(1), "id INT PRIMARY KEY")
    line.run(orders(1), "DROP TABLE orders_1")
    assert list(shown(matrix(target_of(line), every_column=True))) == [str(orders(0))]


def test_the_counts_of_a_column_are_those_of_all_rows_not_of_the_page():
    target = wide(1_000, 50, odd=10).target(str(ORDERS))
    assert target is not None
    found = matrix(target, page=2)
    assert (found.pages, found.page, len(found.rows)) == (2, 2, MAX_ROWS)
    assert found.row_count == 100
    lacking = sum(len(column.missing_on) for column in target.columns)
    assert sum(column.counts[Cell.MISSING] for column in found.columns) == lacking > 100
    assert matrix(target, page=99).page == 2


def test_a_definition_that_many_shards_share_is_compared_once():
    compared = 0

    class Counted(str):
        __slots__ = ()

        def casefold(self) -> str:
            nonlocal compared
            compared += 1
            return str.casefold(self)

    target = wide(1_000, 10, odd=1_000).target(str(ORDERS))
    assert target is not None
    columns = tuple(replace(c, name=Counted(c.name)) for c in target.columns)
    matrix(replace(target, columns=columns))
    assert compared < 100
