"""A connector's state in one word."""

from __future__ import annotations

import pytest

from shardmerge.connectors.formats.connector_status import (
    ConnectorState,
    ConnectorStatus,
    TaskStatus,
    connector_fault,
    connector_state,
)


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


def test_a_connector_that_does_not_run_is_told_with_its_reason() -> None:
    stopped = ConnectorState("s1", "p.s1", "STOPPED")
    assert connector_fault(stopped) == "connector p.s1 is STOPPED"
    failed = ConnectorState("s1", "p.s1", "FAILED", "no binlog")
    assert connector_fault(failed) == "connector p.s1 is FAILED: no binlog"
