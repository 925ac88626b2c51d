"""Keep a few programs running: start them, restart the ones that end, stop them all at the end.

A process of its own, so that ``shardmerge up`` can return while the line stays: reads the list of
programs from a file, keeps ``run/<name>.pid`` for each, appends what they print to
``log/<name>.log`` and its own doings to ``log/supervisor.log``.

Usage: ``python -m shardmerge.cli.supervisor DIRECTORY``
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

log = logging.getLogger(__name__)

PROGRAMS = "programs.json"
PID = "supervisor"
_STOP_SECONDS = 15
_PAUSE_SECONDS = (0.5, 10.0)
_STEADY_SECONDS = 30
"""A program that ran this long was not failing at its start: the next pause is short again."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program to keep running.

    Attributes:
        once: A helper that is not restarted when it ends with exit code 0.
    """

    name: str
    command: tuple[str, ...]
    once: bool = False


def write_programs(directory: Path, programs: Sequence[Program]) -> None:
    """Write the list that a supervisor of this directory reads at its start."""
    for name in ("run", "log"):
        (directory / name).mkdir(parents=True, exist_ok=True)
    text = json.dumps([asdict(program) for program in programs], indent=1)
    (directory / PROGRAMS).write_text(text + "\n", encoding="utf-8")


def read_pid(directory: Path, name: str) -> int | None:
    """The process id of a program that runs now, or None."""
    try:
        pid = int((directory / "run" / f"{name}.pid").read_text(encoding="ascii"))
    except (FileNotFoundError, ValueError):
        return None
    return pid if is_alive(pid) else None


def start_supervisor(directory: Path) -> None:
    """Start a supervisor in a session of its own; it outlives its caller."""
    with (directory / "log" / "supervisor.log").open("ab") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", __spec__.name, str(directory)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    (directory / "run" / f"{PID}.pid").write_text(str(process.pid), encoding="ascii")
    # Reaps it when this process is still there: a zombie would look alive to `read_pid`.
    threading.Thread(target=process.wait, daemon=True).start()


def stop_supervisor(directory: Path) -> None:
    """Stop a directory's supervisor and what it runs; does nothing when it is not there."""
    pid = read_pid(directory, PID)
    if pid is None:
        return
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + 2 * _STOP_SECONDS
    while read_pid(directory, PID) is not None and time.monotonic() < deadline:
        time.sleep(0.05)
    if read_pid(directory, PID) is not None:
        os.kill(pid, signal.SIGKILL)


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that ended and was not waited for yet does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[:1] != ["Z"]


class Keeper(threading.Thread):
    """Keeps one program running until told to stop."""

    def __init__(self, program: Program, directory: Path, stopping: threading.Event) -> None:
        super().__init__(name=program.name, daemon=True)
        self._program = program
        self._directory = directory
        self._stopping = stopping

    def run(self) -> None:
        """Start, wait for the end, pause, start again."""
        pause = _PAUSE_SECONDS[0]
        while not self._stopping.is_set():
            started = time.monotonic()
            process = self._start()
            code = self._wait(process)
            (self._directory / "run" / f"{self._program.name}.pid").unlink(missing_ok=True)
            if self._stopping.is_set() or (self._program.once and code == 0):
                return
            if time.monotonic() - started > _STEADY_SECONDS:
                pause = _PAUSE_SECONDS[0]
            log.warning("%s ended with %s; started again in %.1f s", self.name, code, pause)
            self._stopping.wait(pause)
            pause = min(2 * pause, _PAUSE_SECONDS[1])

    def _start(self) -> subprocess.Popen[bytes]:
        with (self._directory / "log" / f"{self._program.name}.log").open("ab") as out:
            process = subprocess.Popen(
                self._program.command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                # A group of its own: what a program starts itself (Spark's JVM) ends with it.
                start_new_session=True,
            )
        path = self._directory / "run" / f"{self._program.name}.pid"
        path.write_text(str(process.pid), encoding="ascii")
        log.info("%s started as process %d", self.name, process.pid)
        return process

    def _wait(self, process: subprocess.Popen[bytes]) -> int:
        while process.poll() is None and not self._stopping.wait(0.1):
            pass
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                log.warning("%s does not stop: killed", self.name)
        # What is left of its group: children of a killed program, or the program itself.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        return process.wait()


def main(arguments: Sequence[str]) -> int:
    """Run until SIGTERM or SIGINT."""
    (directory,) = map(Path, arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    entries = json.loads((directory / PROGRAMS).read_text(encoding="utf-8"))
    programs = [Program(e["name"], tuple(e["command"]), e["once"]) for e in entries]
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: stopping.set())
    keepers = [Keeper(program, directory, stopping) for program in programs]
    for keeper in keepers:
        keeper.start()
    while not stopping.wait(1.0):
        pass
    for keeper in keepers:
        keeper.join()
    (directory / "run" / f"{PID}.pid").unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
