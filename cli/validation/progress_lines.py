"""Shows how far a comparison is: a bar with an estimate on a terminal, else a line now and then."""

from __future__ import annotations

import sys
import time

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from shardmerge.spark_sink.validation.table_validation import TableValidation

_LINE_S = 10.0


class ProgressLines:
    """Tells on stderr how far the comparison of one target is.

    Args:
        target: Its name.
    """

    def __init__(self, target: str) -> None:
        self._target, self._rows = target, 0
        self._began = self._told = time.monotonic()
        self._validation: TableValidation | None = None
        self._before = 0
        self._bars: Progress | None = None
        self._task = TaskID(0)
        if sys.stderr.isatty():
            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.percentage:>3.0f}%"),
                TextColumn("{task.fields[doing]}"),
                TimeRemainingColumn(),
            )
            self._bars = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bars.add_task(target, total=None, doing="")
            self._bars.start()

    def expect(self, rows: int) -> None:
        """Take the number of rows that the target has, about."""
        self._rows = rows
        if self._bars is not None:
            self._bars.update(self._task, total=rows or None)

    def progressed(self, validation: TableValidation) -> None:
        """See ``target_run.Watcher``."""
        now = time.monotonic()
        if validation is not self._validation:
            self._begin(validation, now)
        if self._bars is not None:
            self._bars.update(
                self._task,
                completed=min(validation.rows, self._rows),
                doing=f"{validation.rows:,} rows, {_doubts(validation)}",
            )
        elif now - self._told >= _LINE_S:
            self._told = now
            click.echo(self._line(validation, now), err=True)

    def _begin(self, validation: TableValidation, now: float) -> None:
        """Measure the rate from here on.

        Rows from before are not of this comparison: another process compared them (``--resume``),
        or the schemas changed and all rows are compared anew.
        """
        self._validation, self._before, self._began = validation, validation.rows, now
        if self._bars is not None:
            done = min(validation.rows, self._rows)
            self._bars.reset(self._task, total=self._rows or None, completed=done)

    def close(self) -> None:
        """Take the bar away."""
        if self._bars is not None:
            self._bars.stop()

    def _line(self, validation: TableValidation, now: float) -> str:
        done = validation.rows - self._before
        rate = done / max(now - self._began, 0.001)
        text = f"{self._target}: {validation.rows:,} rows"
        if self._rows:
            text += f" of about {self._rows:,}"
        text += f", {rate:,.0f} rows/s, {_doubts(validation)}"
        left = self._rows - validation.rows
        if self._rows and left > 0 and rate > 0:
            text += f", about {left / rate:,.0f} s left"
        return text


def _doubts(validation: TableValidation) -> str:
    return f"{len(validation.differences)} differences, {len(validation.doubts)} in doubt"
