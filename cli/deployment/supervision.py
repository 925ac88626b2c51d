"""Runs the parts of a pipeline as processes of this one, restarts them, and stops them in order."""

from __future__ import annotations

import fcntl
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from shardmerge.connectors.event_log import logger
from shardmerge.connectors.log_lines import JSON, LOG_FORMAT
from shardmerge.local.servers.processes import ProcessSpec, Supervisor
from shardmerge.schemas.model.errors import ConfigError, StackError

from .restarts import PartRestarts

log = logger(__name__)
_LOOK_S = 0.2
_LAST_LINES = 15
PART = ("-m", "shardmerge.cli.deployment.part")
"""What Python runs for a part."""
STOP_S = 60.0
"""Bound of the wait for a part after TERM: the sink completes its batch."""


@dataclass(frozen=True, slots=True)
class PartSpec:
    """One part.

    Attributes:
        arguments: Of ``shardmerge``, the subcommand first.
        env: Added to the environment.
    """

    name: str
    arguments: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)


class Supervision:
    """The parts of one pipeline. They are started in their order, and stopped in the reverse one.

    Args:
        directory: For pid files; two supervisions never share one.
        parts: What runs.
        limit: See ``PartRestarts``.
        say: Takes each line that a part writes, with the part's name.

    Raises:
        ConfigError: Another process supervises that directory.
    """

    def __init__(
        self,
        directory: Path,
        parts: Sequence[PartSpec],
        limit: int,
        say: Callable[[str, str], None] | None = None,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._lock = (directory / "run.lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise ConfigError(
                f"another `shardmerge run` runs in {directory}",
                hint="stop it, or name another directory with --directory",
                code="SM-5602",
            ) from None
        self._supervisor = Supervisor(directory)
        self._parts = tuple(parts)
        self._restarts = {part.name: PartRestarts(limit) for part in parts}
        self._say = say or _to_stderr
        self._last: dict[str, deque[str]] = {part.name: deque(maxlen=_LAST_LINES) for part in parts}
        self._pumps: list[threading.Thread] = []

    def run(self, stop: threading.Event) -> None:
        """Keep the parts up until ``stop`` is set; then nothing of them runs any more.

        Raises:
            StackError: A part ended again and again. Everything was stopped.
        """
        try:
            for part in self._parts:
                # If an earlier supervision was killed, its parts may still run.
                self._supervisor.stop(part.name, STOP_S)
            for part in self._parts:
                if not stop.is_set():
                    self._start(part)
            while not stop.wait(_LOOK_S):
                for part in self._parts:
                    self._look_at(part)
        finally:
            self._stop()

    def pid(self, name: str) -> int | None:
        """The pid of a part that runs, else None."""
        return self._supervisor.pid(name)

    def _look_at(self, part: PartSpec) -> None:
        if self._supervisor.pid(part.name) is not None:
            return
        restarts, now = self._restarts[part.name], time.monotonic()
        if restarts.ended(now):
            code = self._supervisor.exit_code(part.name)
            # Spark's processes outlive a part that was killed.
            self._supervisor.stop(part.name)
            log.warning("part_ended", part=part.name, exit_code=code, times=restarts.ends)
            if restarts.gives_up:
                raise self._given_up(part.name, code, restarts.ends)
        elif restarts.is_due(now):
            self._start(part)

    def _start(self, part: PartSpec) -> None:
        program = (sys.executable, *PART, str(os.getpid()))
        self._restarts[part.name].started(time.monotonic())
        # The project's folder must never be on the path by itself.
        environment = {"PYTHONSAFEPATH": "1", "PYTHONUNBUFFERED": "1", **part.env}
        pid = self._supervisor.spawn(
            ProcessSpec(part.name, (*program, *part.arguments), env=environment, piped=True)
        )
        log.info("part_started", part=part.name, pid=pid)
        output = self._supervisor.output(part.name)
        assert output is not None
        pump = threading.Thread(target=self._pump, args=(part.name, output), daemon=True)
        pump.start()
        self._pumps = [each for each in self._pumps if each.is_alive()] + [pump]

    def _pump(self, name: str, output: IO[bytes]) -> None:
        with output:
            for line in output:
                text = line.decode("utf-8", "replace").rstrip("\n")
                self._last[name].append(text)
                self._say(name, text)

    def _stop(self) -> None:
        for part in reversed(self._parts):
            if self._supervisor.pid(part.name) is not None:
                log.info("part_stopped", part=part.name)
            self._supervisor.stop(part.name, STOP_S)
        for pump in self._pumps:
            pump.join(timeout=5)
        self._lock.close()

    def _given_up(self, name: str, code: int | None, times: int) -> StackError:
        for pump in self._pumps:
            pump.join(timeout=1)
        last = "\n".join(f"    {line}" for line in self._last[name])
        return StackError(
            f"{name} ended {times} times in a row soon after its start, the last time with exit "
            f"code {code}, so everything was stopped. It said last:\n{last}",
            hint="remove the cause that it tells, then start again",
            code="SM-4614",
        )


def _to_stderr(name: str, line: str) -> None:
    # A line of JSON names its process in a field, and with a word before it, it is no JSON.
    json = os.environ.get(LOG_FORMAT) == JSON
    print(line if json else f"{name:<8} | {line}", file=sys.stderr, flush=True)
