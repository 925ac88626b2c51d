"""Small file helpers of the local stack: an exclusive lock, the tail of a log."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def exclusive_lock(path: Path) -> Iterator[None]:
    """Hold an exclusive lock file; a second process waits until the first one leaves.

    The kernel drops the lock when its holder dies, so a crash leaves nothing to clean up.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def tail(path: Path, lines: int = 15) -> str:
    """The last lines of a log, indented for an error message; a note when there is none."""
    try:
        with path.open("rb") as handle:
            handle.seek(0, 2)
            handle.seek(max(0, handle.tell() - 400 * lines))
            text = handle.read().decode("utf-8", "replace")
    except OSError as error:
        return f"  (no log: {error})"
    return "\n".join(f"  {line[:400]}" for line in text.splitlines()[-lines:]) or "  (empty log)"
