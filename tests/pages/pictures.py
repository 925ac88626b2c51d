"""Makes the pictures of the pages that the documents show: ``make pictures``.

The pages are those of the example pipeline, as the agents' web server serves them.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from tests.access_pages import OLGA, GivenCommands, with_tokens
from tests.browsers import chromium
from tests.example_pages import ORDERS, ExampleLine, compared, example, failing, orders
from tests.pages.conftest import LOOKS, sign_in
from tests.pages.small_png import smaller
from tests.served_pages import ExamplePresent, served

MOST_BYTES = 150_000
TARGET = f"/target/{ORDERS}"
_MOST_HEIGHT = {"desktop": 1_700, "dark": 1_700, "phone": 1_000}


@dataclass(frozen=True)
class Picture:
    """One picture: ``page-NAME-LOOK.png``.

    Attributes:
        path: Of the page.
        section: The heading with which the picture begins, as a selector; "" for the page's top.
        until: What is below the picture, likewise; "" for nothing.
        before: What is done on the page first.
        signed_in: Whether a user has signed in.
    """

    name: str
    look: str
    path: str
    section: str = ""
    until: str = ""
    before: Callable[[Page], None] | None = None
    signed_in: bool = False


def _plan(page: Page) -> None:
    page.get_by_label("Target").select_option(str(ORDERS))
    page.get_by_label("Shards whose name contains").fill("orders_5")
    page.get_by_label("One statement").fill("ALTER TABLE {table} ADD COLUMN level DATE")
    page.get_by_role("button", name="Plan").click()
    expect(page.locator("#plan ~ p[role=status]")).to_contain_text("1 hold, 1 shard held")


def _give(page: Page) -> None:
    page.get_by_role("button", name="Give this command").click()
    expect(page.locator("main div[role=status]")).to_contain_text("carried out")


def _unfold_numbers(page: Page) -> None:
    page.locator("#rates-table summary").click()


_COMMAND = f"{TARGET}/command?kind=skip&shard={orders(7)}"
PICTURES = (
    Picture("overview", "desktop", "/", until="#ignored"),
    Picture("overview", "dark", "/", until="#ignored"),
    Picture("overview", "phone", "/", until="#needs-1"),
    Picture("target", "desktop", TARGET, until="#schema"),
    Picture("target", "phone", TARGET),
    Picture("waits", "desktop", TARGET, "#waits", "#validation"),
    Picture("validation", "desktop", TARGET, "#validation", "#rates"),
    Picture("plots", "desktop", TARGET, "#rates", "#timeline", _unfold_numbers),
    Picture("plots", "dark", TARGET, "#rates", "#timeline"),
    Picture("timeline", "desktop", TARGET, "#timeline", "#decisions"),
    Picture("timeline", "phone", TARGET, "#timeline", "#decisions"),
    Picture("holds", "desktop", f"{TARGET}/holds"),
    Picture("plan", "desktop", "/plan", before=_plan),
    Picture("command", "desktop", _COMMAND, signed_in=True),
    Picture("commands", "desktop", _COMMAND, before=_give, signed_in=True),
)


def take(picture: Picture, browser: Browser, url: str, folder: Path) -> Path:
    """Make one picture; gives its file."""
    context = browser.new_context(**LOOKS[picture.look])
    page = context.new_page()
    if picture.signed_in:
        sign_in(page, url, TARGET, OLGA)
    page.goto(url + picture.path)
    expect(page.locator("#live")).to_have_text("live")
    if picture.before is not None:
        picture.before(page)
    page.evaluate("document.activeElement.blur()")
    begin = _top(page, picture.section) if picture.section else 0
    size = page.viewport_size or {}
    end = _top(page, picture.until) if picture.until else page.evaluate(_HEIGHT)
    height = min(end - begin, _MOST_HEIGHT[picture.look])
    clip = {"x": 0, "y": begin, "width": size["width"], "height": height}
    path = folder / f"page-{picture.name}-{picture.look}.png"
    path.write_bytes(smaller(page.screenshot(full_page=True, clip=clip, animations="disabled")))
    context.close()
    return path


_HEIGHT = "document.querySelector('body > footer').getBoundingClientRect().bottom + scrollY"


def _top(page: Page, selector: str) -> float:
    found: float = page.locator(selector).evaluate(
        "node => node.getBoundingClientRect().top + window.scrollY"
    )
    return found


def _example() -> ExampleLine:
    now_ms = time.time_ns() // 1_000_000
    line = example(now_ms=now_ms)
    failing(line, now_ms)
    compared(line, now_ms)
    return line


def make(folder: Path) -> list[Path]:
    """Make all pictures in a folder; files of other pictures of pages are removed there.

    Each has a pipeline of its own, because a picture can show what a command changed.
    """
    wanted = {f"page-{picture.name}-{picture.look}.png" for picture in PICTURES}
    for old in folder.glob("page-*.png"):
        if old.name not in wanted:
            old.unlink()
    made = []
    with chromium() as browser, tempfile.TemporaryDirectory() as tokens:
        for picture in PICTURES:
            line = _example()
            present = ExamplePresent(line.state)
            access = with_tokens(Path(tokens)) if picture.signed_in else None
            with served(line.view, present, access, GivenCommands(line, present)) as url:
                made.append(take(picture, browser, url, folder))
    return made


def main() -> None:
    """Make the pictures, and say how large they are."""
    parser = argparse.ArgumentParser(description=re.split(r"\n\n", __doc__ or "")[0])
    parser.add_argument("folder", type=Path)
    for path in make(parser.parse_args().folder):
        size = path.stat().st_size
        assert size <= MOST_BYTES, f"{path} has {size:,} bytes, which is too much for a document"
        print(f"{path} {size:,} bytes")


if __name__ == "__main__":
    main()
