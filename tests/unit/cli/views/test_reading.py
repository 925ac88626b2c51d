"""A connector's state in one word."""

from __future__ import annotations

import pytest

from shardmerge.cli.views.reading import connector_state
from shardmerge.connectors.connect.connect_rest import ConnectorStatus, TaskStatus


@pytest.mark.parametrize(
    ("told", "state"),
    [
        (None, "missing"),
        (ConnectorStatus("c", "RUNNING", ()), "UNASSIGNED"),
        (ConnectorStatus("c", "RUNNING", (TaskStatus(0, "RUNNING"),)), "RUNNING"),
        (ConnectorStatus("c", "RUNNING", (TaskStatus(0, "FAILED"),)), "FAILED"),
        (ConnectorStatus("c", "PAUSED", (TaskStatus(0, "PAUSED"),)), "PAUSED"),
        (ConnectorStatus("c", "STOPPED", ()), "STOPPED"),
        (ConnectorStatus("c", "FAILED", ()), "FAILED"),
    ],
)
def test_what_is_wrong_counts(told: ConnectorStatus | None, state: str) -> None:
    assert connector_state("s1", "c", told).state == state
