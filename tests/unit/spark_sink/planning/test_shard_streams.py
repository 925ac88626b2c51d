from __future__ import annotations

from typing import Any

import pytest

from shardmerge.schemas.model.position import BEGINNING
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
