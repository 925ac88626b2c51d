"""The pages of the real line in a real browser: each one is opened, in each look.

One line serves all tests of this file, in their order: the pages while a shard is held, the release
of that shard by a button, and the pages after that.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from playwright.sync_api import Browser, Page, expect

from shardmerge.cli.main import main as main_command
from shardmerge.connectors.connect.connect_rest import ConnectRest
from shardmerge.connectors.debezium.connector_names import connector_name
from shardmerge.local.line import Line
from shardmerge.schemas.pipeline.routing import RoutingRule
from tests.access_pages import OLGA, with_tokens
from tests.line_sql import execute, ids
from tests.pages.api_runs import run_against
from tests.pages.conftest import LOOKS, opened, sign_in, without_fault
from tests.running import wait_for

ROOT = Path(__file__).resolve().parents[2]
TARGET = "merged.t"
PAGE = f"/target/{TARGET}"
HELD = "s2/app.t_1"
PATIENCE_MS = 60_000
COMMAND = f"{PAGE}/command?kind=skip&shard={HELD}"
PAGES = {
    "overview": ("/", "Targets"),
    "target": (PAGE, "Shards and columns"),
    "matrix": (f"{PAGE}?columns=all&search=t_1#matrix", "2 of 2 shards"),
    "older": (f"{PAGE}?older=2#timeline", "Decisions, newest first"),
    "holds": (f"{PAGE}/holds", f"Ways out for {HELD}"),
    "plan": ("/plan", "One statement"),
    "command": (COMMAND, "What the agents would answer now"),
    "commands": (f"{PAGE}/commands", "Nobody has given a command"),
    "missing": ("/target/no.such", "no.such"),
}
"""Each page: its path, and a text on it."""


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Line]:
    """The line, with users who may give commands from its pages, and a held shard."""
    (ROOT / ".local").mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="pages-", dir=ROOT / ".local"))
    web = with_tokens(tmp_path_factory.mktemp("tokens")).web
    routes = (RoutingRule(".*", "app", r"t_\d+", "merged", "t"),)
    line = Line(directory, routes=routes, access=lambda of: replace(of, web=web))

    def prepare() -> None:
        for number, source in enumerate(("s1", "s2")):
            execute(
                line,
                source,
                "CREATE DATABASE app",
                "CREATE TABLE app.t_1 (id INT PRIMARY KEY, a INT)",
                f"INSERT INTO app.t_1 (id) VALUES ({number})",
            )

    try:
        line.start(prepare=prepare)
        wait_for(lambda: ids(line, TARGET) == [0, 1], "the first rows in the target")
        yield line
    finally:
        line.stop()
        shutil.rmtree(directory)


@pytest.mark.timeout(600)
def test_the_open_time_line_follows_a_change_from_shard_to_shard(line: Line, page: Page) -> None:
    page.goto(line.web_url + PAGE)
    expect(page.locator("#live")).to_have_text("live")
    changes = page.locator("#changes ~ table").first
    added = changes.locator("tr", has_text="ADD COLUMN level INT")
    execute(line, "s1", "ALTER TABLE app.t_1 ADD COLUMN level INT")
    expect(added).to_contain_text("1 of 2 live shards made this change", timeout=PATIENCE_MS)
    expect(added).to_contain_text("1 shard has not made it: s2/app.t_1")
    expect(added.locator(".stands li", has_text="passed")).to_contain_text(
        "s1/app.t_1", timeout=PATIENCE_MS
    )
    expect(added).to_contain_text("executed")
    execute(line, "s2", "ALTER TABLE app.t_1 ADD COLUMN level INT")
    expect(added).to_contain_text("2 of 2 live shards made this change", timeout=PATIENCE_MS)
    passed = added.locator(".stands li", has_text="passed")
    expect(passed).to_contain_text("2 shards", timeout=PATIENCE_MS)
    expect(passed).to_contain_text("after the change")

    execute(
        line,
        "s2",
        "ALTER TABLE app.t_1 MODIFY a DATE",
        "INSERT INTO app.t_1 (id) VALUES (2), (3)",
    )
    changed = changes.locator("tr", has_text="MODIFY a DATE")
    expect(changed.locator(".stands")).to_contain_text(
        f"held here 1 shard: {HELD}", timeout=PATIENCE_MS
    )
    expect(changed.locator(".stands")).to_contain_text("rows at most", timeout=PATIENCE_MS)
    expect(page.locator(".plot svg")).to_have_count(3)
    assert ids(line, TARGET) == [0, 1]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("look", LOOKS)
def test_axe_finds_nothing_on_any_page_and_nothing_sticks_out(
    line: Line, browser: Browser, look: str
) -> None:
    with opened(browser, look) as page:
        page.goto(f"{line.web_url}/login")
        without_fault(page)
        sign_in(page, line.web_url, PAGE)
        for path, text in PAGES.values():
            page.goto(line.web_url + path)
            expect(page.locator("#live")).to_have_text("live")
            expect(page.locator("main")).to_contain_text(text, timeout=PATIENCE_MS)
            without_fault(page)
        page.goto(f"{line.web_url}/plan")
        page.get_by_label("Shards whose name contains").fill("s1/")
        page.get_by_label("One statement").fill("ALTER TABLE {table} MODIFY level DATE")
        page.get_by_role("button", name="Plan").click()
        expect(page.locator("#plan ~ p[role=status]")).to_contain_text(
            "1 hold", timeout=PATIENCE_MS
        )
        without_fault(page)


@pytest.mark.timeout(600)
def test_a_held_shard_of_the_real_line_is_released_by_a_button(line: Line, page: Page) -> None:
    page.goto(f"{line.web_url}{PAGE}/holds")
    expect(page.locator("main")).to_contain_text(f"Ways out for {HELD}", timeout=PATIENCE_MS)
    expect(page.locator("main button")).to_have_count(0)

    page.get_by_role("link", name="Sign in").click()
    page.get_by_label("Token").fill(OLGA)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name=f"skip … for {HELD}, to be confirmed").click()
    expect(page.locator("main")).to_contain_text(f"released: {HELD}")
    assert ids(line, TARGET) == [0, 1]
    page.get_by_role("button", name=f"Give this command: skip {HELD}").click()
    banner = page.locator("main div[role=status]")
    expect(banner).to_contain_text(f"carried out the command skip {HELD}", timeout=PATIENCE_MS)
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("tbody tr")).to_contain_text("olga")
    without_fault(page)

    wait_for(lambda: ids(line, TARGET) == [0, 1, 2, 3], "the released rows in the target")
    page.goto(f"{line.web_url}{PAGE}/holds")
    expect(page.locator("main")).to_contain_text("No shard is held", timeout=PATIENCE_MS)
    log = (line.directory / "logs" / "agents.log").read_text(encoding="utf-8")
    [given] = [text for text in log.splitlines() if " command_given " in text]
    assert "by=olga" in given
    assert f'operation="skip {HELD}"' in given
    assert OLGA not in log


@pytest.mark.timeout(600)
@pytest.mark.parametrize("look", LOOKS)
def test_axe_finds_nothing_when_all_rows_flow_again(
    line: Line, browser: Browser, look: str
) -> None:
    pages = {
        "/": "Everything flows",
        PAGE: "All rows flow",
        f"{PAGE}/holds": "No shard is held",
        f"{PAGE}/commands": f"skip {HELD}",
    }
    with opened(browser, look) as page:
        for path, text in pages.items():
            page.goto(line.web_url + path)
            expect(page.locator("#live")).to_have_text("live")
            expect(page.locator("main")).to_contain_text(text, timeout=PATIENCE_MS)
            without_fault(page)


@pytest.mark.timeout(600)
def test_a_connector_that_does_not_run_is_told_until_it_runs_again(
    line: Line, page: Page, tmp_path: Path
) -> None:
    name = connector_name(line.pipeline, line.pipeline.sources[0])
    main = page.locator("main")
    page.goto(line.web_url)
    expect(main).to_contain_text("Everything flows", timeout=PATIENCE_MS)
    expect(main).to_contain_text("All 2 connectors run")
    with closing(ConnectRest.of(line.pipeline.connect)) as rest:
        for change, state in ((rest.pause, "PAUSED"), (rest.stop, "STOPPED")):
            change(name)
            expect(main).to_contain_text(f"connector {name} is {state}", timeout=PATIENCE_MS)
            expect(main).to_contain_text("1 of 2 connectors does not run")
            expect(main).not_to_contain_text("Everything flows")
            expect(page.locator("tbody .state")).to_have_text("unread")
            without_fault(page)
            page.screenshot(path=tmp_path / f"{state}.png", full_page=True)
        told = page.request.get(f"{line.web_url}/api/status").json()
        assert [(each["source"], each["state"]) for each in told["connectors"]] == [
            ("s1", "STOPPED"),
            ("s2", "RUNNING"),
        ]
        assert [need["source"] for need in told["targets"][0]["needs"]] == ["s1"]
        page.goto(line.web_url + PAGE)
        expect(main).to_contain_text(f"connector {name} is STOPPED")
        page.goto(line.web_url)
        rest.resume(name)
    expect(main).to_contain_text("Everything flows", timeout=PATIENCE_MS)
    expect(main).to_contain_text("All 2 connectors run")


@pytest.mark.timeout(600)
def test_rows_that_a_comparison_finds_are_on_the_open_page_until_they_are_repaired(
    line: Line, browser: Browser, page: Page, tmp_path: Path
) -> None:
    def validate(*words: str) -> Result:
        file = ("--pipeline", str(line.pipeline_path))
        return CliRunner().invoke(main_command, ["validate", TARGET, *words, *file])

    main = page.locator("main")
    page.goto(line.web_url + PAGE)
    expect(main).to_contain_text("No comparison of this target is known")
    with line.connect_target() as connection, connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO {TARGET} (id) VALUES (5000)")
    found = validate()
    assert found.exit_code == 1, found.output
    expect(main).to_contain_text("1 row differs: 1 that no shard has", timeout=PATIENCE_MS)
    expect(page.locator("#validation ~ table").first).to_contain_text("5000")
    expect(main).to_contain_text(f"shardmerge validate {TARGET} --pipeline FILE --repair sql")
    page.screenshot(path=tmp_path / "differs.png", full_page=True)
    for look in LOOKS:
        with opened(browser, look) as other:
            for path in ("/", PAGE):
                other.goto(line.web_url + path)
                expect(other.locator("main .state").first).to_have_text("differs")
                without_fault(other)
    told = page.request.get(f"{line.web_url}/api/target/{TARGET}").json()["validation"]
    assert (told["state"], told["differences"]) == ("differs", 1)

    with line.connect_target() as connection, connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {TARGET} WHERE id = 5000")
    found = validate()
    assert found.exit_code == 0, found.output
    expect(main).to_contain_text("All rows that were compared are equal", timeout=PATIENCE_MS)
    page.goto(line.web_url)
    expect(main).to_contain_text("Everything flows")


@pytest.mark.timeout(600)
def test_schemathesis_finds_nothing_at_the_agents_of_the_real_line(
    line: Line, tmp_path: Path
) -> None:
    run_against(tmp_path, line.web_url, TARGET, "")
