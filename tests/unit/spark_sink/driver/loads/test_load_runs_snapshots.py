"""Loads beside rows that Debezium's snapshot brought; sources and target are played."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from shardmerge.spark_sink.barrier.applied import Applied
from shardmerge.spark_sink.driver.loads.load_runs import LoadRuns
from tests.unit.spark_sink.decided import A_ROWS, A, B, decision, folded, key
from tests.unit.spark_sink.driver.loads.played_loads import (
    FIRST,
    Driver,
    Intake,
    Jobs,
    Rows,
    Store,
    pipeline,
)


def test_rows_that_came_by_debeziums_snapshot_are_not_loaded(driver: Driver) -> None:
    driver.intake.decisions = folded(FIRST[0], decision(2, B, 30, snapshot=True))
    driver.rows.applied = {A_ROWS: Applied(4)}
    driver.rounds()
    assert set(driver.runs.latest) == {B}


def test_nor_are_those_that_the_same_snapshot_is_still_to_bring(driver: Driver) -> None:
    driver.rows.applied = {A_ROWS: Applied(4)}
    driver.rounds()
    assert driver.runs.latest == {}
    # It was interrupted, and now the connector only describes: nobody else would read the rows.
    driver.decide(replace(decision(3, A, 70, snapshot=True), ts_ms=2_000))
    driver.decide(replace(decision(4, B, 70, snapshot=True), ts_ms=2_000))
    driver.rounds(3)
    assert set(driver.runs.latest) == {A, B}


def test_what_a_snapshot_brought_is_taken_back_before_the_load_that_it_ordered(
    driver: Driver,
) -> None:
    driver.rows.applied = {A_ROWS: Applied(4)}
    driver.decide(replace(decision(3, A, 70, snapshot=True), ts_ms=2_000))
    driver.rounds(2)
    assert driver.runs.latest[A].version == 3
    driver.executed |= {key(3, -1)}
    batch = driver.round()
    # The load passes over the rows before its place. They were applied before it was ordered.
    (task,) = [task for task in batch.tasks if task.stream.undoes]
    assert (task.topic, task.end_offset) == (A_ROWS.topic, 4)
    assert [segment.passed_over for segment in task.stream.segments] == [False, False]


def test_a_load_from_before_has_no_row_to_be_taken_back(driver: Driver) -> None:
    driver.intake.settled = False
    driver.executed = set()
    driver.rounds(2)
    assert driver.runs.latest[A].version == 1
    # Its stream goes on to the next place, and nothing of that is applied.
    driver.decide(replace(decision(3, A, 70, snapshot=True), ts_ms=2_000))
    driver.executed = {key(1), key(3, -1)}
    driver.rounds(2)
    driver.rows.applied = {A_ROWS: Applied(4)}
    batch = driver.round()
    (task,) = [task for task in batch.tasks if task.stream.undoes]
    assert task.stream.segments[0].passed_over


def test_what_an_interrupted_snapshot_brought_before_orders_nothing_once_it_is_settled(
    driver: Driver,
) -> None:
    again = (replace(decision(3 + n, s, 70, snapshot=True), ts_ms=9) for n, s in enumerate((A, B)))
    driver.intake.decisions = folded(*FIRST, *again)
    driver.rows.applied = {A_ROWS: Applied(4)}
    driver.executed |= {key(3, -2), key(4, -3)}
    driver.rounds()
    assert driver.runs.latest == {}


def test_a_source_of_debeziums_snapshot_has_no_loads() -> None:
    store = Store()
    runs = LoadRuns(
        replace(pipeline(), sources=(replace(pipeline().sources[0], snapshot="debezium"),)),
        store,
        cast(Any, Jobs()),
        intake=cast(Any, Intake()),
        rows=cast(Any, Rows()),
        epoch=1,
    )
    runs.load()
    runs.order({})
    assert runs.latest == {} and store.kept == {}
    assert not runs.is_loading, "the sink need not look for more than rows"


def test_loads_of_a_source_that_debezium_reads_now_only_tell_which_rows_there_are() -> None:
    first = Driver()
    first.rounds(4)
    second = Driver(first.store, snapshot="debezium")
    batch = second.rounds()
    assert second.runs.latest == {}
    assert not batch.targets[0].stops
    assert second.rows.loads[A].has_rows
