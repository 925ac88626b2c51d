from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.schemas.model.position import BEGINNING
from shardmerge.spark_sink.barrier.applied import Applied, LoadPlace, RowProgress, Watermarks
from shardmerge.spark_sink.barrier.decisions import StatementKey
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.barrier.restarts import BEGUN, UNDONE, VOID
from shardmerge.spark_sink.barrier.shard_gates import ShardGates
from shardmerge.spark_sink.loading.load_orders import (
    debeziums,
    load_orders,
    load_place,
    new_load,
)
from shardmerge.spark_sink.loading.load_state import LoadKind

from .loads import SHARD, TARGET, at, done, gates, load

ROWS = Partition("s1.app.t", 0)


def progress(offset: int) -> RowProgress:
    marks = Watermarks(5, {"s1.app.t": 1}, {ROWS: 9})
    return RowProgress({ROWS: Applied(offset)} if offset else {}, marks)


def described_anew(*positions: int, reloads: bool = False) -> ShardGates:
    found = ShardGates(SHARD)
    for number, gate in enumerate(gates(*positions).gates):
        anew = number > 0
        found.append(replace(gate, began_ms=int(anew), reloads=reloads and anew))
    return found


def test_the_first_decision_orders_a_load() -> None:
    assert load_orders(gates(40), None, progress(0)) == (1,)
    assert load_orders(gates(40), load(), progress(7)) == (1,)


def test_rows_that_are_applied_came_by_debeziums_snapshot() -> None:
    assert load_orders(gates(40), None, progress(7)) == ()


def test_a_description_anew_orders_a_load_whoever_read_the_first_rows() -> None:
    assert load_orders(described_anew(40), load(), progress(0)) == (1, 2)
    assert load_orders(described_anew(40), None, progress(7)) == (2,)


@pytest.mark.parametrize("mark", [UNDONE, VOID])
def test_one_that_was_settled_before_the_sink_read_the_source_orders_none(mark: int) -> None:
    assert load_orders(described_anew(40), None, progress(7), {StatementKey(2, mark)}) == ()
    assert load_orders(described_anew(40), load(), progress(7), {StatementKey(2, mark)}) == (1, 2)
    begun = {StatementKey(2, BEGUN)}
    assert load_orders(described_anew(40), None, progress(7), begun) == (2,)


def test_no_load_is_ordered_for_rows_that_debezium_is_still_to_bring() -> None:
    assert load_orders(gates(40), None, progress(0), by_debezium=True) == ()
    assert load_orders(described_anew(40), None, progress(0), by_debezium=True) == (2,)


def test_which_snapshots_are_debeziums() -> None:
    found = gates(40)
    found.described = at(5)
    assert debeziums([found], (), (), progress(7)) == {("s1", at(5))}
    assert debeziums([found], (), (), progress(0)) == set()
    assert debeziums([found], {SHARD}, (), progress(7)) == set()
    # A table that was made later came by no snapshot.
    assert debeziums([gates(40)], (), (), progress(7)) == set()


def test_one_that_is_to_be_taken_again_is_not_known_to_be() -> None:
    found = described_anew(40)
    found.described = at(40)
    assert debeziums([found], (), (), progress(7)) == set()
    assert debeziums([found], (), {StatementKey(2, UNDONE)}, progress(7)) == {("s1", at(40))}


def test_a_reload_is_read_by_debezium() -> None:
    assert load_orders(described_anew(40, reloads=True), load(), progress(0)) == (1,)


def test_an_operators_order_is_read_by_the_sink_whoever_read_the_first_rows() -> None:
    found = ShardGates(SHARD)
    for gate in described_anew(40, reloads=True).gates:
        found.append(replace(gate, loads=gate.reloads))
    assert load_orders(found, load(), progress(0)) == (1, 2)
    assert load_orders(found, None, progress(7)) == (2,)


def test_a_later_load_knows_that_an_earlier_one_has_written_rows() -> None:
    first = new_load(SHARD, TARGET, 1, LoadKind.CHUNKS, None)
    assert not first.has_rows
    assert new_load(SHARD, TARGET, 3, LoadKind.CHUNKS, first.plan().begin(0)).has_rows


def test_a_later_load_knows_that_an_earlier_one_may_have_left_mixed_rows() -> None:
    first = new_load(SHARD, TARGET, 1, LoadKind.CHUNKS, None).plan()
    for before, expected in ((first, 0), (first.begin(0), 3), (done(first, 0), 3)):
        later = new_load(SHARD, TARGET, 3, LoadKind.SNAPSHOT, before)
        assert load_place(gates(40, 60), later.end_void(3, at(60)), 3).reading == expected
    stored = replace(done(first, 0), may_be_mixed=False)  # by an earlier version
    assert new_load(SHARD, TARGET, 3, LoadKind.SNAPSHOT, stored).has_mixed_rows


def test_where_a_load_stands() -> None:
    going = load()
    assert load_place(gates(40), going, 3) == LoadPlace(1, BEGINNING, 3, False)
    moved = done(going, 0).move(2, at(999))
    assert load_place(gates(40), moved, 3) == LoadPlace(2, at(40), 3, True)
    assert load_place(gates(40), moved.proven(), 3) == LoadPlace(2, None, 3, True)
    assert load_place(gates(40), going.end_void(2, at(40)), 3).reading == 0
    # Chunks may have been read behind the DROP, from a table that was made again.
    assert load_place(gates(40), done(going, 0).end_void(2, at(40)), 3).reading == 3
    cut_anew = done(going, 0).move(2, at(40), new_key=True)
    assert load_place(gates(40, 60), cut_anew.end_void(3, at(60)), 3).reading == 3
