"""What an agent is behind, told from four offsets."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from faust.types import TP

from shardmerge.agents.runtime.lags import AgentLags, lag
from shardmerge.connectors.metrics import catalog
from shardmerge.connectors.metrics.family import Sample


@pytest.mark.parametrize(
    ("end", "position", "read", "next_offset", "expected"),
    [
        (0, 0, None, None, 0),  # an empty topic
        (8, 3, None, None, 5),  # nothing was fetched yet
        (8, 8, 7, 3, 5),  # all was fetched, and 3 is being handled
        (8, 8, 6, 7, 0),  # the last one is a transaction's marker
        (8, 8, 2, 3, 0),  # another worker has handled what followed
        (8, 8, 7, None, 0),  # a restart that completed everything before
    ],
)
def test_markers_are_no_lag_and_records_that_wait_are(
    end: int, position: int, read: int | None, next_offset: int | None, expected: int
) -> None:
    assert lag(end, position, read, next_offset) == expected


def test_partitions_of_a_topic_are_added_up_and_other_topics_are_left_out() -> None:
    places = {TP("s1", 0), TP("log", 0), TP("log", 1), TP("changelog", 0), TP("unread", 0)}

    async def position(_: TP) -> int:
        return 10

    consumer = SimpleNamespace(
        assignment=lambda: places,
        highwater=lambda tp: None if tp.topic == "unread" else 13,
        position=position,
    )
    monitor = SimpleNamespace(tp_read_offsets={TP("log", 0): 9})
    app = SimpleNamespace(consumer=consumer, monitor=monitor)
    carriers: Any = {
        "tracker": SimpleNamespace(next_offsets={}),
        "coordinator": SimpleNamespace(next_offsets={("log", 0): 2}),
    }
    agents = {"s1": "tracker", "unread": "tracker", "log": "coordinator"}
    found = asyncio.run(AgentLags(app, carriers, agents.get).samples())
    assert sorted((s.labels, s.value) for s in found) == [
        (("coordinator", "log"), 14), (("tracker", "s1"), 3),
    ]  # fmt: skip
    assert {type(s) for s in found} == {Sample}
    assert {s.family for s in found} == {catalog.AGENTS_LAG}


def test_a_partition_that_goes_to_another_worker_meanwhile_has_no_lag() -> None:
    assigned = {TP("log", 0), TP("log", 1)}

    async def position(_: TP) -> int:
        assigned.discard(TP("log", 1))
        return 10

    def highwater(tp: TP) -> int:
        assert tp in assigned, "as aiokafka asserts"
        return 13

    consumer = SimpleNamespace(
        assignment=lambda: set(assigned), highwater=highwater, position=position
    )
    app = SimpleNamespace(consumer=consumer, monitor=SimpleNamespace(tp_read_offsets={}))
    carriers: Any = {"coordinator": SimpleNamespace(next_offsets={})}
    [found] = asyncio.run(AgentLags(app, carriers, lambda _: "coordinator").samples())
    assert (found.labels, found.value) == (("coordinator", "log"), 3)
