"""Runs the sink that fills a shadow, as a process of this one that is started again if it ends."""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from shardmerge.cli.deployment.supervision import PartSpec, Supervision
from shardmerge.schemas.model.names import TargetTable

NAME = "rebuild"
_LIMIT = 5


class ShadowSink:
    """Runs while the context lasts.

    Args:
        path: The pipeline file.
        target: The target that is rebuilt.
        master: Spark's master URL.
        say: Takes each line that the process writes.
    """

    def __init__(
        self, path: Path, target: TargetTable, master: str, say: Callable[[str], None]
    ) -> None:
        file = ("--pipeline", str(path.absolute()))
        arguments = ("sink", *file, "--master", master, "--rebuild", str(target))
        self._part = PartSpec(NAME, arguments, {"PYSPARK_PYTHON": sys.executable})
        self._say = say
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
                Supervision(
                    Path(directory), [self._part], _LIMIT, lambda _, line: self._say(line)
                ).run(self._stop)
        except Exception as error:  # ``check`` raises it, in the thread that waits
            self._failure = error
