"""Loads that a route, a hold, a connector or an operator delays or orders."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.schemas.model.errors import StackError
from shardmerge.schemas.model.policies import RowOperation
from shardmerge.schemas.records.decisions import Decision, Fixup, FixupKind
from shardmerge.schemas.records.reloads import Reload
from shardmerge.spark_sink.barrier.applied import Applied
from shardmerge.spark_sink.loading.load_state import ChunkState, LoadKind
from shardmerge.spark_sink.planning.chunk_orders import ChunkEnd
from tests.unit.spark_sink.decided import A_ROWS, B_ROWS, A, B, at, decision, key
from tests.unit.spark_sink.driver.loads.played_loads import ROUTE, Driver


def test_a_table_in_parts_whose_route_begins_to_ignore_an_operation_waits(driver: Driver) -> None:
    driver.intake.settled = False
    driver.store.answers = ["away"] * 3
    driver.rounds(5)
    driver.routes = (replace(ROUTE, ignore=(RowOperation.DELETE,)),)
    driver.store.answers = ["away"] * 9
    driver.rounds(2)
    assert driver.runs.latest[A].kind is LoadKind.CHUNKS
    assert driver.runs.troubles[A].code == "SM-1616"


def test_a_paused_shard_is_not_read(driver: Driver) -> None:
    driver.decide(replace(decision(3, A, 0), shard=None, pauses=(A,)))
    driver.rounds()
    assert {o.load.shard for o in driver.store.orders} == {B}


def test_a_connector_that_describes_its_tables_anew_orders_another_load(driver: Driver) -> None:
    driver.rounds()
    driver.decide(replace(decision(3, A, 70, snapshot=True), ts_ms=2_000))
    batch = driver.rounds(3)
    # The earlier rows have to go first.
    (restart,) = batch.restarts
    assert restart.shard == A
    assert driver.runs.latest[A].version == 3
    assert len(driver.store.orders) == 4
    driver.executed |= {key(3, -2)}
    driver.jobs.end = at(200)
    driver.rounds()
    assert driver.runs.latest[A].is_complete
    assert [o.load.version for o in driver.store.orders].count(3) == 2


def ordered(version: int = 3) -> Decision:
    """What answers ``shardmerge load again``."""
    fixup = Fixup(A, FixupKind.LOAD, (), "", "SM-1642")
    told = replace(decision(version, A, 0), shard=None)
    return replace(told, fixups=(fixup,), reloads=(Reload(A, at(10)),))


@pytest.mark.parametrize("by_debezium", [False, True])
def test_an_operator_orders_a_load_wherever_the_stream_stands(by_debezium: bool) -> None:
    driver = Driver()
    if by_debezium:
        driver.rows.applied = {A_ROWS: Applied(4, at(60)), B_ROWS: Applied(4, at(60))}
    driver.rounds()
    known, commits = len(driver.store.orders), driver.jobs.calls.count("commit")
    driver.rows.applied = {A_ROWS: Applied(8, at(90)), B_ROWS: Applied(8, at(90))}

    driver.decide(ordered())
    batch = driver.rounds(3)

    # The rows have to go first. Meanwhile the shard's stream stands where it is.
    (restart,) = batch.restarts
    assert (restart.shard, restart.gate.loads) == (A, True)
    assert {task.place for task in batch.tasks} == {B_ROWS}
    assert len(driver.store.orders) == known
    driver.executed |= {key(3, -2)}
    driver.jobs.end = at(200)
    batch = driver.rounds()
    assert driver.runs.latest[A].is_complete
    assert [(o.load.shard, o.load.version) for o in driver.store.orders[known:]] == [(A, 3)] * 2
    # The server has shown that it has committed what the stream had passed by then.
    assert driver.jobs.calls.count("commit") > commits
    assert {task.place for task in batch.tasks} == {A_ROWS, B_ROWS}


def test_an_order_reaches_a_load_that_is_under_way() -> None:
    driver = Driver()
    away = StackError("no server", code="SM-4401")
    driver.store.answers = [ChunkEnd.DONE, ChunkEnd.DONE, *[away] * 9]
    driver.rounds(3)
    driver.decide(ordered())
    driver.rounds(3)
    load = driver.runs.latest[A]
    assert (load.version, load.base) == (1, 3)
    assert {chunk.state for chunk in load.chunks} <= {ChunkState.PLANNED}


def test_a_shard_that_is_taken_out_holds_nothing_up_and_is_loaded_when_it_joins_again(
    driver: Driver,
) -> None:
    driver.round()
    driver.decide(replace(decision(3, A, 0), shard=None, leaves=(A,)))
    batch = driver.rounds()
    assert A not in batch.targets[0].stops
    assert driver.rows.loads[A].position is None
    assert A not in driver.runs.latest
    driver.decide(decision(4, A, 70, columns=("id", "c")))
    driver.rounds()
    load = driver.runs.latest[A]
    assert (load.is_complete, load.base) == (True, 4)
