"""Where output goes: tables and progress bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn


def terminal() -> Console | None:
    """The terminal that stdout is; None where it is none."""
    return Console() if sys.stdout.isatty() else None


@contextmanager
def progress_of(what: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on stderr, if that is a terminal; it vanishes at the end.

    Args:
        what: That progresses, in a few words.

    Yields:
        A function that takes how much is done, and of how much.
    """
    if not sys.stderr.isatty():
        yield lambda done, whole: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(what, total=None)
        yield lambda done, whole: bars.update(task, completed=done, total=whole)
