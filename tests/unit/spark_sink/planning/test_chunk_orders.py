from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.schemas.model.policies import RowOperation, RowsPolicy
from shardmerge.schemas.pipeline.routing import RoutingRule
from shardmerge.schemas.records.decisions import Binding, Decision
from shardmerge.spark_sink.loading.load_orders import new_load
from shardmerge.spark_sink.loading.load_state import LoadKind
from shardmerge.spark_sink.planning.chunk_orders import (
    chosen_load,
    chunk_order,
    clearing,
    unfit,
)
from shardmerge.spark_sink.planning.sink_state import SinkState
from tests.unit.spark_sink.decided import (
    EXPANDING,
    TARGET,
    A,
    B,
    at,
    decision,
    folded,
    key,
    statement,
)

ROUTE = RoutingRule(".*", ".*", ".*", "merged", "t", where="id > 3", leave_out="secret")
CREATE = statement(EXPANDING, "table", binds=(Binding("id#1", "id"),))
STATE = SinkState({TARGET: {key(1)}}, routes=(ROUTE,), writer_epoch=4)


def target(*more: Decision):
    return folded(decision(1, A, 10, CREATE, snapshot=True), *more).targets[TARGET]


def test_a_chunk_is_read_with_the_schema_behind_the_last_gate() -> None:
    decided = target(decision(2, A, 40, columns=("id", "c")))
    first = new_load(A, TARGET, 1, LoadKind.CHUNKS, None)
    load = first.move(2, at(40)).plan(("5",)).begin(1)
    order = chunk_order(decided, load, 1, STATE, 10)
    assert (order.load, order.chunk) == (replace(load, chunks=()), load.chunks[1])
    (segment,) = order.stream.segments
    assert [c.column.name for c in segment.columns] == ["id", "c"]
    assert order.stream.where == "id > 3"
    assert (order.leave_out, order.most_rows, order.writer_epoch) == ("secret", 10, 4)
    assert order.bindings == {"id#1": Binding("id#1", "id")}


def test_a_snapshot_is_copied_with_the_schema_that_it_was_read_with() -> None:
    """A gate that came when it was proven changes which column of the table is which."""
    new = new_load(A, TARGET, 1, LoadKind.SNAPSHOT, None)
    load = new.plan().begin(0).finish(0, 3, 9, at(30)).proven()
    later = decision(2, A, 40, columns=("c", "id")), decision(3, A, 50, columns=("d", "id"))
    state = replace(STATE, passed_over={A: at(10)})
    for decided in (target(), target(*later)):
        (segment,) = chunk_order(decided, load, 0, state, 0).stream.segments
        assert [c.column.name for c in segment.columns] == ["id"]


@pytest.mark.parametrize(
    ("changes", "route", "says"),
    [
        ({}, ROUTE, ""),
        ({"key": ()}, ROUTE, "primary key was dropped"),
        ({}, replace(ROUTE, ignore=(RowOperation.DELETE,)), "ignores operations"),
        ({}, replace(ROUTE, on_truncate=RowsPolicy.KEEP), "keeps the rows of a TRUNCATE"),
    ],
)
def test_a_shard_may_become_one_that_cannot_be_read_at_different_moments(
    changes, route, says
) -> None:
    decided = target(replace(decision(2, A, 40), **changes))
    state = replace(STATE, routes=(route,))
    begun = new_load(A, TARGET, 1, LoadKind.CHUNKS, None).plan(("5",)).begin(1)
    found = unfit(decided, begun, state)
    assert (found is not None and says in found.reason) if says else found is None
    chosen = chosen_load(
        decided, new_load(A, TARGET, 2, LoadKind.SNAPSHOT, None), state, has_other_unique_key=False
    )
    assert chosen.kind is (LoadKind.SNAPSHOT if says else LoadKind.CHUNKS)
    assert unfit(decided, chosen, state) is None


def test_rows_from_before_a_load_that_began_again_must_be_told_from_others() -> None:
    again = new_load(A, TARGET, 1, LoadKind.CHUNKS, None).plan().begin(0).begin_again()
    alone, beside = target(), target(decision(2, B, 10, snapshot=True))
    removal = clearing(alone, again, STATE)
    assert removal is not None and removal.sql == "DELETE FROM `merged`.`t`"
    assert unfit(alone, again, STATE) is None

    assert clearing(beside, again, STATE) is None
    trouble = unfit(beside, again, STATE)
    assert trouble is not None
    assert (trouble.code, trouble.hint) == ("SM-1616", "`shardmerge rebuild merged.t`")
    assert unfit(beside, again.cleared(), STATE) is None
