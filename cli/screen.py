"""Where output goes: tables and progress bars on a terminal, plain lines elsewhere, or JSON.

Tables and bars are made by rich. ``views.tables`` imports it when there is a terminal: where there
is none, and for JSON, no command pays for it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from shardmerge.cli.views.shapes import Shape
from shardmerge.cli.views.text import plain_lines
from shardmerge.connectors.formats.connector_status import ConnectorState
from shardmerge.schemas.records.plain import to_plain

if TYPE_CHECKING:
    from rich.console import Console


def terminal() -> Console | None:
    """The terminal that stdout is; None where it is none."""
    return _tables().console() if sys.stdout.isatty() else None


def show(shapes: Sequence[Shape | ConnectorState], *, as_json: bool) -> None:
    """Print shapes of one kind: JSON a line each, tables on a terminal, or plain lines."""
    console = terminal()
    if as_json:
        for shape in shapes:
            print_json(shape)
    elif console is not None:
        _tables().print_on(console, shapes)
    else:
        for shape in shapes:
            for line in plain_lines(shape):
                click.echo(line)


def print_json(shape: Any) -> None:
    """Print a record as one line of JSON.

    Args:
        shape: Of ``views.shapes``, ``views.call_shapes`` or another documented record.
    """
    click.echo(json.dumps(to_plain(shape), ensure_ascii=False))
    sys.stdout.flush()


@contextmanager
def progress_of(what: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on stderr, if that is a terminal; it vanishes at the end.

    Args:
        what: What progresses, in a few words.

    Yields:
        A function that takes how much is done, and of how much.
    """
    if not sys.stderr.isatty():
        yield lambda done, whole: None
        return
    with _tables().bars() as bars:
        task = bars.add_task(what, total=None)
        yield lambda done, whole: bars.update(task, completed=done, total=whole)


def _tables() -> Any:
    return import_module("shardmerge.cli.views.tables")
