from __future__ import annotations

import pytest

from shardmerge.agents.status.connector_log import UNASKED, ConnectorLog
from shardmerge.connectors.formats.connector_status import ConnectorState

RUNS = ConnectorState("s1", "shop.s1", "RUNNING")
FAILED = ConnectorState("s1", "shop.s1", "FAILED", "the binlog is gone")


def test_a_state_is_known_since_the_look_that_first_saw_it() -> None:
    log = ConnectorLog()
    for state, now_ms in ((RUNS, 1_000), (FAILED, 2_000), (FAILED, 3_000)):
        log.take([state], now_ms)
    [seen] = log.view.connectors
    assert (seen.state, seen.since_ms) == (FAILED, 2_000)
    assert log.view.unread(3_000) == (seen,)
    log.take([RUNS], 4_000)
    assert log.view.unread(4_000) == ()
    assert log.view.connectors[0].since_ms == 4_000


def test_a_page_is_stale_only_when_something_has_changed() -> None:
    log = ConnectorLog()
    log.take([RUNS], 1_000)
    log.take([RUNS], 2_000)
    assert log.revision == 1
    log.miss("no answer at 0x1", "", "SM-4304", 3_000)
    log.miss("no answer at 0x2", "", "SM-4304", 4_000)
    assert log.revision == 2
    assert (log.view.fault, log.view.since_ms) == ("no answer at 0x1", 3_000)
    log.miss("the password is wrong", "", "SM-4311", 5_000)
    assert (log.view.fault, log.view.since_ms) == ("the password is wrong", 3_000)


def test_while_connect_does_not_answer_no_state_is_known() -> None:
    log = ConnectorLog()
    assert log.view == UNASKED
    log.take([FAILED], 1_000)
    log.miss("no answer", "", "SM-4304", 2_000)
    assert list(log.view.connectors) == []
    assert log.view.unread(2_000) == ()
    log.take([FAILED], 3_000)
    assert (log.view.fault, log.view.since_ms) == ("", 0)
    assert log.view.connectors[0].since_ms == 1_000


@pytest.mark.parametrize("state", ["UNASSIGNED", "RESTARTING"])
def test_a_rebalance_is_told_only_when_it_does_not_end(state: str) -> None:
    log = ConnectorLog()
    log.take([ConnectorState("s1", "shop.s1", state)], 1_000)
    assert log.view.unread(60_999) == ()
    assert log.view.unread(61_000) == log.view.connectors


@pytest.mark.parametrize("state", ["FAILED", "PAUSED", "STOPPED", "missing"])
def test_what_does_not_end_by_itself_is_told_at_once(state: str) -> None:
    log = ConnectorLog()
    log.take([ConnectorState("s1", "shop.s1", state)], 1_000)
    assert log.view.unread(1_000) == log.view.connectors
