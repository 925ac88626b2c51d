"""Functions that run beside a test, each in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Self


class Background:
    """Runs functions while the context lasts; the test fails if one of them raises.

    Args:
        functions: Each returns soon after ``ends`` is set.

    Attributes:
        ends: Tells the functions to return.
    """

    def __init__(self, *functions: Callable[[], None]) -> None:
        self.ends = threading.Event()
        self._failed: list[Exception] = []
        self._threads = [
            threading.Thread(target=self._run, args=(function,), daemon=True)
            for function in functions
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ends.set()
        for thread in self._threads:
            thread.join()
        assert not self._failed, self._failed

    def _run(self, function: Callable[[], None]) -> None:
        try:
            function()
        except Exception as error:  # the test raises it, in its own thread
            self._failed.append(error)
