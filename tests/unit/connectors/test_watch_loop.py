"""The loop of a watching thread."""

from __future__ import annotations

import threading

import pytest

from shardmerge.connectors.watch_loop import look_until
from shardmerge.schemas.model.errors import StackError


def test_a_look_that_fails_is_logged_and_the_next_one_comes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stop, times = threading.Event(), []

    def look(now_s: float) -> None:
        times.append(now_s)
        if len(times) == 1:
            raise StackError("Connect does not answer")
        if len(times) == 2:
            raise KeyError("a defect")
        stop.set()

    look_until(stop, look, 0.001, "things_not_watched")

    assert len(times) == 3
    assert times == sorted(times)
    logged = [(r.levelname, r.getMessage(), r.exc_info is not None) for r in caplog.records]
    assert logged == [
        ("WARNING", "things_not_watched SM-9001: Connect does not answer", False),
        ("ERROR", "things_not_watched", True),
    ]
