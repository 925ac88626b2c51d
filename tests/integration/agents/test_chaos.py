"""A part of ``make chaos-agents``: one worker after the other kills itself at a failpoint."""

from __future__ import annotations

import pytest

from .chaos import Chaos
from .line import Line


@pytest.mark.timeout(600)
def test_workers_that_die_between_any_two_steps_decide_everything_once(line: Line) -> None:
    chaos = Chaos(line, seed=1)
    for place, lose_data in (
        ("tracker.before-put:3", False),
        ("tracker.after-settle:1", True),
        ("tracker.after-send:2", False),
        ("coordinator.after-put:4", False),
        ("coordinator.after-send:3", True),
        ("coordinator.before-ack:2", False),
    ):
        chaos.feed(3)
        chaos.fail_at(place, lose_data=lose_data)
    chaos.finish()
    assert chaos.counts["kills at failpoints"] == 6
