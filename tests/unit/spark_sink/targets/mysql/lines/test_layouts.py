"""Which columns the compiled code reads, and how."""

from __future__ import annotations

from typing import Any

import pytest

from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.records.decisions import Binding
from shardmerge.spark_sink.planning.ranges import ShardStream
from shardmerge.spark_sink.rows.decoding.row_format import JSON_ROWS
from shardmerge.spark_sink.rows.folding.segment_plan import SegmentPlan
from shardmerge.spark_sink.rows.folding.segment_plans import SegmentPlans
from shardmerge.spark_sink.targets.mysql.lines.encoders import limits_of
from shardmerge.spark_sink.targets.mysql.lines.layouts import Key, Kind, kind_of, layout_of
from tests.unit.spark_sink.row_events import INT, SHARD, TEXT, segment


def plan(key: str = "id", /, unbound: str = "", **columns: Any) -> SegmentPlan:
    one = segment(key=key, **columns)
    bindings = {c.id: Binding(c.id, c.column.name) for c in one.columns if c.id != unbound}
    stream = ShardStream(SHARD, TargetTable("m", "t"), (one,), None)
    found: SegmentPlan = SegmentPlans(stream, bindings, JSON_ROWS, limits_of).plan_of(0)
    return found


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (ColumnType("bigint", unsigned=True), Kind.INTEGER),
        (ColumnType("float"), Kind.SINGLE),
        (ColumnType("double"), Kind.DOUBLE),
        (ColumnType("datetime", fsp=3), Kind.MILLISECONDS),
        (ColumnType("datetime", fsp=4), Kind.MICROSECONDS),
        (ColumnType("varchar", 9, charset="utf8mb4"), Kind.TEXT),
        (ColumnType("varchar", 9, charset="latin1"), Kind.CHARSET_TEXT),
        (ColumnType("enum", elements=("a", "b")), Kind.ELEMENT),
        (ColumnType("enum", elements=("a", "")), Kind.TEXT),
        (ColumnType("set", elements=("a", "b")), Kind.TEXT),
        (ColumnType("uuid"), Kind.TEXT),
        (ColumnType("varbinary", 9), Kind.BYTES),
        # Debezium's text is not the value itself.
        (ColumnType("varchar", 9, charset="sjis"), None),
        (ColumnType("set", elements=("a'", "b")), None),
        (ColumnType("point"), None),
        # The target cannot hold the empty error value beside this element.
        (ColumnType("enum", elements=("0",)), None),
    ],
)
def test_a_type_is_read_by_its_kind_or_by_python(kind: ColumnType, expected: Kind | None) -> None:
    (column,) = plan("", v=kind).columns
    assert kind_of(column, is_mariadb=False) is expected


def test_json_is_plain_text_for_mariadb_alone() -> None:
    (column,) = plan("", v=ColumnType("json")).columns
    kinds = [kind_of(column, is_mariadb=is_mariadb) for is_mariadb in (False, True)]
    assert kinds == [Kind.EXACT_JSON, Kind.TEXT]


@pytest.mark.parametrize(
    "columns",
    [
        {"id": INT, "v": ColumnType("point")},
        {"id": ColumnType("float"), "v": TEXT},  # a key of fractions cannot be given back
    ],
)
def test_a_table_with_a_column_that_only_python_reads_has_no_layout(columns: Any) -> None:
    assert layout_of(plan(**columns), b"", is_mariadb=False) is None


def test_a_table_without_a_key_has_no_layout() -> None:
    assert layout_of(plan("", id=INT), b"", is_mariadb=False) is None


def test_a_column_that_is_not_written_may_be_of_any_type() -> None:
    found = layout_of(plan(unbound="v#1", id=INT, v=ColumnType("point")), b"", is_mariadb=False)
    assert found is not None
    assert (found.columns, found.structure.order_count) == (2, 1)


def test_the_parts_of_a_key_are_found_in_its_own_order() -> None:
    found = layout_of(
        plan("c a b", a=ColumnType("bigint", unsigned=True), b=TEXT, c=INT, d=TEXT),
        b"",
        is_mariadb=False,
    )
    assert found is not None
    assert found.key == ((Key.INTEGER, 1), (Key.UNSIGNED, 0), (Key.TEXT, 0))
    assert (found.integers, found.texts) == (2, 1)
