"""The pages in a real browser."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from shardmerge.agents.web import events
from shardmerge.schemas.model.names import TargetTable
from shardmerge.schemas.records.validations import DifferingRows, TargetValidation
from tests.access_pages import with_tokens
from tests.example_pages import (
    ITEMS,
    ORDERS,
    ExampleLine,
    example,
    failing,
    items,
    orders,
    wide,
)
from tests.pages.conftest import LOOKS, opened, sign_in, unread, within_the_window, without_fault
from tests.served_pages import ExamplePresent, served

PATHS = {
    "overview": "/",
    "target": f"/target/{ORDERS}",
    "holds": f"/target/{ORDERS}/holds",
    "plan": "/plan",
    "missing": "/target/no.such",
}


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", PATHS)
def test_axe_finds_nothing_and_nothing_sticks_out(
    browser: Browser, url: str, name: str, look: str
) -> None:
    context = browser.new_context(**LOOKS[look])
    page = context.new_page()
    page.goto(url + PATHS[name])
    expect(page.locator("#live")).to_have_text("live")
    without_fault(page)
    context.close()


LONG = TargetTable("merged_" + "x" * 57, "orders_" + "y" * 57)


@pytest.mark.parametrize("look", LOOKS)
def test_long_names_and_the_reasons_of_failed_connectors_do_not_stick_out(
    browser: Browser, look: str, tmp_path: Path
) -> None:
    now_ms = time.time_ns() // 1_000_000
    line = example(now_ms=now_ms)
    failing(line, now_ms)
    for target in (line.view.target(str(ORDERS)), line.view.target(str(ITEMS))):
        assert target is not None
        for decision in reversed(target.decisions):
            line.view.apply(replace(decision, target=LONG))
    keys = tuple(("z" * 200, f"{number}" * 60) for number in range(20))
    line.view.apply(
        TargetValidation(
            LONG, 1, now_ms, now_ms, True, 9, 3, differs=99, key=("k" * 64, "l" * 64),
            differing=(DifferingRows("differs", orders(1), 99, keys),), since_ms=now_ms,
        )
    )  # fmt: skip
    present, access = ExamplePresent(line.state), with_tokens(tmp_path)
    command = f"/target/{ORDERS}/command"
    paths = [f"/target/{LONG}", f"{command}?kind=skip&shard={orders(7)}", command]
    paths += [f"/target/{ORDERS}/commands", f"/target/{ORDERS}?columns=all", *PATHS.values()]
    with (
        served(line.view, present, access, connectors=unread(now_ms)) as url,
        opened(browser, look) as page,
    ):
        page.goto(f"{url}/login")
        within_the_window(page)
        sign_in(page, url, PATHS["target"])
        for path in paths:
            page.goto(url + path)
            expect(page.locator("#live")).to_have_text("live")
            within_the_window(page)
        page.goto(url)
        without_fault(page)


def test_a_page_follows_what_happens_and_keeps_what_was_opened_and_where_one_stands(
    url: str, line: ExampleLine, page: Page
) -> None:
    page.goto(f"{url}/target/{ITEMS}")
    expect(page.locator("#live")).to_have_text("live")
    history = page.locator('details[id^="history-"]').first
    history.locator("summary").click()
    expect(history).to_have_attribute("open", "")
    page.locator("#search").focus()
    line.run(orders(3), "ALTER TABLE orders_3 ADD COLUMN other INT")
    line.run(items(1), "ALTER TABLE items_1 ADD COLUMN colour VARCHAR(10)")
    expect(page.locator("#decisions ~ table")).to_contain_text("ADD COLUMN colour", timeout=20_000)
    expect(history).to_have_attribute("open", "")
    assert page.evaluate("document.activeElement.id") == "search"


def test_the_search_shows_what_fits_while_it_is_typed(url: str, page: Page) -> None:
    page.goto(url + PATHS["target"])
    expect(page.locator("#live")).to_have_text("live")
    page.locator("#search").press_sequentially("orders_1")
    expect(page.locator("#matrix ~ p[role=status]")).to_contain_text("3 of 12 shards")
    expect(page).to_have_url(re.compile(r"search=orders_1"))
    assert page.locator("#search").input_value() == "orders_1"


def test_a_comparison_is_seen_as_soon_as_it_has_ended(
    url: str, line: ExampleLine, page: Page
) -> None:
    page.goto(f"{url}/target/{ITEMS}")
    expect(page.locator("#live")).to_have_text("live")
    expect(page.locator("main")).to_contain_text("All rows that were compared are equal.")
    now_ms = time.time_ns() // 1_000_000
    missing = DifferingRows("missing", items(1), 1, (("1723",),))
    line.view.apply(
        TargetValidation(
            ITEMS, 6, now_ms, now_ms, True, 9, 3, missing=1, key=("id",), differing=(missing,),
            since_ms=now_ms,
        )
    )  # fmt: skip
    expect(page.locator("#validation ~ table").first).to_contain_text("1723", timeout=20_000)
    expect(page.locator(".needs")).to_contain_text("SM-4414: 1 row differs: 1 missing")
    page.goto(url)
    expect(page.locator("main table").first).to_contain_text("1 row differs")


def test_a_pasted_statement_is_planned(url: str, page: Page) -> None:
    page.goto(f"{url}/plan")
    page.get_by_label("Target").select_option(str(ORDERS))
    page.get_by_label("Shards whose name contains").fill("orders_3")
    page.get_by_label("One statement").fill("ALTER TABLE {table} MODIFY total DATE")
    page.get_by_role("button", name="Plan").click()
    expect(page.locator("#plan ~ p[role=status]")).to_contain_text("1 hold, 1 shard held")
    page.locator("summary", has_text="Ways out").first.click()
    expect(page.locator("main")).to_contain_text("shardmerge command replace")
    assert Axe().run(page).violations_count == 0


def test_the_ways_out_are_reached_from_the_overview(url: str, page: Page) -> None:
    page.goto(url + "/")
    page.get_by_role("link", name=f"Both sides and the ways out for {ORDERS}").click()
    expect(page.locator("main")).to_contain_text("Ways out for s2/app.orders_7")


def test_everything_is_reached_with_the_keyboard(url: str, page: Page) -> None:
    page.goto(url + "/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#main"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("merged.")
    seen = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.id || document.activeElement.ariaLabel"))
    assert "search" in seen


def test_the_shards_of_a_change_unfold_with_the_keyboard_and_stay_so(
    url: str, line: ExampleLine, page: Page
) -> None:
    page.goto(url + PATHS["target"])
    expect(page.locator("#live")).to_have_text("live")
    folded = page.locator("#lack-13")
    expect(folded).to_contain_text("3 more")
    page.locator("#lack-13 summary").focus()
    page.keyboard.press("Enter")
    expect(folded.locator("small")).to_have_text(f"{orders(11)}, {orders(5)}, {orders(9)}")
    line.run(orders(10), "ALTER TABLE orders_10 ADD COLUMN level INT")
    made = page.locator("#change-13")
    expect(made).to_contain_text("6 of 12 live shards", timeout=20_000)
    expect(folded).to_have_attribute("open", "")
    expect(folded.locator("small")).to_have_text(f"{orders(5)}, {orders(9)}")


def test_the_page_works_without_scripts(browser: Browser, url: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(url + PATHS["target"])
    page.locator("#search").fill("orders_1")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("#matrix ~ p[role=status]")).to_contain_text("3 of 12 shards")
    context.close()


def test_nothing_is_loaded_from_another_host(url: str, page: Page) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(url + PATHS["target"])
    expect(page.locator("#live")).to_have_text("live")
    assert {each for each in asked if not each.startswith((url, "data:"))} == set()


def test_a_page_says_when_the_worker_does_not_answer(page_of_ended: Page) -> None:
    expect(page_of_ended.locator("#live")).to_contain_text("no answer", timeout=20_000)


def test_a_page_beyond_the_last_one_that_gets_events_says_so_until_there_is_room(
    browser: Browser, url: str, line: ExampleLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "MAX_STREAMS", 0)
    with opened(browser, "phone") as page:
        page.goto(f"{url}/target/{ITEMS}")
        told = page.locator("#live")
        expect(told).to_have_text("not live: fetched again every 30 s")
        without_fault(page)
        line.run(items(1), "ALTER TABLE items_1 ADD COLUMN colour VARCHAR(10)")
        decisions = page.locator("#decisions ~ table")
        expect(decisions).to_contain_text("ADD COLUMN colour", timeout=60_000)
        expect(told).to_contain_text("not live")
        monkeypatch.setattr(events, "MAX_STREAMS", 100)
        expect(told).to_have_text("live", timeout=60_000)


@pytest.fixture
def page_of_ended(browser: Browser, line: ExampleLine) -> Page:
    """A page whose worker ended while it was open: the server stops although a page is open."""
    opened = browser.new_context().new_page()
    with served(line.view) as address:
        opened.goto(address)
        expect(opened.locator("#live")).to_have_text("live")
    return opened


def test_ten_thousand_shards_are_a_page_that_can_be_searched(page: Page) -> None:
    with served(wide(10_000, 50)) as address:
        page.goto(f"{address}/target/{ORDERS}?columns=all")
        expect(page.locator("#matrix ~ p[role=status]")).to_contain_text("10,000 of 10,000 shards")
        page.locator("#search").press_sequentially("orders_9900")
        expect(page.locator("#matrix ~ p[role=status]")).to_contain_text("1 of 10,000 shards")
