"""kill -9 of the agents' worker, the Connect worker and the sink's driver between the demo's steps.

Last in the folder's order: every part is started again by the line's own supervisor.
"""

from __future__ import annotations

import pytest

from shardmerge.local.demo import Demo
from shardmerge.local.line import Line


@pytest.mark.timeout(1200)
def test_the_demo_ends_equal_although_each_part_is_killed(line: Line, demo: Demo) -> None:
    report = demo.play(chaos=True)
    assert report.comparison.differences == ()
    assert report.twice == (), "no statement was given to the target twice"
    assert report.as_expected
