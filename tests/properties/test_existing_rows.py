"""TRUNCATE, fix-ups and re-reads under random histories; see ``existing_rows_machine``."""

from __future__ import annotations

from hypothesis import settings

from tests.properties.barrier_machine import SETTINGS
from tests.properties.existing_rows_machine import ExistingRowsMachine
from tests.toy_sink import StaleSink

TestExistingRows = ExistingRowsMachine.TestCase
TestExistingRows.settings = settings(SETTINGS, max_examples=3 * SETTINGS.max_examples)


class StaleExistingRowsMachine(ExistingRowsMachine):
    """The same with watermarks that are older than the decisions."""

    sink_class = StaleSink


TestStaleExistingRows = StaleExistingRowsMachine.TestCase
TestStaleExistingRows.settings = SETTINGS
