"""Each test has a driver of its own."""

from __future__ import annotations

import pytest

from tests.unit.spark_sink.driver.loads.played_loads import Driver


@pytest.fixture
def driver() -> Driver:
    return Driver()
