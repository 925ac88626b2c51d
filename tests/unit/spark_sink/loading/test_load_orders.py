from __future__ import annotations

from dataclasses import replace

from shardmerge.schemas.model.position import BEGINNING
from shardmerge.spark_sink.barrier.applied import Applied, LoadPlace, RowProgress, Watermarks
from shardmerge.spark_sink.barrier.partitions import Partition
from shardmerge.spark_sink.barrier.shard_gates import ShardGates
from shardmerge.spark_sink.loading.load_orders import load_orders, load_place, new_load
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


def test_where_a_load_stands() -> None:
    going = load()
    assert load_place(gates(40), going, 3) == LoadPlace(1, BEGINNING, 3, False)
    moved = done(going, 0).move(2, at(999))
    assert load_place(gates(40), moved, 3) == LoadPlace(2, at(40), 3, True)
    assert load_place(gates(40), moved.proven(), 3) == LoadPlace(2, None, 3, True)
    assert load_place(gates(40), going.end_void(2, at(40)), 3).reading == 0
    # Chunks may have been read behind the DROP, from a table that was made again.
    assert load_place(gates(40), done(going, 0).end_void(2, at(40)), 3).reading == 3
