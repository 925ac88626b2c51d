"""The pictures of the documents: made by ``pictures``, small, and shown."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser

from tests.example_pages import example
from tests.pages.pictures import MOST_BYTES, PICTURES, Picture, take
from tests.pages.small_png import read
from tests.served_pages import served

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_documents_have_exactly_the_pictures_that_are_made() -> None:
    kept = {path.name for path in (DOCS / "pictures").glob("page-*.png")}
    assert kept == {f"page-{each.name}-{each.look}.png" for each in PICTURES}


def test_a_picture_is_small_and_has_the_colours_of_the_page(
    browser: Browser, tmp_path: Path
) -> None:
    with served(example().view) as url:
        made = take(Picture("overview", "dark", "/", until="#sinks"), browser, url, tmp_path)
    assert made.stat().st_size <= MOST_BYTES
    width, height, pixels = read(made.read_bytes())
    assert (width, len(pixels)) == (1280, width * height)
    assert len(set(pixels)) <= 256
    assert max(set(pixels), key=pixels.count) == (0x12, 0x17, 0x1D)
