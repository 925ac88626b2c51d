"""Each test has a table of its own."""

from __future__ import annotations

import pytest

from tests.unit.spark_sink.targets.iceberg.ddl.changed_tables import World


@pytest.fixture
def world() -> World:
    return World()
