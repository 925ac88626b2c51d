"""The system's chromium, driven by Playwright, which fetches no browser."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright


@contextmanager
def chromium(*arguments: str) -> Iterator[Browser]:
    """A browser without a window; ended behind the block.

    Args:
        arguments: Further arguments of the program.
    """
    found = shutil.which("chromium")
    assert found is not None, "install Debian's package chromium"
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=found, args=["--no-sandbox", *arguments]
        )
        yield started
        started.close()
