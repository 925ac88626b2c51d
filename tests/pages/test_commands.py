"""Commands from the pages, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.access_pages import OLGA, GivenCommands, behind_proxy, with_tokens
from tests.example_pages import ORDERS, ExampleLine, orders
from tests.pages.conftest import LOOKS, sign_in, without_fault
from tests.served_pages import ExamplePresent, served

HOLDS = f"/target/{ORDERS}/holds"
HELD = str(orders(7))


@dataclass
class Site:
    """A worker's pages, on which users with tokens may command."""

    url: str
    given: GivenCommands


@pytest.fixture
def site(line: ExampleLine, tmp_path: Path) -> Iterator[Site]:
    present = ExamplePresent(line.state)
    given = GivenCommands(line, present)
    with served(line.view, present, with_tokens(tmp_path), given) as url:
        yield Site(url, given)


def test_a_held_shard_is_released_by_a_button(site: Site, page: Page) -> None:
    sign_in(page, site.url, HOLDS)
    expect(page).to_have_url(site.url + HOLDS)
    page.get_by_role("button", name=f"skip … for {HELD}, to be confirmed").click()
    expect(page.get_by_role("heading", name="What the agents would answer now")).to_be_visible()
    expect(page.locator("main")).to_contain_text(f"released: {HELD}")
    assert site.given.commands == []
    page.get_by_role("button", name=f"Give this command: skip {HELD}").click()
    expect(page.locator("main div[role=status]")).to_contain_text(
        f"carried out the command skip {HELD}"
    )
    expect(page.locator("table")).to_contain_text("olga")
    page.goto(site.url + HOLDS)
    expect(page.locator("main")).not_to_contain_text(f"Ways out for {HELD}")


def test_the_answer_comes_to_the_open_page(site: Site, page: Page) -> None:
    sign_in(page, site.url, HOLDS)
    site.given._answers = False
    page.get_by_role("button", name="skip …").click()
    page.get_by_role("button", name="Give this command").click()
    banner = page.locator("main div[role=status]")
    expect(banner).to_contain_text("have not answered it yet")
    [said] = site.given.commands
    site.given.answer()
    expect(banner).to_contain_text("carried out the command skip", timeout=20_000)
    assert said.by == "olga"


def test_a_command_is_given_with_the_keyboard_alone(site: Site, page: Page) -> None:
    def reach(text: str) -> None:
        for _ in range(80):
            page.keyboard.press("Tab")
            told = page.evaluate("document.activeElement.textContent")
            if text in told.strip()[:200]:
                return
        raise AssertionError(f"{text} is not reached")

    page.goto(site.url + HOLDS)
    reach("Sign in")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Token")).to_be_visible()
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "token":
            break
    page.keyboard.type(OLGA)
    page.keyboard.press("Enter")
    expect(page).to_have_url(site.url + HOLDS)
    reach("skip …")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="What the agents would answer now")).to_be_visible()
    reach("Give this command")
    page.keyboard.press("Enter")
    expect(page.locator("main div[role=status]")).to_contain_text("carried out")


def test_a_command_is_given_without_scripts(browser: Browser, site: Site) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    sign_in(page, site.url, HOLDS)
    page.get_by_role("button", name="skip …").click()
    page.get_by_role("button", name="Give this command").click()
    expect(page.locator("main div[role=status]")).to_contain_text("carried out the command skip")
    context.close()


def test_a_written_statement_is_shown_before_it_is_given(site: Site, page: Page) -> None:
    sign_in(page, site.url, HOLDS)
    page.get_by_role("button", name="replace …").click()
    expect(page.locator("#lacks")).to_contain_text("Write the ALTER TABLE")
    page.get_by_label("Argument").fill("ALTER TABLE orders_7\nADD COLUMN level INT")
    page.get_by_role("button", name="Show what it would do").click()
    expect(page.locator("main")).to_contain_text(f"released: {HELD}")
    page.get_by_role("button", name="Give this command").click()
    expect(page.locator("main div[role=status]")).to_contain_text("carried out the command replace")
    assert site.given.commands[0].argument == "ALTER TABLE orders_7\nADD COLUMN level INT"


def test_a_command_about_the_target_is_chosen_in_the_form(site: Site, page: Page) -> None:
    sign_in(page, site.url, f"/target/{ORDERS}")
    page.get_by_role("link", name="Give a command").click()
    page.get_by_label("Command", exact=True).select_option("pause")
    page.get_by_label("Shard (empty").fill(str(orders(3)))
    page.get_by_role("button", name="Show what it would do").click()
    expect(page.locator("main")).to_contain_text(f"pauses {orders(3)}")
    page.get_by_role("button", name="Give this command").click()
    expect(page.locator("main div[role=status]")).to_contain_text("carried out the command pause")


