"""Which segment a row stands in."""

from __future__ import annotations

from dataclasses import replace

from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.position import SourcePosition
from shardmerge.spark_sink.planning.ranges import ShardStream
from shardmerge.spark_sink.rows.decoding.row_envelope import RowRecord
from shardmerge.spark_sink.rows.decoding.row_format import JSON_ROWS
from shardmerge.spark_sink.rows.folding.segment_locator import Found, SegmentLocator
from tests.unit.spark_sink.row_events import INT, SHARD, at, row, segment

STREAM = ShardStream(
    SHARD,
    TargetTable("m", "t"),
    (segment(at(10), id=INT), segment(at(20), id=INT, a=INT)),
    at(30),
)


def record(place: SourcePosition) -> RowRecord:
    return JSON_ROWS.decode(row("c", {"id": 1}, place))


def test_a_row_is_of_the_last_segment_that_begins_at_or_before_it() -> None:
    locator = SegmentLocator(STREAM)
    found = []
    for pos in (9, 10, 19, 20, 29, 30):
        where = locator.locate(record(at(pos)))
        found.append(locator.number if where is Found.IN_SEGMENT else where)
    assert found == [Found.BEFORE_FIRST, 0, 0, 1, 1, Found.BEHIND_STOP]


def test_the_bounds_tell_which_rows_need_not_be_looked_for() -> None:
    locator = SegmentLocator(STREAM)
    assert not locator.is_within(record(at(12)))
    locator.locate(record(at(12)))
    places = [at(9), at(10), at(19), at(20), at(12, file=2), at(12, epoch=1)]
    assert [locator.is_within(record(p)) for p in places] == [
        False, True, True, False, False, False,
    ]  # fmt: skip


def test_the_bounds_of_a_file_without_a_gate_are_open() -> None:
    locator = SegmentLocator(replace(STREAM, stop=None))
    locator.locate(record(at(5, file=2)))
    assert locator.number == 1
    assert all(locator.is_within(record(at(pos, file=2))) for pos in (0, 5, 1 << 60))


def test_rows_of_the_next_epoch_have_numbers_of_their_own() -> None:
    locator = SegmentLocator(replace(STREAM, stop=None))
    locator.locate(record(at(5, epoch=1)))
    assert locator.number == 2 * len(STREAM.segments) + 1
