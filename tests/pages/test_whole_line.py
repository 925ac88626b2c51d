"""A held shard of the real line is released by a button in a real browser."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from shardmerge.local.line import Line
from shardmerge.schemas.pipeline.routing import RoutingRule
from tests.access_pages import OLGA, with_tokens
from tests.line_sql import execute, ids
from tests.running import wait_for

ROOT = Path(__file__).resolve().parents[2]
TARGET = "merged.t"
HELD = "s2/app.t_1"
PATIENCE_MS = 60_000


@pytest.fixture
def whole_line(tmp_path: Path) -> Iterator[Line]:
    """The line, with users who may give commands from its pages."""
    (ROOT / ".local").mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="pages-", dir=ROOT / ".local"))
    web = with_tokens(tmp_path).web
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
        yield line
    finally:
        line.stop()
        shutil.rmtree(directory)


@pytest.mark.timeout(600)
def test_a_held_shard_of_the_real_line_is_released_by_a_button(
    whole_line: Line, page: Page
) -> None:
    line = whole_line
    wait_for(lambda: ids(line, TARGET) == [0, 1], "the first rows in the target")
    execute(
        line,
        "s2",
        "ALTER TABLE app.t_1 MODIFY a DATE",
        "INSERT INTO app.t_1 (id) VALUES (2), (3)",
    )
    page.goto(f"{line.web_url}/target/{TARGET}/holds")
    expect(page.locator("main")).to_contain_text(f"Ways out for {HELD}", timeout=PATIENCE_MS)
    expect(page.locator("main button")).to_have_count(0)
    assert ids(line, TARGET) == [0, 1]

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
    assert Axe().run(page).violations_count == 0

    wait_for(lambda: ids(line, TARGET) == [0, 1, 2, 3], "the released rows in the target")
    page.goto(f"{line.web_url}/target/{TARGET}/holds")
    expect(page.locator("main")).to_contain_text("No shard is held", timeout=PATIENCE_MS)
    log = (line.directory / "logs" / "agents.log").read_text(encoding="utf-8")
    [given] = [text for text in log.splitlines() if " command_given " in text]
    assert "by=olga" in given
    assert f'operation="skip {HELD}"' in given
    assert OLGA not in log
