from __future__ import annotations

import queue

from shardmerge.agents.runtime.overdue_end import end_in_time
from shardmerge.agents.runtime.standstill import EXIT_CODE, TICK_S


def test_a_process_ends_when_its_own_end_takes_too_long() -> None:
    ended: queue.Queue[int] = queue.Queue()
    slept: list[float] = []
    end_in_time(lambda: len(slept) >= 3, 9.0, sleep=slept.append, end=ended.put)
    assert ended.get(timeout=60) == EXIT_CODE
    assert slept == [TICK_S, TICK_S, TICK_S, 9.0]
