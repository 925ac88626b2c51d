"""Rows that become lines while they are read: the same rows as those of the values."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardmerge.spark_sink.rows.folding import row_batches, row_fold
from shardmerge.spark_sink.rows.folding.row_batches import LINES_FROM_ROWS, SETTLED_ROWS
from shardmerge.spark_sink.rows.folding.row_blocks import Block, RefusedRow
from shardmerge.spark_sink.rows.folding.row_fold import RowFold
from shardmerge.spark_sink.rows.folding.segment_plan import SegmentPlan
from shardmerge.spark_sink.rows.values.column_values import ColumnValues
from shardmerge.spark_sink.rows.values.forms import Form
from shardmerge.spark_sink.targets.mysql.lines.encoders import load_lines
from shardmerge.spark_sink.targets.mysql.lines.load_lines import LoadLines
from tests.unit.spark_sink.row_events import (
    INT,
    TEXT,
    at,
    fold,
    from_where,
    only,
    row,
    rows_of,
    segment,
)


class Readable:
    """Makes lines that can be split again, of values alone."""

    def of_values(
        self, forms: Sequence[Form], columns: Sequence[ColumnValues], nullable: Sequence[bool]
    ) -> list[bytes]:
        del forms, nullable
        return ["|".join(map(str, values)).encode() for values in zip(*columns, strict=True)]

    def of_records(self, plan: SegmentPlan) -> None:
        del plan


READABLE = Readable()


def split(block: Block) -> list[dict[str, str]]:
    lines = [line.decode().split("|") for line in block.lines]
    return [dict(zip(block.names, line, strict=True)) for line in lines]


@pytest.fixture
def early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows are many."""
    for module in (row_fold, row_batches):
        monkeypatch.setattr(module, "SETTLED_ROWS", 2)
    monkeypatch.setattr(row_batches, "LINES_FROM_ROWS", 1)


def add_all(f: RowFold, values: Sequence[bytes], at_once: int) -> None:
    for first in range(0, len(values), at_once):
        some = values[first : first + at_once]
        assert f.add_all(range(first, first + len(some)), some)


def test_many_rows_become_the_lines_that_their_values_would_become() -> None:
    count = LINES_FROM_ROWS + 2 * SETTLED_ROWS + 100
    values = [
        row("c", {"id": count - n, "v": None if n % 7 == 0 else f"a\t{n}"}, at(n))
        for n in range(count)
    ]
    both: list[Block] = []
    for maker in (None, LoadLines(is_mariadb=False)):
        f = fold(segment(id=INT, v=TEXT), maker=maker)
        add_all(f, values, 1_000)
        assert f.counts() == (count, 0)
        both += only(f.batches()).upserts
    plain, loaded = both

    assert plain.lines == ()
    assert loaded.lines == load_lines(plain.forms, plain.values, plain.has_nulls)
    assert (loaded.names, loaded.forms, loaded.rows) == (plain.names, plain.forms, count)
    # What a delete by key needs.
    assert [[*values] for values in loaded.values] == [[*plain.values[0]], []]


def test_few_rows_stay_values() -> None:
    f = fold(segment(id=INT, v=TEXT), maker=LoadLines(is_mariadb=False))
    for number in range(LINES_FROM_ROWS - 1):
        assert f.add(number, row("c", {"id": number, "v": "x"}, at(number)))

    [block] = only(f.batches()).upserts

    assert block.lines == ()
    assert len(block.values[1]) == LINES_FROM_ROWS - 1


@pytest.mark.usefixtures("early")
def test_the_key_of_lines_has_values_with_the_origin_columns() -> None:
    f = fold(from_where("id _from"), maker=READABLE, bindings={})
    add_all(f, [row("c", {"id": n, "v": "x"}, at(n)) for n in (3, 1, 2)], 3)

    [block] = only(f.batches()).upserts

    values = dict(zip(block.names, block.values, strict=True))
    assert {name: [*some] for name, some in values.items() if some} == {
        "id": [1, 2, 3],
        "@shard": ["s1/app.t"] * 3,
    }
    assert [line["id"] for line in split(block)] == ["1", "2", "3"]


@pytest.mark.usefixtures("early")
@pytest.mark.parametrize("key", ["id", "id v"])
@given(data=st.data())
def test_lines_and_values_are_the_same_rows(key: str, data: st.DataObject) -> None:
    segments = (
        segment(key=key, id=INT, v=TEXT),
        segment(at(50), key=key, id=INT, v=TEXT, w=TEXT),
    )
    changes = data.draw(
        st.lists(
            st.tuples(
                st.sampled_from("cud"), st.integers(0, 4), st.sampled_from("ab"), st.integers(0, 99)
            ),
            max_size=30,
        )
    )
    ordered = sorted(place for *_, place in changes)
    values = [
        row(op, {"id": n, "v": v} | ({"w": "w"} if place >= 50 else {}), at(place, row=number))
        for number, ((op, n, v, _), place) in enumerate(zip(changes, ordered, strict=True))
    ]
    at_once = data.draw(st.integers(1, 9))
    parts = data.draw(st.integers(1, 2))
    results = []
    for maker in (None, READABLE):
        folds = [fold(*segments, maker=maker) for _ in range(parts)]
        for number, f in enumerate(folds):
            # Records of one key are in one partition.
            mine = [v for v, (_, n, *_) in zip(values, changes, strict=True) if n % parts == number]
            add_all(f, mine, at_once)
        counts = [f.counts() for f in folds]
        batches = folds[0].batches(folds[1:])
        found = [
            (batch.key, rows_of(batch.deletes), [(split(b) or rows_of(b)) for b in batch.upserts])
            for batch in (only([b]) for b in batches)
        ]
        results.append((counts, found))
    assert results[0] == results[1]


@pytest.mark.usefixtures("early")
def test_a_value_that_does_not_fit_is_refused_by_its_offset() -> None:
    f = fold(segment(id=INT, v=INT), maker=LoadLines(is_mariadb=False))
    values = [row("c", {"id": n, "v": "bad" if n in (5, 8) else n}, at(100 + n)) for n in range(12)]
    add_all(f, values, 3)

    with pytest.raises(RefusedRow) as refused:
        f.batches()
    assert refused.value.offset == 5


@pytest.mark.usefixtures("early")
def test_a_value_that_does_not_fit_may_be_replaced_later() -> None:
    f = fold(segment(id=INT, v=INT), maker=READABLE)
    values = [row("c", {"id": n, "v": "bad" if n == 2 else n}, at(100 + n)) for n in range(6)]
    values += [row("u", {"id": 2, "v": 7}, at(200)), row("d", {"id": 0, "v": 0}, at(201))]
    add_all(f, values, 3)

    assert f.counts() == (5, 1)
    batch = only(f.batches())
    assert [r["v"] for r in split(batch.upserts[0])] == ["1", "7", "3", "4", "5"]
    assert rows_of(batch.deletes) == [{"id": "0"}]


@pytest.mark.usefixtures("early")
def test_rows_that_all_go_again_leave_deletes_alone() -> None:
    f = fold(segment(id=INT, v=INT), maker=READABLE)
    values = [row(op, {"id": n, "v": n}, at(100 + n)) for op in "cd" for n in range(4)]
    add_all(f, values, 4)

    assert f.counts() == (0, 4)
    batch = only(f.batches())
    assert sum(block.rows for block in batch.upserts) == 0
    assert len(rows_of(batch.deletes)) == 4
