"""Markers from folders, and Hypothesis profiles."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from shardmerge.connectors.log_lines import LIBRARIES, LOG_FORMAT
from shardmerge.schemas.records import codec
from tests.breadth import is_chosen

LEVELS = ("unit", "properties", "golden", "integration", "e2e", "tidb", "sources", "monitoring",
          "service", "pages", "cluster", "chart", "proxy")  # fmt: skip
HERE = Path(__file__).resolve().parent

# `derandomize` in CI: the same commit gives the same result; `nightly` is where surprises belong.
settings.register_profile("dev", max_examples=50, deadline=None, print_blob=True)
settings.register_profile(
    "ci",
    max_examples=50,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("nightly", max_examples=5_000, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

# What a test encodes and decodes is to be read from its bytes.
codec.MAX_LATEST_BYTES = 0


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """A test that runs a command in this process sets up logging; the next test knows nothing."""
    loggers = [logging.getLogger(name) for name in (None, *LIBRARIES)]
    levels, handlers = [each.level for each in loggers], loggers[0].handlers[:]
    form = os.environ.get(LOG_FORMAT)
    yield
    for each, level in zip(loggers, levels, strict=True):
        each.setLevel(level)
    loggers[0].handlers[:] = handlers
    logging.captureWarnings(False)
    if form is None:
        os.environ.pop(LOG_FORMAT, None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite the expected files of golden tests; review the difference",
    )


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden tests shall rewrite what they expect."""
    return bool(request.config.getoption("--update-golden"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A test's level is its folder; laws and servers get the time that they need."""
    left = [item for item in items if not is_chosen(item)]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if is_chosen(item)]
    for item in items:
        level = item.path.relative_to(HERE).parts[0]
        if level in LEVELS:
            item.add_marker(getattr(pytest.mark, level))
        if (
            level not in ("unit", "golden")
            and level in LEVELS
            and item.get_closest_marker("timeout") is None
        ):
            # Laws run at a low priority beside other levels: they may wait for long.
            item.add_marker(pytest.mark.timeout(2_400 if level == "properties" else 600))
