"""By how many rows a shard's table grew, as the fold of its rows tells."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.types import ColumnType
from shardmerge.schemas.records.decisions import Binding
from shardmerge.spark_sink.planning.ranges import ShardStream
from shardmerge.spark_sink.rows.folding.row_fold import RowFold
from shardmerge.spark_sink.rows.folding.segment_plan import Refusal
from tests.unit.spark_sink.kafka import test_row_avro
from tests.unit.spark_sink.row_events import INT, SHARD, TEXT, at, fold, marked, row, segment

SHORT: dict[int, Refusal] = {}
EXAMINED = {10**9: Refusal("never met", "")}
"""While a row is to be refused, each is examined."""
OPS = "rrrcccccuudd"


@pytest.fixture(params=[SHORT, EXAMINED], ids=["the short way", "examined"])
def refusals(request: pytest.FixtureRequest) -> dict[int, Refusal]:
    found: dict[int, Refusal] = request.param
    return found


def fold_of(refusals: dict[int, Refusal], **stream: Any) -> RowFold:
    segments = stream.pop("segments", (segment(id=INT, v=TEXT),))
    bindings = {c.id: Binding(c.id, c.column.name) for s in segments for c in s.columns}
    whole = ShardStream(SHARD, TargetTable("m", "t"), segments, None, **stream)
    return RowFold(whole, bindings, refusals)


def image(key: int) -> dict[str, object]:
    return {"id": key, "v": f"v{key}"}


def take(f: RowFold, ops: str, pos: int = 100) -> None:
    values = [row(op, image(n), at(pos + n)) for n, op in enumerate(ops)]
    assert f.add_all(range(f.rows, f.rows + len(ops)), values)


def test_creates_and_a_snapshot_let_a_table_grow_and_deletes_let_it_shrink(
    refusals: dict[int, Refusal],
) -> None:
    f = fold_of(refusals)
    take(f, OPS)
    assert (f.growth, f.rows) == (3 + 5 - 2, len(OPS))
    take(f, "d" * 9, pos=300)
    assert f.growth == 6 - 9


def test_every_change_of_a_key_counts_and_tombstones_do_not(refusals: dict[int, Refusal]) -> None:
    f = fold_of(refusals)
    values = [row(op, image(7), at(100 + n)) for n, op in enumerate("cudcudc")]
    assert f.add_all(range(10), [*values, None, None, None])
    assert (f.growth, f.counts()) == (1, (1, 0))


def test_a_record_that_is_looked_at_again_counts_once() -> None:
    f = fold_of(SHORT)
    values = [row("d", image(n), at(100 + n)) for n in range(4)]
    values[2] = row("d", {"id": [1], "v": "x"}, at(102))
    assert not f.add_all(range(4), values)
    assert (f.growth, f.rows) == (-2, 2)


def test_rows_that_are_read_again_are_not_new(refusals: dict[int, Refusal]) -> None:
    f = fold_of(refusals, reads_again=True)
    take(f, OPS)
    assert f.growth == 5 - 2


def test_rows_of_a_snapshot_behind_another_gate_are_not_new(refusals: dict[int, Refusal]) -> None:
    segments = segment(id=INT, v=TEXT), segment(at(200), id=INT, v=TEXT)
    f = fold_of(refusals, segments=segments)
    take(f, "rr")
    take(f, "rrc", pos=200)
    assert f.growth == 2 + 1


@pytest.mark.parametrize("refused", [SHORT, EXAMINED], ids=["the short way", "examined"])
def test_rows_of_an_incremental_snapshot_are_not_new(refused: dict[int, Refusal]) -> None:
    f = fold_of(refused)
    whole = [row("r", image(n), at(100)) for n in range(3)]
    again = [marked(row("r", image(n), at(200 + n // 2))) for n in range(6)]
    assert f.add_all(range(9), [*whole, *again])
    assert f.growth == 3


@pytest.mark.parametrize(
    "stream",
    [
        {"where": "id > 3"},
        {"keeps_truncated": True},
        {"segments": (replace(segment(id=INT, v=TEXT), passed_over=True),
                      segment(at(90), id=INT, v=TEXT))},
    ],
)  # fmt: skip
def test_nothing_is_told_where_the_target_has_other_rows_than_the_shard(
    refusals: dict[int, Refusal], stream: dict[str, Any]
) -> None:
    f = fold_of(refusals, **stream)
    take(f, OPS)
    assert (f.growth, f.rows) == (None, len(OPS))


def test_nothing_is_told_of_rows_without_a_key() -> None:
    f = fold(segment(id=INT), segment(at(200), key="", id=INT))
    assert f.add(0, row("c", {"id": 1}, at(100)))
    assert f.growth == 1
    assert f.add(1, row("c", {"id": 1}, at(200)))
    assert f.growth is None


def test_rows_in_avro_tell_the_same() -> None:
    registry = test_row_avro.Registry()
    number = registry.add(test_row_avro.schema({"id": "int"}))
    f = test_row_avro.fold(registry, id=ColumnType("int"))
    for offset, op in enumerate(OPS):
        assert f.add(offset, registry.record(number, op, {"id": offset}, pos=100 + offset))
    assert f.growth == 3 + 5 - 2
    for offset in range(12, 15):
        block = {"snapshot": "incremental"}
        value = registry.record(number, "r", {"id": offset}, pos=200, source=block)
        assert f.add(offset, value)
    assert f.growth == 3 + 5 - 2


def test_a_fold_of_nothing_has_not_grown() -> None:
    assert fold_of(SHORT).growth == 0
