"""Looks into the command lines of all processes again and again."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from types import TracebackType

_PAUSE_S = 0.05


class ProcessLists:
    """Collects the command lines that hold a word. Use as a context manager."""

    def __init__(self, word: str) -> None:
        self._word = word.encode()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.found: set[str] = set()
        self.looks = 0

    def __enter__(self) -> ProcessLists:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join(timeout=10)

    def look(self) -> None:
        """Look once."""
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):  # it has ended meanwhile
                line = path.read_bytes()
                if self._word in line:
                    self.found.add(line.replace(b"\0", b" ").decode(errors="replace"))
        self.looks += 1

    def _run(self) -> None:
        while not self._stop.wait(_PAUSE_S):
            self.look()
