from __future__ import annotations

import sqlite3
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardmerge.schemas.model.types import ColumnType
from shardmerge.spark_sink.loading.chunk_ranges import (
    KeyRange,
    behind,
    condition,
    even_boundaries,
    ranges,
    up_to,
)
from shardmerge.spark_sink.loading.key_order import KeyColumn

A, B, C = (KeyColumn(name, ColumnType("int")) for name in "abc")


def test_conditions_of_one_column_are_plain() -> None:
    assert condition([A], KeyRange(("1",), ("9",))) == "(`a` > 1) AND (`a` <= 9)"
    assert condition([A], KeyRange(None, ("9",))) == "(`a` <= 9)"
    assert condition([A], KeyRange()) == ""


def test_conditions_of_several_columns_have_no_row_constructors() -> None:
    assert behind([A, B], ("1", "2")) == "`a` >= 1 AND (`a` > 1 OR (`a` = 1 AND `b` > 2))"
    assert up_to([A, B], ("1", "2")) == "`a` <= 1 AND (`a` < 1 OR (`a` = 1 AND `b` <= 2))"


def test_a_descending_column_is_compared_the_other_way_round() -> None:
    down = KeyColumn("b", ColumnType("int"), descending=True)
    assert behind([down], ("2",)) == "`b` < 2"
    assert up_to([A, down], ("1", "2")) == "`a` <= 1 AND (`a` < 1 OR (`a` = 1 AND `b` >= 2))"


keys = st.tuples(*[st.integers(0, 3)] * 3)


@given(cut=st.lists(keys, max_size=5), descending=st.tuples(*[st.booleans()] * 3))
def test_each_key_is_in_one_range_and_in_some_range_even_if_boundaries_are_not_sorted(
    cut: list[tuple[int, ...]], descending: tuple[bool, ...]
) -> None:
    key = [
        KeyColumn(name, ColumnType("int"), descending=down)
        for name, down in zip("abc", descending, strict=True)
    ]
    order = [tuple(-v if d else v for v, d in zip(row, descending, strict=True)) for row in cut]
    is_sorted = order == sorted(set(order))
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE TABLE t (a, b, c)")
        rows = list(product(range(4), repeat=3))
        database.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        found: list[tuple[int, ...]] = []
        for part in ranges([tuple(map(str, row)) for row in cut]):
            where = condition(key, part) or "1"
            found += database.execute(f"SELECT a, b, c FROM t WHERE {where}").fetchall()
    database.close()
    assert set(found) == set(rows)
    if is_sorted:
        assert len(found) == len(rows)


def test_a_range_is_cut_in_two() -> None:
    assert KeyRange(("1",), None).cut(("5",)) == (KeyRange(("1",), ("5",)), KeyRange(("5",), None))


@pytest.mark.parametrize(
    ("least", "greatest", "rows", "expected"),
    [
        (1, 10, 10, ()),
        (1, 100, 100, ("10", "20", "30", "40", "50", "60", "70", "80", "90")),
        (1, 100, 50, ("20", "40", "60", "80")),  # every second number
        (-5, 14, 20, ("4",)),
        (1, 100, 1_000, ("10", "20", "30", "40", "50", "60", "70", "80", "90")),  # bad estimate
        (1, 1_000, 100, None),  # too thin
    ],
)
def test_dense_integers_are_cut_evenly(
    least: int, greatest: int, rows: int, expected: tuple[str, ...] | None
) -> None:
    found = even_boundaries(least, greatest, rows, 10)
    assert found == (None if expected is None else tuple((edge,) for edge in expected))


@given(
    least=st.integers(-(1 << 63), 1 << 63),
    span=st.integers(0, 5_000),
    rows=st.integers(0, 9_000),
    most=st.integers(1, 500),
)
def test_no_range_spans_more_numbers_than_four_times_its_rows(
    least: int, span: int, rows: int, most: int
) -> None:
    found = even_boundaries(least, least + span, rows, most)
    if found is not None:
        edges = [least - 1, *(int(edge) for (edge,) in found), least + span]
        widths = [b - a for a, b in pairwise(edges)]
        assert all(0 < width <= 4 * most for width in widths)
