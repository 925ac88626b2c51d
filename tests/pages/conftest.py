"""The system's chromium, and the example's pages as the agents' web server serves them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.browsers import chromium
from tests.example_pages import ExampleLine, example, failing
from tests.served_pages import ExamplePresent, served

LOOKS: dict[str, dict[str, Any]] = {
    "desktop": {"viewport": {"width": 1280, "height": 900}},
    "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True},
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--pictures", type=Path, help="a folder that gets screenshots of the pages")


@pytest.fixture(scope="session")
def pictures(request: pytest.FixtureRequest) -> Path | None:
    """Where screenshots go; None without --pictures."""
    folder: Path | None = request.config.getoption("--pictures")
    return folder


def keep(page: Page, pictures: Path | None, name: str, look: str) -> None:
    """Keep a picture of a page for the documents, if that was asked for."""
    if pictures is None:
        return
    pictures.mkdir(parents=True, exist_ok=True)
    height = page.evaluate("document.documentElement.scrollHeight")
    size = page.viewport_size or {}
    most = 1_250 if look == "desktop" else size["height"]
    clip = {"x": 0, "y": 0, "width": size["width"], "height": min(most, height)}
    page.screenshot(path=pictures / f"page-{name}-{look}.png", full_page=True, clip=clip)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture
def line() -> ExampleLine:
    now_ms = time.time_ns() // 1_000_000
    made = example(now_ms=now_ms)
    failing(made, now_ms)
    return made


@pytest.fixture
def url(line: ExampleLine) -> Iterator[str]:
    with served(line.view, ExamplePresent(line.state)) as address:
        yield address


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page of desktop size; what its console complains of fails the test.

    A test names it behind the server, so that it is closed before the server ends.
    """
    context = browser.new_context(**LOOKS["desktop"])
    opened = context.new_page()
    complaints: list[str] = []
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on(
        "console", lambda told: complaints.append(told.text) if told.type == "error" else None
    )
    yield opened
    context.close()
    assert complaints == []
