"""A part of ``make chaos-sink``: one sink after the other kills itself at a failpoint."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from shardmerge.local.servers.stack import LocalStack
from tests.breadth import with_further

from .chaos import Chaos
from .played_line import Line


@pytest.mark.timeout(600)
@pytest.mark.parametrize("shared", with_further(True, False), ids=["one topic", "own topics"])
def test_sinks_that_die_between_any_two_steps_apply_everything_once(
    stack: LocalStack, tmp_path: Path, shared: bool
) -> None:
    line = Line(stack, shared=shared)
    with closing(line), closing(Chaos(line, tmp_path, seed=1)) as chaos:
        for place in (
            "rows-written:1", "offsets-moved:2", "committed:1", "statement-begun:2",
            "statement-executed:2", "statement-done:1", "rows-changed:1", "shard-emptied:1",
            "offsets-rewound:1",
        ):  # fmt: skip
            chaos.feed()
            chaos.fail_at(place)
        chaos.take_over()
        chaos.finish()
        assert chaos.counts["sinks killed at failpoints"] == 9
        assert "rows_overwritten" not in chaos.log(), "each shard has keys of its own"
