"""Rows of a source that failed over: positions of two servers' binlogs, of one file name."""

from __future__ import annotations

import pytest

from shardmerge.spark_sink.rows.decoding.row_envelope import RowRecord
from shardmerge.spark_sink.rows.decoding.row_format import JsonRows
from tests.unit.spark_sink.row_events import INT, TEXT, at, fold, only, row, rows_of, segment

SEGMENTS = (
    segment(id=INT),
    segment(at(500), id=INT, v=TEXT),
    segment(at(200, epoch=1), id=INT, v=TEXT, w=INT),
)


def test_rows_belong_to_the_segment_of_their_epoch() -> None:
    f = fold(*SEGMENTS)
    rows = [
        row("c", {"id": 1}, at(499)),
        row("c", {"id": 2, "v": "a"}, at(501)),
        # The other server: behind everything, though its place is a lower number.
        row("c", {"id": 3, "v": "b"}, at(150, epoch=1)),
        row("c", {"id": 4, "v": "c", "w": 7}, at(200, epoch=1)),
    ]
    assert f.add_all(range(4), rows)
    found = [r for block in only(f.batches()).upserts for r in rows_of(block)]
    assert [list(r.values()) for r in found] == [
        ["1"], ["2", "a"], ["3", "b"], ["4", "c", "7"],
    ]  # fmt: skip


@pytest.mark.parametrize("wrap", [False, True])
def test_an_epoch_begins_in_the_middle_of_rows_that_are_alike(wrap: bool) -> None:
    looked_at: list[bytes] = []

    class Watched(JsonRows):
        def decode(self, value: bytes) -> RowRecord:
            looked_at.append(value)
            return super().decode(value)

    segments = (segment(id=INT), segment(at(300, epoch=1), id=INT))
    f = fold(*segments, rows=Watched())
    places = [at(100 + n) for n in range(5)] + [at(100 + n, epoch=1) for n in range(5)]
    values = [row("c", {"id": n}, place) for n, place in enumerate(places)]
    if wrap:
        values = [b'{"schema": {}, "payload": ' + value + b"}" for value in values]
    assert f.add_all(range(10), values)
    assert f.counts() == (10, 0)
    # The first row of each epoch alone.
    assert looked_at == [values[0], values[5]]


def test_a_gate_of_the_next_epoch_stops_its_own_rows_only() -> None:
    f = fold(segment(id=INT), stop=at(200, epoch=1))
    assert f.add(0, row("c", {"id": 1}, at(900)))
    assert f.add(1, row("c", {"id": 2}, at(199, epoch=1)))
    assert not f.add(2, row("c", {"id": 3}, at(200, epoch=1)))
    assert f.end is not None
    assert f.end.position == at(200, epoch=1)


def test_names_that_images_quote_are_found_in_every_epoch() -> None:
    f = fold(segment(**{"i`d": INT}, key="i`d"))  # type: ignore[arg-type]
    for number, place in enumerate((at(100), at(101), at(50, epoch=1), at(51, epoch=1))):
        assert f.add(number, row("c", {"i``d": number}, place)), f.end
    assert f.counts() == (4, 0)


def test_an_epoch_that_is_no_number_holds_the_row() -> None:
    f = fold(segment(id=INT))
    value = row("c", {"id": 1}, at(100, epoch=1)).replace(b'"1"', b'"x"')
    assert not f.add(0, value)
    assert f.end is not None
    assert f.end.hold is not None
