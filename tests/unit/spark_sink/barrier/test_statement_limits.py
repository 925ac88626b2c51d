"""Up to which gate rows are applied before a statement."""

from __future__ import annotations

from shardmerge.spark_sink.barrier.applied import Applied
from shardmerge.spark_sink.barrier.statement_limits import debt_limit_of, is_waited_for, limit_of
from shardmerge.spark_sink.barrier.statements import StatementState, open_statements
from tests.unit.spark_sink.decided import (
    A_ROWS,
    CONTRACTING,
    EXPANDING,
    SWITCHING,
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

ADD, DROP, SWITCH = (statement(kind, "column:c") for kind in (EXPANDING, CONTRACTING, SWITCHING))


def _target(*records):
    return folded(*records).targets[TARGET]


def _states(target, executed=(), refused=None, progress=None):
    found = open_statements(target, executed, refused or {}, progress or rows())
    return {s.key: (s.state, s.detail) for s in found}


def test_a_held_shard_counts_with_the_place_of_its_gate():
    target = _target(
        decision(1, A, 10), decision(2, A, 20, hold=True), decision(3, A, 30, hold=True),
        decision(4, B, 5, SWITCH, releases=(A,)), decision(5, A, 50), decision(6, B, 6, DROP),
    )  # fmt: skip
    limits = {v: limit_of(target.shards[A], v) for v in (1, 2, 3, 4, 5, 6)}
    assert {v: gate.position for v, gate in limits.items() if gate} == {
        1: at(10), 2: at(20), 3: at(20), 4: at(20), 5: at(50), 6: at(50),
    }  # fmt: skip


def test_a_debt_waits_for_rows_that_its_own_version_lets_through():
    opened = decision(3, B, 20, DROP, releases=(A,))
    target = _target(decision(1, A, 10, hold=True), decision(2, A, 15, hold=True), opened)
    gates = target.shards[A]
    assert limit_of(gates, 3) is gates.gates[0]
    assert debt_limit_of(gates, 3) is gates.gates[1]
    at_the_hold = rows({A_ROWS: Applied(4, at(12))})
    state, detail = _states(target, progress=at_the_hold)[key(3)]
    assert (state, f"before {at(15)}" in detail) == (StatementState.DEBT, True)
    assert _states(target)[key(3)] == (StatementState.READY, "")


def test_a_debt_for_which_these_rows_wait_does_not_wait_for_them():
    again = statement(EXPANDING, "column:c")
    opened = decision(2, B, 20, DROP, again, releases=(A,))
    target = _target(decision(1, A, 10, hold=True), opened)
    assert is_waited_for(target, key(2), DROP)
    at_the_hold = rows({A_ROWS: Applied(4, at(12))})
    assert _states(target, progress=at_the_hold)[key(2)] == (StatementState.READY, "")
