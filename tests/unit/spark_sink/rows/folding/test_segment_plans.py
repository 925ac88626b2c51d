"""Plans by number: a segment, the spelling of its names, the source's epoch."""

from __future__ import annotations

import pytest

from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.records.decisions import Binding
from shardmerge.spark_sink.planning.ranges import ShardStream
from shardmerge.spark_sink.rows.decoding.row_format import JSON_ROWS
from shardmerge.spark_sink.rows.folding.segment_plans import SegmentPlans
from tests.unit.spark_sink.row_events import INT, SHARD, at, segment

SEGMENTS = (segment(id=INT), segment(at(20), id=INT, a=INT))
BINDINGS = {id_: Binding(id_, id_[0:-2]) for id_ in ("id#1", "a#1")}


def plans(where: str = "") -> SegmentPlans:
    stream = ShardStream(SHARD, TargetTable("m", "t"), SEGMENTS, None, where=where)
    return SegmentPlans(stream, BINDINGS, JSON_ROWS)


def test_a_plan_is_made_once() -> None:
    of_stream = plans()
    assert of_stream.plan_of(1) is of_stream.plan_of(1)
    assert of_stream.plan_of(1).names == ("id", "a")


@pytest.mark.parametrize("number", range(8))
def test_the_other_spelling_is_of_the_same_segment_and_epoch(number: int) -> None:
    of_stream = plans()
    other = of_stream.respelled(number)
    assert other != number and of_stream.respelled(other) == number
    assert of_stream.segment_of(other) is of_stream.segment_of(number) is SEGMENTS[number % 2]
    assert other // 4 == number // 4


def test_a_row_is_wanted_unless_the_condition_says_otherwise() -> None:
    assert plans().is_wanted(1, (1, None))
    conditioned = plans(where="a > 5")
    assert [conditioned.is_wanted(1, (1, value)) for value in (6, 5, None)] == [True, False, False]
