from __future__ import annotations

from typing import Any

import pytest

from shardmerge.schemas.model.position import BEGINNING
from shardmerge.schemas.records.decisions import Decision
from shardmerge.spark_sink.planning.shard_streams import shard_stream
from shardmerge.spark_sink.planning.sink_state import SinkState
from tests.unit.spark_sink.decided import TARGET, A, at, decision, folded


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (None, [(BEGINNING, False), (at(40), False)]),
        (BEGINNING, [(BEGINNING, False), (at(40), False)]),
        (at(30), [(BEGINNING, True), (at(30), False), (at(40), False)]),
        (at(40), [(BEGINNING, True), (at(40), False)]),
        (at(70), [(BEGINNING, True), (at(40), True), (at(70), False)]),
    ],
)
def test_rows_that_a_snapshot_has_are_passed_over(place: Any, expected: list[Any]) -> None:
    decisions = folded(decision(1, A, 10, snapshot=True), decision(2, A, 40, columns=("id", "c")))
    state = SinkState(passed_over={} if place is None else {A: place})
    segments = shard_stream(decisions.targets[TARGET], A, None, state).segments
    assert [(s.start, s.passed_over) for s in segments] == expected
    # The rows from the snapshot on have the schema of its place.
    if place == at(70):
        assert segments[-1].columns == segments[-2].columns


NOT_READ: dict[str, Any] = {"hold": True, "columns": ()}


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        # One statement could not be read, then another while the schema was not known.
        (
            [
                decision(2, A, 20, **NOT_READ),
                decision(3, A, 30, **NOT_READ),
                decision(4, A, 30, columns=("id", "c"), releases=(A,)),
            ],
            [(20, ("id", "c")), (30, ("id", "c")), (30, ("id", "c"))],
        ),
        # The described table is another one.
        (
            [
                decision(2, A, 20, **NOT_READ),
                decision(3, A, 30, columns=(), live=False),
                decision(4, A, 40, columns=("id", "c"), releases=(A,)),
            ],
            [(20, ()), (30, ()), (40, ("id", "c"))],
        ),
        # Nobody has described it.
        ([decision(2, A, 20, **NOT_READ), decision(3, A, 30, columns=("id", "c"))], [(20, ())]),
    ],
)
def test_a_description_counts_from_the_first_statement_that_could_not_be_read(
    records: list[Decision], expected: list[tuple[int, tuple[str, ...]]]
) -> None:
    decisions = folded(decision(1, A, 10), *records)
    segments = shard_stream(decisions.targets[TARGET], A, None, SinkState()).segments
    found = [(s.start, tuple(c.column.name for c in s.columns)) for s in segments]
    assert found[1 : 1 + len(expected)] == [(at(pos), names) for pos, names in expected]
