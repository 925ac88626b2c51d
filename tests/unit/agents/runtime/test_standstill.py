from __future__ import annotations

import sys
import time

import pytest
from aiokafka.conn import AIOKafkaConnection

from shardmerge.agents.runtime.standstill import EXIT_CODE, Standstill, guard_requests, limit


@pytest.mark.parametrize(("stood", "ended"), [(0.0, []), (3.8, []), (3.9, [EXIT_CODE])])
def test_a_process_ends_that_stood_still_for_longer_than_it_may(
    stood: float, ended: list[int]
) -> None:
    times = iter([100.0, 100.0 + stood])
    ends: list[int] = []
    Standstill(3.85, lambda: next(times), ends.append).check("before-put")
    assert ends == ended


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has CLOCK_BOOTTIME")
def test_a_suspend_of_the_machine_is_a_standstill(monkeypatch: pytest.MonkeyPatch) -> None:
    now = {time.CLOCK_BOOTTIME: 5_000.0}
    monkeypatch.setattr(time, "clock_gettime", now.__getitem__)
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)
    ends: list[int] = []
    standstill = Standstill(3.85, end=ends.append)
    standstill.check()
    assert ends == []
    now[time.CLOCK_BOOTTIME] += 3.9
    standstill.check()
    assert ends == [EXIT_CODE]


def test_the_limit_leaves_room_for_the_last_heartbeat() -> None:
    assert limit(session_timeout_s=6, heartbeat_interval_s=2) < 4


def test_no_request_leaves_a_process_that_stood_still(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[object] = []
    monkeypatch.setattr(AIOKafkaConnection, "send", lambda _, request: sent.append(request))
    places: list[str] = []

    def check(place: str) -> None:
        places.append(place)
        if len(places) > 1:
            raise SystemExit(EXIT_CODE)

    guard_requests(check)
    AIOKafkaConnection.send(None, "first")
    with pytest.raises(SystemExit):
        AIOKafkaConnection.send(None, "second")
    assert (sent, places) == (["first"], ["before-request"] * 2)