def test_a_wrong_token_is_told_and_a_page_without_a_login_has_no_button(
    browser: Browser, site: Site
) -> None:
    context = browser.new_context()
    page = context.new_page()
    sign_in(page, site.url, HOLDS, token="a-wrong-token-0123456789")
    expect(page.get_by_role("alert")).to_contain_text("SM-6904")
    assert OLGA not in page.content()
    page.goto(site.url + HOLDS)
    expect(page.locator("main button")).to_have_count(0)
    context.close()


def test_signing_out_takes_the_buttons_away(site: Site, page: Page) -> None:
    sign_in(page, site.url, HOLDS)
    expect(page.locator(".ways button")).not_to_have_count(0)
    page.get_by_role("button", name="Sign out").click()
    expect(page).to_have_url(site.url + "/")
    page.goto(site.url + HOLDS)
    expect(page.locator("main button")).to_have_count(0)
    page.go_back()
    expect(page.locator("main button")).to_have_count(0)


def test_a_page_of_another_origin_cannot_give_a_command(
    browser: Browser, site: Site, url: str
) -> None:
    """The other origin has the same host, so that the browser would even send the cookie."""
    context = browser.new_context()
    page = context.new_page()
    sign_in(page, site.url, HOLDS)
    page.get_by_role("button", name="skip …").click()
    fields = page.evaluate(
        "Object.fromEntries(new FormData(document.querySelector('main form[method=post]')))"
    )
    evil = context.new_page()
    evil.route("**/evil", lambda route: route.fulfill(content_type="text/html", body="<p>evil"))
    evil.goto(f"{url}/evil")
    evil.evaluate(
        """([action, fields]) => {
          const form = document.createElement("form");
          Object.assign(form, { method: "post", action });
          for (const [name, value] of Object.entries(fields)) {
            const input = document.createElement("input");
            Object.assign(input, { name, value, type: "hidden" });
            form.append(input);
          }
          document.body.append(form);
          HTMLFormElement.prototype.submit.call(form);
        }""",
        [f"{site.url}/target/{ORDERS}/command", fields],
    )
    expect(evil.get_by_role("alert")).to_contain_text("SM-6906")
    assert site.given.commands == []
    context.close()


def test_scripts_cannot_read_the_session(site: Site, page: Page) -> None:
    sign_in(page, site.url, HOLDS)
    assert page.evaluate("document.cookie") == ""
    [cookie] = page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")


def test_a_user_behind_a_proxy_has_buttons(browser: Browser, line: ExampleLine) -> None:
    present = ExamplePresent(line.state)
    given = GivenCommands(line, present)
    origin = "https://pages.test"
    with served(line.view, present, behind_proxy(origin), given) as url:
        context = browser.new_context(extra_http_headers={"X-Forwarded-User": "olga@example.com"})

        def forward(route: Route) -> None:
            """Takes the proxy's place: the browser sees another address than the worker has."""
            if route.request.url.endswith("/events"):
                route.abort()  # it would not end before the test
                return
            answer = context.request.fetch(
                route.request.url.replace(origin, url),
                method=route.request.method,
                headers=route.request.all_headers(),
                data=route.request.post_data_buffer,
                max_redirects=0,
            )
            route.fulfill(response=answer)

        context.route(f"{origin}/**", forward)
        page = context.new_page()
        page.goto(origin + HOLDS)
        expect(page.locator("body > header")).to_contain_text("olga@example.com")
        page.get_by_role("button", name="skip …").click()
        expect(page.locator("main")).to_contain_text("The record keeps your name: olga@example.com")
        page.get_by_role("button", name="Give this command").click()
        expect(page.locator("main div[role=status]")).to_contain_text(
            "carried out the command skip"
        )
        assert [said.by for said in given.commands] == ["olga@example.com"]
        [cookie] = context.cookies(origin)
        assert cookie["name"] == "__Host-shardmerge-shop"
        assert (cookie["secure"], cookie["httpOnly"]) == (True, True)
        context.close()


PATHS = {
    "login": "/login",
    "holds-buttons": HOLDS,
    "command": f"/target/{ORDERS}/command?kind=skip&shard={HELD}",
    "commands": f"/target/{ORDERS}/commands",
}


@pytest.mark.parametrize("look", LOOKS)
def test_axe_finds_nothing_and_nothing_sticks_out(browser: Browser, site: Site, look: str) -> None:
    context = browser.new_context(**LOOKS[look])
    page = context.new_page()
    for name, path in PATHS.items():
        if name == "commands":
            page.goto(site.url + PATHS["command"])
            page.get_by_role("button", name="Give this command").click()
            expect(page.locator("main div[role=status]")).to_contain_text("carried out")
        else:
            page.goto(site.url + path)
        expect(page.locator("#live")).to_have_text("live")
        without_fault(page)
        if name == "login":
            page.get_by_label("Token").fill(OLGA)
            page.get_by_role("button", name="Sign in").click()
            expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    context.close()
