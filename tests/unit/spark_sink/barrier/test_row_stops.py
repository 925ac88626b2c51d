"""At which gates rows wait for statements."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardmerge.schemas.records.decisions import Fixup, FixupKind
from shardmerge.spark_sink.barrier.row_stops import fixup_stops, rows_stops
from shardmerge.spark_sink.barrier.statement_limits import rows_gate
from shardmerge.spark_sink.barrier.statements import frontier, open_statements
from tests.unit.spark_sink.decided import (
    CONTRACTING,
    EXPANDING,
    SWITCHING,
    TARGET,
    A,
    B,
    decision,
    folded,
    key,
    rows,
    rows_statement,
    statement,
)

ADD, DROP, SWITCH = (statement(kind, "column:c") for kind in (EXPANDING, CONTRACTING, SWITCHING))


def _target(*records):
    return folded(*records).targets[TARGET]


def _open(target, executed=()):
    return open_statements(target, executed, {}, rows())


def test_only_the_rows_of_its_shard_wait_for_it():
    target = _target(decision(1, A, 10), decision(2, B, 20, rows_statement(B)), decision(3, A, 30))
    assert frontier(target, ()) == 4
    what = "waits for statement 2.0, which changes its rows"
    assert rows_stops(target, _open(target)) == {B: (0, what)}
    assert rows_stops(target, _open(target, {key(2)})) == {}


def test_it_stands_where_the_gates_stand_that_its_version_opens():
    target = _target(
        decision(1, A, 10), decision(2, A, 20, hold=True), decision(3, A, 30, hold=True),
        decision(4, B, 5, rows_statement(A), releases=(A,)),
    )  # fmt: skip
    assert rows_gate(target.shards[A], 4) == 1
    what = "waits for statement 4.0, which changes its rows"
    assert rows_stops(target, _open(target)) == {A: (1, what)}


@pytest.mark.parametrize("kind", FixupKind)
def test_a_shard_with_a_fixup_waits_for_the_statements_of_its_decision(kind):
    """Whatever becomes of the rows before it: nothing of a later one may be lost."""
    target = _target(
        decision(1, A, 10),
        replace(decision(2, B, 20, SWITCH, ADD), fixups=(Fixup(A, kind, ("c",), ""),)),
        decision(3, A, 30),
    )
    # It stands at its last gate before: what precedes that can be what the statement waits for.
    what = "waits for statement 2.{}, which makes its columns"
    assert fixup_stops(target, _open(target)) == {A: (0, what.format(0))}
    assert fixup_stops(target, _open(target, {key(2)})) == {A: (0, what.format(1))}
    assert fixup_stops(target, _open(target, {key(2), key(2, 1)})) == {}


def test_a_shard_with_a_fixup_does_not_wait_for_a_debt():
    fixup = Fixup(A, FixupKind.SNAPSHOT, ("c",), "")
    target = _target(decision(1, A, 10), replace(decision(2, B, 20, DROP), fixups=(fixup,)))
    assert fixup_stops(target, _open(target)) == {}
