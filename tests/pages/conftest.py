"""The system's chromium, and the example's pages as the agents' web server serves them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from shardmerge.agents.status.connector_log import ConnectorLog
from shardmerge.connectors.formats.connector_status import ConnectorState
from tests.access_pages import OLGA
from tests.browsers import chromium
from tests.example_pages import ExampleLine, compared, example, failing
from tests.served_pages import ExamplePresent, served

LOOKS: dict[str, dict[str, Any]] = {
    "desktop": {"viewport": {"width": 1280, "height": 900}},
    "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True},
}


@contextmanager
def opened(browser: Browser, look: str) -> Iterator[Page]:
    """A page of a browser that looks so; what its console complains of fails the test."""
    context = browser.new_context(**LOOKS[look])
    found = context.new_page()
    complaints: list[str] = []
    found.on("pageerror", lambda error: complaints.append(str(error)))
    yield found
    context.close()
    assert complaints == []


def without_fault(page: Page) -> None:
    """Fail if axe-core finds something, or if something is wider than the window.

    What is folded up is unfolded for it.
    """
    for details in page.locator("details").all()[:20]:
        details.evaluate("node => node.open = true")
    found = Axe().run(page)
    assert found.violations_count == 0, f"{page.url}: {found.generate_report()}"
    within_the_window(page)


def within_the_window(page: Page) -> None:
    """Fail if something is wider than the window.

    A phone's window grows with what sticks out; the width of the document's root does not.
    """
    width = page.evaluate(_WIDTHS)
    assert width[0] <= width[1], f"{page.url}: {width}, {page.evaluate(_WIDEST)}"


_WIDTHS = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
_WIDEST = """[...document.querySelectorAll("main *, header *, footer *")]
    .filter(node => node.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
    .filter(node => !node.closest(".scroll, svg"))
    .slice(0, 5).map(node => node.outerHTML.slice(0, 200))"""
"""What sticks out, for the message."""


def sign_in(page: Page, url: str, path: str, token: str = OLGA) -> None:
    """Open a page, and sign in from there."""
    page.goto(url + path)
    page.get_by_role("link", name="Sign in").click()
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture
def line() -> ExampleLine:
    now_ms = time.time_ns() // 1_000_000
    made = example(now_ms=now_ms)
    failing(made, now_ms)
    compared(made, now_ms)
    return made


def unread(now_ms: int) -> ConnectorLog:
    """What a worker knows when one connector has failed, and another one is paused."""
    trace = (
        "org.apache.kafka.connect.errors.ConnectException: An exception occurred in the change "
        "event producer. / Caused by: io.debezium.DebeziumException: Could not find first log file "
        "name in binary log index file Error code: 1236; SQLSTATE: HY000."
    )
    log = ConnectorLog()
    log.take(
        (
            ConnectorState("s1", "shop.s1", "FAILED", trace),
            ConnectorState("s2", "shop.s2", "PAUSED"),
        ),
        now_ms - 300_000,
    )
    return log


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
