"""When a plan need not be made again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.spark_sink.barrier.closing import Closing
from shardmerge.spark_sink.planning.plan import plan
from shardmerge.spark_sink.planning.planned import Planned
from shardmerge.spark_sink.planning.sink_state import SinkState
from tests.unit.spark_sink.decided import (
    A_ROWS,
    CONTRACTING,
    EXPANDING,
    TARGET,
    A,
    B,
    at,
    decision,
    folded,
    key,
    rows,
    statement,
)

ADD = statement(EXPANDING, "column:c")
MADE = SinkState(executed={TARGET: {key(1)}}, rows=rows())


def planned(state: SinkState = MADE, *more: object) -> Planned:
    decisions = folded(decision(1, A, 0, ADD), decision(2, B, 5), *more)  # type: ignore[arg-type]
    return Planned(plan(decisions, state, 1_000), state, decisions.seen, 7)


def test_it_holds_while_nothing_changes() -> None:
    last = planned()
    assert last.is_calm
    assert last.holds_for(MADE, 2, 7)


def test_a_new_reading_of_all_ends_is_a_change() -> None:
    assert not planned().holds_for(replace(MADE, rows=rows()), 2, 7)


def test_so_is_a_decision() -> None:
    assert not planned().holds_for(MADE, 3, 7)
    assert not planned().holds_for(MADE, 2, 8), "a row was applied, or rows were removed"


@pytest.mark.parametrize(
    "change",
    [
        {"busy": frozenset({TARGET})},
        {"closed": {TARGET: Closing.CUT_OVER}},
        {"resting": {A: at(3)}},
        {"is_loading": True},
    ],
    ids=lambda change: next(iter(change)),
)
def test_so_is_what_is_known_of_targets_and_shards(change: dict[str, object]) -> None:
    assert not planned().holds_for(replace(MADE, **change), 2, 7)  # type: ignore[arg-type]


def test_a_plan_with_rows_to_apply_is_made_again() -> None:
    state = replace(MADE, safe_ends={A_ROWS: 12})
    last = planned(state)
    assert last.batch.tasks
    assert not last.holds_for(state, 2, 7)


def test_an_open_statement_may_wait_for_new_ends() -> None:
    last = planned(MADE, decision(3, A, 9, statement(CONTRACTING, "column:d")))
    assert not last.is_calm
    assert not last.holds_for(MADE, 3, 7)


def test_a_held_shard_waits_for_no_end() -> None:
    assert planned(MADE, decision(3, A, 9, hold=True)).is_calm
