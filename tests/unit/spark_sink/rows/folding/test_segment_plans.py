"""Plans by number: a segment, the spelling of its names, the source's epoch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.shard_columns import ShardColumn
from shardmerge.schemas.model.tables import Column
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.records.decisions import Binding
from shardmerge.spark_sink.planning.ranges import ShardStream
from shardmerge.spark_sink.rows.decoding.row_format import JSON_ROWS
from shardmerge.spark_sink.rows.folding.segment_plan import plan_segment
from shardmerge.spark_sink.rows.folding.segment_plans import SegmentPlans
from shardmerge.spark_sink.rows.values.constant_values import ConstantValue
from shardmerge.spark_sink.rows.values.forms import Form
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


def test_an_origin_column_of_a_group_has_the_value_that_the_route_gives() -> None:
    number = ShardColumn("@group:n", Column("_n", INT, nullable=False))
    one = replace(SEGMENTS[0], columns=(*SEGMENTS[0].columns, number))
    bindings = {**BINDINGS, "@group:n": Binding("@group:n", "_n")}
    stream = ShardStream(SHARD, TargetTable("m", "t"), (one,), None, groups=(("n", "7"),))

    plan = plan_segment(stream, one, bindings, 0)

    assert plan.origin == (("_n", ConstantValue(Form.INTEGER, 7)),)
    assert plan.names == ("id",)
    assert plan.refusal is None
    without = plan_segment(replace(stream, groups=()), one, bindings, 0)
    assert without.refusal is not None
    assert "gives no value to the origin column _n: no expression" in without.refusal.reason


def test_a_row_is_wanted_unless_the_condition_says_otherwise() -> None:
    assert plans().is_wanted(1, (1, None))
    conditioned = plans(where="a > 5")
    assert [conditioned.is_wanted(1, (1, value)) for value in (6, 5, None)] == [True, False, False]


@pytest.mark.parametrize(
    ("nullable", "neutral"), [(False, "0000-00-00T00:00:00Z"), (True, None)], ids=["not null", ""]
)
def test_null_of_a_timestamp_that_is_not_null_is_the_zero_timestamp(
    nullable: bool, neutral: str | None
) -> None:
    """Debezium takes it for nullable where only the server's defaults make it NOT NULL."""
    moment = ShardColumn("a#1", Column("a", ColumnType("timestamp"), nullable=nullable))
    one = replace(SEGMENTS[0], columns=(*SEGMENTS[0].columns, moment))
    stream = ShardStream(SHARD, TargetTable("m", "t"), (one,), None, where="a < '2000-01-01'")

    plan = plan_segment(stream, one, BINDINGS, 0)

    written = plan.columns[1].reader.read(["2001-01-01T00:00:00Z", None])
    assert [*written] == ["2001-01-01T00:00:00Z", neutral]
    assert plan.matches is not None
    assert plan.matches((1, None)) is (None if nullable else True)
