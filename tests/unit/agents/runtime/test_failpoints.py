from __future__ import annotations

import subprocess
import sys

import pytest

from shardmerge.agents.runtime.failpoints import PLACES, agent_failpoint
from shardmerge.schemas.model.errors import ConfigError


@pytest.mark.parametrize("text", ["", "coordinator.before-put:1"])
def test_nothing_ends_an_agent_whose_place_is_not_named(text):
    passed = agent_failpoint(text, "tracker")
    for place in PLACES:
        passed(place)


@pytest.mark.parametrize(
    "text",
    ["x", "tracker.before-put", "tracker.before-put:0", "tracker.nowhere:1", "other.before-put:1"],
)
def test_a_place_that_is_none_is_a_wrong_setting(text):
    with pytest.raises(ConfigError, match="no failpoint") as raised:
        agent_failpoint(text, "tracker")
    assert "tracker.after-send" in raised.value.hint


def test_the_worker_is_killed_at_the_named_passing():
    program = (
        "from shardmerge.agents.runtime.failpoints import agent_failpoint\n"
        "passed = agent_failpoint('tracker.after-send:2', 'tracker')\n"
        "for place in ('after-send', 'before-send', 'after-send', 'after-send'):\n"
        "    print(place, flush=True)\n"
        "    passed(place)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert ended.returncode == -9, ended.stderr
    assert ended.stdout.split() == ["after-send", "before-send", "after-send"]
