from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.e2e.runner import waiting
from tests.e2e.runner.stage import Failed, Stage
from tests.e2e.runner.waiting import QUIET_SECONDS, UNMOVED_SECONDS, Waiting


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which passes only while somebody sleeps."""
    now = [1_000.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(waiting, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    return now


def of_a_case() -> Waiting:
    stage = SimpleNamespace(
        facts=SimpleNamespace(unread=lambda target: ()),
        line=SimpleNamespace(recovering=lambda: False),
        target="merged.t",
    )
    return Waiting(cast("Stage", cast("Any", stage)), _quiet=QUIET_SECONDS)


def faults_until(clock: list[float], end: float) -> tuple[Callable[[], list[str]], list[float]]:
    """Faults up to a moment, and when they were looked for."""
    looked: list[float] = []

    def faults() -> list[str]:
        looked.append(clock[0])
        return ["rows are missing"] if clock[0] < end else []

    return faults, looked


def test_what_moved_is_looked_at_at_once(clock: list[float]) -> None:
    began = clock[0]
    faults, looked = faults_until(clock, began + 5)

    of_a_case().poll_faults(faults, picture=lambda: int(clock[0] - began) // 5)

    assert looked[-1] - (began + 5) < 0.3


def test_where_nothing_moves_it_is_looked_at_seldom_and_seen_soon_all_the_same(
    clock: list[float],
) -> None:
    began = clock[0]
    faults, looked = faults_until(clock, began + 5)

    of_a_case().poll_faults(faults, picture=lambda: 0)

    assert len(looked) <= 2 + 5 / UNMOVED_SECONDS
    assert looked[-1] - (began + 5) < UNMOVED_SECONDS + 0.3


def test_a_cheap_look_is_taken_each_time(clock: list[float]) -> None:
    began = clock[0]
    faults, looked = faults_until(clock, began + 5)

    of_a_case().poll_faults(faults, picture=lambda: 0, cheap=True)

    assert len(looked) > 20
    assert looked[-1] - (began + 5) < 0.3


def test_what_does_not_come_is_told_when_nothing_has_moved_for_a_while(clock: list[float]) -> None:
    began = clock[0]
    faults, looked = faults_until(clock, began + 1_000)

    with pytest.raises(Failed, match="rows are missing"):
        of_a_case().poll_faults(faults, picture=lambda: 0)

    assert 0 < looked[-1] - began - QUIET_SECONDS < 1
    assert looked[-1] == clock[0], "the last look is of the moment in which it is given up"


def test_what_still_moves_is_waited_for(clock: list[float]) -> None:
    began = clock[0]
    faults, looked = faults_until(clock, began + 4 * QUIET_SECONDS)

    of_a_case().poll_faults(faults, picture=lambda: int(clock[0] - began) // 5)

    assert looked[-1] - began >= 4 * QUIET_SECONDS
