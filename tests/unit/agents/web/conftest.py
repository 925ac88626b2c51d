"""What a worker's log tells."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.access_pages import OLGA


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], list[tuple[str, Any]]]]:
    """The log's events with their fields."""
    caplog.set_level(logging.INFO)
    yield lambda: [
        (r.event, r.fields)  # type: ignore[attr-defined]
        for r in caplog.records
        if hasattr(r, "event")
    ]
    assert OLGA not in caplog.text
