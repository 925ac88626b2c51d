"""Records of operations that a route ignores."""

from __future__ import annotations

import pytest

from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.model.policies import RowOperation
from shardmerge.schemas.records.decisions import Binding
from shardmerge.spark_sink.planning.ranges import ShardStream
from shardmerge.spark_sink.rows.decoding.row_envelope import MovedRow
from shardmerge.spark_sink.rows.folding.ignored_rows import is_ignored_by
from shardmerge.spark_sink.rows.folding.row_fold import RowFold
from tests.unit.spark_sink.row_events import INT, SHARD, at, only, row, rows_of, segment

INSERT, UPDATE, DELETE, TRUNCATE = RowOperation
BINDINGS = {"id#1": Binding("id#1", "id")}


def stream(*ignored: RowOperation, stop: int | None = None, undoes: bool = False) -> ShardStream:
    return ShardStream(
        SHARD,
        TargetTable("m", "t"),
        (segment(id=INT),),
        None if stop is None else at(stop),
        ignored=frozenset(ignored),
        undoes=undoes,
    )


def test_a_stream_that_ignores_no_row_asks_for_none() -> None:
    assert is_ignored_by(stream()) is None
    assert is_ignored_by(stream(TRUNCATE)) is None
    assert not stream(TRUNCATE).tells_moves
    assert stream(DELETE).tells_moves


@pytest.mark.parametrize("ignored", list(RowOperation)[:3])
def test_both_records_of_a_changed_key_are_one_update(ignored: RowOperation) -> None:
    ignores = is_ignored_by(stream(ignored))
    assert ignores is not None
    assert [ignores(op, MovedRow(b"")) for op in "dc"] == [ignored is UPDATE] * 2
    assert [ignores(op, b"") for op in "cudrt"] == [
        ignored is INSERT, ignored is UPDATE, ignored is DELETE, False, False,
    ]  # fmt: skip


def test_an_ignored_record_stops_at_a_gate_as_every_row_does() -> None:
    f = RowFold(stream(DELETE, stop=200), BINDINGS)

    assert f.add(1, row("d", {"id": 1}, at(100)))
    assert not f.add(2, row("d", {"id": 2}, at(200)))

    assert f.end is not None
    assert (f.end.offset, f.end.hold) == (2, None)
    assert f.batches() == []


def test_the_image_of_an_ignored_record_is_not_looked_at() -> None:
    f = RowFold(stream(DELETE), BINDINGS)
    values = [row("c", {"id": 1}, at(100)), row("d", {"other": 1}, at(110))]

    assert f.add_all([1, 2], values)

    assert rows_of(only(f.batches()).upserts[0]) == [{"id": "1"}]


def test_what_was_never_written_is_not_taken_back() -> None:
    f = RowFold(stream(INSERT, undoes=True), BINDINGS)
    values = [
        row("c", {"id": 1}, at(100)),
        row("c", {"id": 2}, at(110)),
        row("u", {"id": 2}, at(120)),
    ]

    assert f.add_all([1, 2, 3], values)

    assert rows_of(only(f.batches()).deletes) == [{"id": "2"}]
