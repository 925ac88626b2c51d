"""The project's own rollouts, each with databases and a target of its own, many at once.

First in the folder's order: the tests after it kill parts of the line.
"""

from __future__ import annotations

import pytest

from .conftest import SCENARIOS
from .runner.cases import Pool


@pytest.mark.parametrize("name", [scenario.id for scenario in SCENARIOS])
def test_the_target_ends_as_the_scenario_tells(pool: Pool, name: str) -> None:
    result = pool.results[name].result()
    assert result.passed, result.detail
