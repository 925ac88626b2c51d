"""A ``shardmerge run`` that a test starts, looks at and ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from urllib.request import urlopen

from shardmerge.local.servers.stack import Ports

PATIENCE_S = 180.0
_NOTHING: Mapping[str, str] = MappingProxyType({})


def wait_for(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"still no {what} after {PATIENCE_S:.0f} s"
        time.sleep(0.3)


def with_tests() -> dict[str, str]:
    """This process's environment, for one that imports modules of the tests."""
    paths = [*filter(None, sys.path), str(Path(__file__).parents[1])]
    return {**os.environ, "PYTHONSAFEPATH": "", "PYTHONPATH": os.pathsep.join(paths)}


@contextmanager
def holding(script: str, *arguments: str) -> Iterator[None]:
    """A process that runs a script, from when it has printed ``held``; it is killed at the end."""
    command = [sys.executable, "-c", script, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=with_tests()) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"held\n"
            yield
        finally:
            process.send_signal(signal.SIGKILL)


class Running:
    """A ``shardmerge run`` as a process of its own.

    Args:
        pipeline_path: The pipeline file.
        directory: Its folder; the log is beside it.
        env: Variables besides those of this process.
        further: Options besides those that name the file, the folder and ports.
    """

    def __init__(
        self,
        pipeline_path: Path,
        directory: Path,
        env: Mapping[str, str] = _NOTHING,
        further: Sequence[str] = (),
    ) -> None:
        self.directory = directory
        self.log = (directory.parent / "run.log").open("ab")
        program = [sys.executable, "-m", "shardmerge.cli.main", "run"]
        options = ["--pipeline", str(pipeline_path), "--directory", str(directory)]
        free = Ports.free()
        self.metrics_port, self._web_port = free.registry, free.web
        options += ["--web-port", str(free.web), "--metrics-port", str(self.metrics_port)]
        self.process = subprocess.Popen(
            [*program, *options, *further],
            stdout=self.log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **env, "PYTHONSAFEPATH": "1"},
        )

    def pid(self, part: str) -> int:
        """The pid of a part; 0 while it is not started."""
        try:
            return int(json.loads((self.directory / "run" / f"{part}.json").read_text())["pid"])
        except FileNotFoundError:
            return 0

    def measured(self, further: int, name: str) -> bool:
        """Whether the port of metrics, or the one so many further, tells of a metric."""
        try:
            with urlopen(
                f"http://127.0.0.1:{self.metrics_port + further}/metrics", timeout=10
            ) as answer:
                return f"\n{name}" in answer.read().decode()
        except OSError:
            return False

    def overview(self) -> str:
        """The first of the pages; "" while nobody serves them."""
        try:
            with urlopen(f"http://127.0.0.1:{self._web_port}/", timeout=10) as answer:
                return str(answer.read().decode())
        except OSError:
            return ""

    def left(self) -> list[str]:
        """The command lines of processes that belong to it, whatever their parents are."""
        marker = f"SHARDMERGE_STACK_DIRECTORY={self.directory}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and marker in (entry / "environ").read_bytes().split(b"\0"):
                    command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                    found += [command] if command else []
            except OSError:
                continue
        return found

    def text(self) -> str:
        return (self.directory.parent / "run.log").read_text(errors="replace")
