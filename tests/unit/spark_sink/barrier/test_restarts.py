"""Snapshots that begin again: which rows are of which, what is due, how rows are taken back."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from shardmerge.schemas.model.position import SourcePosition
from shardmerge.schemas.records.decisions import Decision
from shardmerge.spark_sink.barrier.applied import Applied, LoadPlace, RowProgress
from shardmerge.spark_sink.barrier.decisions import Decisions, StatementKey
from shardmerge.spark_sink.barrier.restarts import BEGUN, UNDONE, VOID, Stage
from shardmerge.spark_sink.planning.plan import plan
from shardmerge.spark_sink.planning.ranges import ShardStream
from shardmerge.spark_sink.planning.sink_state import SinkState
from shardmerge.spark_sink.rows.folding.keyless import KeylessBatch
from shardmerge.spark_sink.rows.folding.row_fold import RowFold
from tests.unit.spark_sink.decided import A_ROWS, B_ROWS, TARGET, A, B, at, decision, folded, rows
from tests.unit.spark_sink.row_events import INT, fold, marked, only, row, rows_of, segment

PLACE = at(50)


def read(image: Any, place: SourcePosition, ts_ms: int) -> bytes:
    """A row that a snapshot read."""
    return json.dumps({**json.loads(row("r", image, place)), "ts_ms": ts_ms}).encode()


def described(version: int, pos: int, ts_ms: int, shard: Any = A) -> Decision:
    return replace(decision(version, shard, pos, snapshot=True), ts_ms=ts_ms)


def restarted() -> Decisions:
    """Two shards of a target that a snapshot described, and one that took its place at 50."""
    return folded(
        described(1, 20, 1_000),
        described(2, 20, 1_001, B),
        described(3, 50, 2_000),
        described(4, 50, 2_001, B),
    )


def planned(progress: RowProgress, *marks: tuple[int, int], safe: int = 10) -> Any:
    executed = {StatementKey(version, mark) for version, mark in marks}
    ends = {A_ROWS: safe, B_ROWS: safe}
    return plan(restarted(), SinkState({TARGET: executed}, rows=progress, safe_ends=ends), 100)


def stages(batch: Any) -> list[tuple[Any, Stage]]:
    return [(restart.shard, restart.stage) for restart in batch.restarts]


# --- which rows are of which snapshot


def behind() -> Any:
    return replace(segment(PLACE, id=INT), began_ms=2_000)


@pytest.mark.parametrize("keyless", [False, True])
def test_rows_of_one_place_are_told_apart_by_the_connectors_clock(keyless: bool) -> None:
    key = "" if keyless else "id"
    f = fold(
        replace(segment(key=key, id=INT), undone=True),
        replace(segment(PLACE, key=key, id=INT), began_ms=2_000),
    )
    events = [(1, 1_500), (2, 1_999), (3, 2_000), (4, 2_005), (5, 2_005)]
    for offset, (number, ts_ms) in enumerate(events):
        assert f.add(offset, read({"id": number}, PLACE, ts_ms))
    assert f.add(9, row("c", {"id": 6}, at(60)))
    (batch,) = f.batches()
    added = batch.added if isinstance(batch, KeylessBatch) else only([batch]).upserts[0]
    assert [image["id"] for image in rows_of(added)] == ["3", "4", "5", "6"]


def test_a_fold_stops_before_the_first_row_of_the_new_snapshot() -> None:
    f = fold(segment(id=INT), stop=PLACE)
    stream = replace(f._stream, stop_began_ms=2_000)
    f = RowFold(stream, f._plans._bindings)
    assert f.add_all([0, 1], [read({"id": n}, PLACE, 1_500) for n in (1, 2)])
    assert not f.add(2, read({"id": 3}, PLACE, 2_000))
    assert f.end is not None
    assert (f.end.offset, f.end.position, f.end.hold) == (2, PLACE, None)


def test_a_row_that_is_read_again_stands_where_it_stood() -> None:
    f = fold(replace(segment(id=INT), undone=True), behind())
    assert f.add(0, marked(read({"id": 1}, PLACE, 1_500)))
    assert rows_of(only(f.batches()).upserts[0]) == [{"id": "1"}]


# --- what is due


def test_a_shard_stops_where_its_snapshot_began_again_until_a_row_of_that_is_seen() -> None:
    batch = planned(rows({A_ROWS: Applied(3), B_ROWS: Applied(3)}))
    assert [task.stream.stop for task in batch.tasks] == [PLACE, PLACE]
    assert [task.stream.stop_began_ms for task in batch.tasks] == [2_000, 2_001]
    assert batch.restarts == ()


def test_one_row_of_it_is_enough_for_all_shards_of_the_source() -> None:
    batch = planned(rows({A_ROWS: Applied(3, PLACE), B_ROWS: Applied(3)}))
    assert stages(batch) == [(A, Stage.FOUND), (B, Stage.FOUND)]
    assert batch.tasks == ()


def test_a_row_of_the_binlog_does_not_prove_it() -> None:
    batch = planned(rows({A_ROWS: Applied(3, at(60)), B_ROWS: Applied(3)}))
    assert stages(batch) == [(A, Stage.UNPROVEN)]
    assert [task.topic for task in batch.tasks] == [B_ROWS.topic]


def test_what_is_begun_is_taken_back_from_its_end_and_then_done() -> None:
    marks = ((3, BEGUN), (4, BEGUN))
    batch = planned(rows({A_ROWS: Applied(3), B_ROWS: Applied(0)}), *marks)
    [task] = batch.tasks
    assert (task.start_offset, task.end_offset, task.stands_at) == (0, 3, 3)
    assert task.stream.undoes
    assert [(r.shard, r.stage, r.left) for r in batch.restarts] == [(B, Stage.BEGUN, ())]


def test_nothing_counts_as_taken_back_before_the_shards_partitions_are_known() -> None:
    """A sink that died may plan before it has listed the topics of what it finds journalled."""
    marks = ((3, BEGUN), (4, BEGUN))
    applied = {A_ROWS: Applied(3), B_ROWS: Applied(0)}
    batch = planned(RowProgress(applied), *marks)
    assert (batch.restarts, batch.tasks) == ((), ())
    batch = planned(rows(applied, seen=3), *marks)
    assert [(task.topic, task.end_offset) for task in batch.tasks] == [(A_ROWS.topic, 3)]
    assert stages(batch) == []


def test_behind_what_was_taken_back_a_shard_passes_over_what_it_had() -> None:
    batch = planned(rows({A_ROWS: Applied(0), B_ROWS: Applied(0)}), (3, UNDONE), (4, VOID))
    a, b = (task.stream for task in batch.tasks)
    assert (a.stop, b.stop) == (None, None)
    assert [segment.undone for segment in a.segments] == [True, False]
    assert [segment.undone for segment in b.segments] == [False, False]


def test_a_shard_that_is_alone_is_emptied_by_a_statement() -> None:
    alone = folded(described(1, 20, 1_000), described(2, 50, 2_000))
    state = SinkState(
        {TARGET: {StatementKey(2, BEGUN)}},
        rows=rows({A_ROWS: Applied(3)}, {A_ROWS: 10}),
        safe_ends={A_ROWS: 10},
    )
    batch = plan(alone, state, 100)
    removals = [restart.removal for restart in batch.restarts]
    assert [removal and removal.sql for removal in removals] == ["DELETE FROM `merged`.`t`"]
    assert batch.tasks == ()


def test_a_table_that_was_dropped_before_its_description_begins_with_it() -> None:
    decisions = folded(
        described(1, 20, 1_000), decision(2, A, 30, live=False), described(3, 50, 2_000)
    )
    assert decisions.targets[TARGET].restarted == []


# --- how rows are taken back


def undoing(stream: ShardStream) -> ShardStream:
    return replace(stream, undoes=True)


def test_every_key_that_came_is_deleted() -> None:
    f = fold(segment(id=INT))
    f = RowFold(undoing(f._stream), f._plans._bindings)
    assert f.add_all(
        [0, 1, 2, 3, 4],
        [
            read({"id": 1}, at(20), 1_500),
            read({"id": 2}, at(20), 1_500),
            row("u", {"id": 2}, at(30)),
            row("d", {"id": 1}, at(31)),
            row("t", None, at(32)),
        ],
    )
    batch = only(f.batches())
    assert batch.upserts == ()
    assert sorted(image["id"] or "" for image in rows_of(batch.deletes)) == ["1", "2"]
    assert (f.counts(), f.growth) == ((0, 2), None)


def test_without_a_key_as_many_rows_go_as_came() -> None:
    f = fold(segment(key="", id=INT))
    f = RowFold(undoing(f._stream), f._plans._bindings)
    assert f.add_all([0, 1, 2], [read({"id": n}, at(20), 1_500) for n in (1, 1, 2)])
    (batch,) = f.batches()
    assert isinstance(batch, KeylessBatch)
    assert batch.added is None
    assert (rows_of(batch.removed), batch.removed_counts) == ([{"id": "1"}, {"id": "2"}], (2, 1))


def test_without_a_key_what_the_binlog_brought_holds_the_shard() -> None:
    f = fold(segment(key="", id=INT))
    f = RowFold(undoing(f._stream), f._plans._bindings)
    assert not f.add(0, row("c", {"id": 1}, at(30)))
    assert f.end is not None
    assert f.end.hold is not None
    assert "origin columns" in f.end.hold.reason


# --- rows that the sink has loaded itself


def loaded(place: LoadPlace, *marks: tuple[int, int]) -> Any:
    """Nothing of the two shards is applied from their topics."""
    executed = {StatementKey(version, mark) for version, mark in marks}
    progress = replace(rows(ends={A_ROWS: 0, B_ROWS: 0}), loads=dict.fromkeys((A, B), place))
    state = SinkState({TARGET: executed}, rows=progress, loaded=(A.source,))
    return plan(restarted(), state, 100)


def test_a_description_anew_counts_as_found_where_the_sink_reads_the_rows() -> None:
    assert stages(loaded(LoadPlace(4, PLACE))) == [(A, Stage.FOUND), (B, Stage.FOUND)]


def test_nothing_is_taken_out_while_earlier_chunks_can_still_be_written() -> None:
    assert stages(loaded(LoadPlace(1, at(20)))) == []


def test_loaded_rows_go_although_no_topic_has_them() -> None:
    one = folded(described(1, 20, 1_000), described(2, 50, 2_000))
    for has_rows in (True, False):
        place = LoadPlace(2, PLACE, has_rows=has_rows)
        progress = replace(rows(ends={A_ROWS: 0}), loads={A: place})
        executed = {StatementKey(2, BEGUN)}
        batch = plan(one, SinkState({TARGET: executed}, rows=progress, loaded=("s1",)), 100)
        (restart,) = batch.restarts
        assert restart.stage is Stage.BEGUN
        assert (restart.removal is not None) == has_rows
