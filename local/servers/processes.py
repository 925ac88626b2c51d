"""Supervises the processes of one stack directory: start, health, stop, kill, leftovers.

Theory of operation:

1. Before a start, its ports must be free: an occupied one is an error that names it.
2. The process gets its own session (so its children can be ended with it), a log file
   ``logs/NAME.log`` and a pid file ``run/NAME.json`` with pid and start time, and an
   environment variable that names the stack directory.
3. It is healthy when its health check returns None; a process that ends before, or a check
   that does not pass within the bound, is an error with the last lines of the log.
4. Stop: TERM, then KILL after a bound. A pid is only ever signalled after its start time (in
   ``/proc/PID/stat``) was compared with the pid file: the number may belong to another process.
5. Children that outlive their leader are found by session id and by that environment variable.

A later supervisor of the same directory, in another process, continues from the pid files.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import requests

from shardmerge.local.install.files import tail
from shardmerge.schemas.model.errors import StackError

HealthCheck = Callable[[], str | None]
"""Returns None when healthy, else what is missing. Called about five times a second."""
LOOPBACK = "127.0.0.1"
_MARKER = "SHARDMERGE_STACK_DIRECTORY"
_POLL_S = 0.1
_ORPHANS_S = 10.0
"""Bound of the wait until what outlived its leader is gone."""


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """A process to run.

    Attributes:
        argv: Program and arguments.
        ports: TCP ports on 127.0.0.1 that must be free before the start.
        env: Added to the environment of this process.
        health: See ``HealthCheck``; None: healthy as soon as it runs.
        start_timeout_s: Bound of the wait for health.
        stop_timeout_s: Bound of the wait after TERM, then KILL follows.
        piped: Whether its output goes to ``Supervisor.output`` instead of a log file.
        leftovers: Files that hinder its start if it was killed before: they are removed.
    """

    name: str
    argv: tuple[str, ...]
    ports: tuple[int, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None
    health: HealthCheck | None = None
    start_timeout_s: float = 60.0
    stop_timeout_s: float = 15.0
    piped: bool = False
    leftovers: tuple[Path, ...] = ()


class Supervisor:
    """Runs processes with pid files and logs under one directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.absolute()
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    def log_path(self, name: str) -> Path:
        """Where a process writes; a restart appends."""
        return self.directory / "logs" / f"{name}.log"

    def spawn(self, spec: ProcessSpec) -> int:
        """Start a process without waiting for its health; returns its pid.

        Raises:
            StackError: It runs already, a port is occupied, or the program cannot be run.
        """
        if self.pid(spec.name) is not None:
            raise StackError(
                f"{spec.name} runs already (pid {self.pid(spec.name)})",
                hint="stop it first",
                code="SM-4611",
            )
        self._stop_orphans(spec.name)
        for port in spec.ports:
            require_free_port(port, spec.name)
        for path in spec.leftovers:
            path.unlink(missing_ok=True)
        for sub in ("logs", "run"):
            (self.directory / sub).mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, **spec.env, _MARKER: str(self.directory)}
        log: contextlib.AbstractContextManager[IO[bytes] | int]
        log = contextlib.nullcontext(subprocess.PIPE)
        if not spec.piped:
            log = self.log_path(spec.name).open("ab")
        with log as output:
            try:
                child = subprocess.Popen(
                    spec.argv,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=environment,
                    cwd=spec.cwd,
                    start_new_session=True,
                )
            except OSError as error:
                raise StackError(
                    f"{spec.name}: {spec.argv[0]} cannot be started: {error}", code="SM-4609"
                ) from None
        self._children[spec.name] = child
        record = {"pid": child.pid, "start_time": _start_time(child.pid), "argv": list(spec.argv)}
        path = self._pid_file(spec.name)
        path.with_suffix(".new").write_text(json.dumps(record))
        path.with_suffix(".new").replace(path)
        return child.pid

    def output(self, name: str) -> IO[bytes] | None:
        """What a piped process that this supervisor started writes; None for any other."""
        child = self._children.get(name)
        return child.stdout if child is not None else None

    def exit_code(self, name: str) -> int | None:
        """The exit code of a process that this supervisor started; negative for a signal.

        None while it runs, and for any other process.
        """
        child = self._children.get(name)
        return child.poll() if child is not None else None

    def wait_healthy(self, spec: ProcessSpec) -> None:
        """Wait until the health check passes.

        Raises:
            StackError: The process ended, or the bound passed; with the end of its log.
        """
        deadline = time.monotonic() + spec.start_timeout_s
        while True:
            running = self.pid(spec.name) is not None
            missing = spec.health() if spec.health is not None else None
            log = self.log_path(spec.name)
            if not running:
                child = self._children.get(spec.name)
                code = "" if child is None else f" with exit code {child.poll()}"
                raise StackError(
                    f"{spec.name} ended{code} while starting, see {log}:\n{tail(log)}",
                    code="SM-4609",
                )
            if missing is None:
                return
            if time.monotonic() > deadline:
                raise StackError(
                    f"{spec.name} is not healthy after {spec.start_timeout_s:.0f} s: {missing}, "
                    f"see {log}:\n{tail(log)}",
                    code="SM-4609",
                )
            time.sleep(_POLL_S)

    def pid(self, name: str) -> int | None:
        """The pid of a process that runs and is still the one that was started, else None."""
        record = self._record(name)
        child = self._children.get(name)
        ended = child is not None and child.poll() is not None
        if record is None or (ended and child is not None and child.pid == record["pid"]):
            return None
        return record["pid"] if _start_time(record["pid"]) == record["start_time"] else None

    def names(self) -> tuple[str, ...]:
        """Every process that has a pid file, running or not."""
        for child in self._children.values():
            child.poll()  # reaps a child that somebody else has stopped
        return tuple(sorted(path.stem for path in (self.directory / "run").glob("*.json")))

    def stop(self, name: str, timeout_s: float = 15.0) -> None:
        """End a process and its children: TERM, then KILL. Does nothing when it is gone."""
        pid = self.pid(name)
        if pid is not None:
            _signal(pid, signal.SIGTERM)
            self._wait_gone(name, timeout_s)
            if self.pid(name) is not None:
                self._kill_group(name, pid)
        self._stop_orphans(name)
        self._pid_file(name).unlink(missing_ok=True)

    def kill(self, name: str) -> None:
        """``kill -9`` a process and its children; raises ``StackError`` when it does not run."""
        pid = self.pid(name)
        if pid is None:
            raise StackError(
                f"{name} does not run", hint=f"see {self.log_path(name)}", code="SM-4611"
            )
        self._kill_group(name, pid)
        self._stop_orphans(name)

    def _kill_group(self, name: str, pid: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        self._wait_gone(name, 10.0)
        if self.pid(name) is not None:
            raise StackError(
                f"{name} (pid {pid}) survives KILL",
                hint="it hangs in the kernel: look at the disk",
                code="SM-4612",
            )

    def _wait_gone(self, name: str, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while self.pid(name) is not None and time.monotonic() < deadline:
            time.sleep(_POLL_S / 2)

    def _stop_orphans(self, name: str) -> None:
        """End what is left of a session whose leader is gone."""
        record = self._record(name)
        if record is None or self.pid(name) is not None:
            return
        if _start_time(record["pid"]) is not None:
            # Another process has the pid now. The kernel does not reuse a number that still names
            # a session, so our session has no member left.
            return
        deadline = time.monotonic() + _ORPHANS_S
        # A process that was sent KILL is there until the kernel has taken it away.
        while left := _session_members(record["pid"], self.directory):
            for pid in left:
                _signal(pid, signal.SIGKILL)
            if time.monotonic() > deadline:
                return
            time.sleep(_POLL_S / 2)

    def _record(self, name: str) -> Mapping[str, int] | None:
        try:
            record: dict[str, int] = json.loads(self._pid_file(name).read_text())
        except FileNotFoundError:
            return None
        return record

    def _pid_file(self, name: str) -> Path:
        return self.directory / "run" / f"{name}.json"


def require_free_port(port: int, name: str) -> None:
    """Raise ``StackError`` when something listens on a port of 127.0.0.1."""
    with socket.socket() as probe:
        # With this option, bind fails only because of a listener, not of connections in closing.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            raise StackError(
                f"port {port} on 127.0.0.1, needed by {name}, is occupied",
                hint=f"stop what listens there (ss -ltnp 'sport = :{port}') or choose other ports",
                code="SM-4613",
            ) from None


def is_listening(port: int) -> bool:
    """Whether something accepts connections on a port of 127.0.0.1."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def http_answers(url: str) -> HealthCheck:
    """A health check: something on this machine answers an HTTP request without an error."""

    def check() -> str | None:
        try:
            with requests.Session() as session:
                session.trust_env = False  # no proxy for this machine's own address
                answer = session.get(url, timeout=5)
        except requests.RequestException as error:
            return f"it does not answer: {error}"
        return None if answer.ok else f"it answers {answer.status_code}"

    return check


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _stat(pid: int) -> list[str] | None:
    """Fields of ``/proc/PID/stat`` from the state on (proc(5), field 3); None for a dead one."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()
    # A zombie leader whose threads are still ending holds its ports and files: not dead yet.
    is_dead = fields[0] in "ZX" and int(fields[17]) <= 1
    return None if is_dead else fields


def _start_time(pid: int) -> int | None:
    fields = _stat(pid)
    return None if fields is None else int(fields[19])


def _session_members(session: int, directory: Path) -> list[int]:
    marker = f"{_MARKER}={directory}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        fields = _stat(int(entry.name))
        if fields is None or int(fields[3]) != session:
            continue
        with contextlib.suppress(OSError):
            if marker in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found
