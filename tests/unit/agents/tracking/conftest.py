"""A source with one shard."""

from __future__ import annotations

import pytest

from tests.unit.agents.tracking.tracked_source import CREATE, Source


@pytest.fixture
def source() -> Source:
    made = Source()
    made.run(CREATE)
    return made
