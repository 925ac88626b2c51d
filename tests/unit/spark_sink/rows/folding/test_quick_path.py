"""When records become lines at once, and what is counted then.

That the rows are the same on both ways is held by ``tests/properties/test_record_lines.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from shardmerge.spark_sink.rows.folding import quick_path, row_batches, row_fold
from shardmerge.spark_sink.rows.folding.line_maker import RecordLines, TakenRecords
from shardmerge.spark_sink.rows.folding.quick_path import DirectLines
from shardmerge.spark_sink.rows.folding.segment_plan import SegmentPlan
from shardmerge.spark_sink.rows.values.column_values import ColumnValues
from shardmerge.spark_sink.rows.values.forms import Form
from tests.unit.spark_sink.row_events import INT, at, fold, marked, only, row, segment


class Taking:
    """Takes every record that does not name 9; each record's id is its key."""

    def __init__(self) -> None:
        self.calls: list[int] = []

    def take(
        self, values: Sequence[bytes], file: str, low: float, high: float, *, wrapped: bool
    ) -> TakenRecords:
        assert (file, wrapped) == ("binlog.000001", False)
        assert low < high
        count = next((n for n, value in enumerate(values) if b'"id": 9' in value), len(values))
        self.calls.append(count)
        some = values[:count]
        keys = [int(value.partition(b'"id": ')[2][:1]) for value in some]
        operations = b"".join(value.partition(b'"op": "')[2][:1] for value in some)
        lines = [b"direct %d" % key for key in keys]
        return TakenRecords(keys, lines, operations, count < len(values))

    def of_values(
        self, forms: Sequence[Form], columns: Sequence[ColumnValues], nullable: Sequence[bool]
    ) -> list[bytes]:
        del forms, nullable
        return [b"values %d" % key for key in columns[0]]

    def of_records(self, plan: SegmentPlan) -> RecordLines:
        assert plan.names == ("id",)
        return self


@pytest.fixture(autouse=True)
def early(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One row is many."""
    monkeypatch.setattr(row_batches, "LINES_FROM_ROWS", 1)
    monkeypatch.setattr(row_fold, "SETTLED_ROWS", 1)
    monkeypatch.setattr(row_batches, "SETTLED_ROWS", 1)
    return iter([None])


def event(op: str, number: int, pos: int) -> bytes:
    image = {"id": number}
    return row(op, image, at(pos), before=image)


def test_rows_become_lines_at_once_when_earlier_ones_are_lines() -> None:
    maker = Taking()
    f = fold(segment(id=INT), maker=maker)
    values = [event("c", 1, 1), event("c", 2, 2), event("c", 3, 3), event("u", 1, 4)]
    assert f.add_all(range(4), values)
    [block] = only(f.batches()).upserts
    # The first is examined, the second makes it worth a load.
    assert block.lines == [b"direct 1", b"values 2", b"direct 3"]
    assert maker.calls == [2]
    assert (f.rows, f.growth) == (4, 3)


def test_a_record_that_is_not_taken_keeps_its_place_among_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(row_fold, "_AFTER_REFUSAL", 1)
    maker = Taking()
    f = fold(segment(id=INT), maker=maker)
    numbers = (1, 2, 3, 9, 3, 9, 9)
    values = [event("c", number, pos) for pos, number in enumerate(numbers, 1)]
    values[4:4] = [event("d", 3, 5)]
    assert f.add_all(range(8), values)
    batch = only(f.batches())
    assert [*batch.upserts[0].lines] == [b"values 1", b"values 2", b"direct 3", b"values 9"]
    assert batch.deletes is None
    assert (f.rows, f.growth) == (8, 6)


def test_deletes_and_tombstones_between_rows() -> None:
    f = fold(segment(id=INT), maker=Taking())
    values = [
        event("c", 1, 1), event("c", 2, 2), None, event("c", 3, 3), event("d", 3, 4), None,
        event("d", 1, 5), None, event("c", 4, 6), None,
    ]  # fmt: skip
    assert f.add_all(range(10), values)
    batch = only(f.batches())
    assert [*batch.upserts[0].lines] == [b"values 2", b"direct 4"]
    assert batch.deletes is not None
    assert [*batch.deletes.values[0]] == [1, 3]
    assert (f.rows, f.growth) == (6, 2)
    assert f.add_all([10, 11], [None, None])


def test_rows_that_were_read_again_do_not_count_as_new() -> None:
    f = fold(segment(id=INT), maker=Taking())
    read = [marked(event("r", number, 9)) for number in (3, 4)]
    assert f.add_all(range(4), [event("c", 1, 1), event("c", 2, 2), *read])
    assert (f.rows, f.growth) == (4, 2)


def test_rows_read_at_one_position_are_counted_one_by_one_if_they_differ() -> None:
    f = fold(segment(id=INT), maker=Taking())
    read = [event("r", 3, 9), marked(event("r", 4, 9)), event("r", 5, 9), marked(event("r", 6, 9))]
    assert f.add_all(range(6), [event("c", 1, 1), event("c", 2, 2), *read])
    assert (f.rows, f.growth) == (6, 4)


def test_after_a_refusal_some_records_become_images(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_fold, "_AFTER_REFUSAL", 3)
    maker = Taking()
    f = fold(segment(id=INT), maker=maker)
    values = [event("c", number, pos) for pos, number in enumerate((1, 2, 9, 9, 3, 4, 5), 1)]
    assert f.add_all(range(7), values)
    assert maker.calls == [0, 2]
    [block] = only(f.batches()).upserts
    expected = [b"values 1", b"values 2", b"values 3", b"direct 4", b"direct 5", b"values 9"]
    assert [*block.lines] == expected


def test_records_are_taken_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick_path, "_MOST_RECORDS", 2)
    maker = Taking()
    f = fold(segment(id=INT), maker=maker)
    values = [event("c", n, n) for n in range(1, 9)]
    assert f.add_all(range(8), values)
    assert maker.calls == [2, 2, 2]
    assert f.counts() == (8, 0)


def test_what_refuses_too_often_is_not_asked_again() -> None:
    direct = DirectLines(Taking())
    found = []
    for direct.refused, direct.taken in ((0, 0), (8, 0), (9, 0), (9, 128)):
        found.append(direct.is_useful)
    assert found == [True, True, False, True]
