"""Runs the sink that fills a shadow, as a process of this one that is started again if it ends."""

from __future__ import annotations

import sys
import tempfile
import threading
from pathlib import Path
from types import TracebackType

import click

from shardmerge.cli.deployment.supervision import PartSpec, Supervision
from shardmerge.schemas.model.names import TargetTable
from shardmerge.spark_sink.process.settings import LOG_LEVEL

NAME = "rebuild"
_LIMIT = 5


class ShadowSink:
    """Runs while the context lasts.

    Args:
        path: The pipeline file.
        target: The target that is rebuilt.
        master: Spark's master URL.
        is_verbose: Whether it logs more than warnings.
    """

    def __init__(
        self, path: Path, target: TargetTable, master: str, *, is_verbose: bool = False
    ) -> None:
        file = ("--pipeline", str(path.absolute()))
        arguments = ("sink", *file, "--master", master, "--rebuild", str(target))
        quiet = {} if is_verbose else {LOG_LEVEL: "WARNING"}
        self._part = PartSpec(NAME, arguments, {"PYSPARK_PYTHON": sys.executable, **quiet})
        self._stop = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="shadow-sink")

    def __enter__(self) -> ShadowSink:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def check(self) -> None:
        """Raise why the process is not started again any more, if it is not."""
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            with tempfile.TemporaryDirectory(prefix="shardmerge-rebuild-") as directory:
                Supervision(Path(directory), [self._part], _LIMIT, _told).run(self._stop)
        except Exception as error:  # ``check`` raises it, in the thread that waits
            self._failure = error


def _told(_: str, line: str) -> None:
    click.echo(line, err=True)
