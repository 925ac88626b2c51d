"""The processes of a test level: a bound, a place for their output, and an end that leaves none.

Every process that a level starts carries a mark of the level in its environment, and so does what
that starts in turn: servers lead sessions of their own, and are found by it. Between a command and
us stands a small process that inherits whatever loses its parent, so that the processor time of
servers counts for the level that started them. Standard library only.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from itertools import count
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parent.parent
_Found = TypeVar("_Found")

_kept: ContextVar[list[str] | None] = ContextVar("_kept", default=None)
"""The output of the level that runs in this thread, where it is printed at its end."""
_spent: ContextVar[list[float] | None] = ContextVar("_spent", default=None)
"""The processor seconds of each command of the level that runs in this thread."""
_niceness: ContextVar[int] = ContextVar("_niceness", default=0)
"""The niceness of what the level of this thread runs, see nice(2)."""
_running: dict[str, subprocess.Popen[str]] = {}
"""The leaders of process groups that run, by mark."""
_lock = threading.Lock()
_interrupted = threading.Event()
_numbers = count(1)
_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
"""Java's first compiler only: no server of a test lives so long that the second one would pay.

Measured, the start of Kafka and Connect: 9.8 s of processors instead of 16.9 s. The jars are those
whose checksums the project knows, so that no start verifies their byte code again. Measured until
both answered, three starts each: 5.4 s instead of 6.8 s.
"""
_GENTLE = 10
"""The niceness of what takes the processors that others leave: by the kernel's weights a ninth of
what another session gets when all want one, so that nothing of it stands."""
_CLEANING_S = 30.0
"""For so long tests may stop their servers when they are interrupted."""


def run(
    command: Sequence[str],
    minutes: float,
    log: Path | None = None,
    quiet: bool = False,
    more: Mapping[str, str] | None = None,
) -> int:
    """Run a command in its own process group within a bound; what it leaves behind is killed.

    Args:
        command: Program and arguments; it runs in the project's folder.
        minutes: The bound: then it is interrupted, and killed if it does not end.
        log: Where its output is written, too.
        quiet: Whether it is printed only where the command fails, and then its end.
        more: Environment variables besides this process's own.

    Returns:
        Its exit code; 130 when the run was interrupted before it began.
    """
    mark = f"{os.environ.get('LINE_RUN_MARK', 'levels')}/{os.getpid()}-{next(_numbers)}"
    environment = {
        **os.environ,
        "PYTHONPATH": "",  # ours has the project's folder on it, where `agents` can be imported
        "PYTHONSAFEPATH": "1",
        "PYTHONUNBUFFERED": "1",
        "HYPOTHESIS_PROFILE": "ci",
        "JAVA_TOOL_OPTIONS": f"{os.environ.get('JAVA_TOOL_OPTIONS', '')} {_JAVA}".strip(),
        **(more or {}),
        "LINE_RUN_MARK": mark,
    }
    with _lock:
        if _interrupted.is_set():
            return 130
        counts = Path(tempfile.mkdtemp(prefix="level-")) / "processor_seconds"
        process = subprocess.Popen(
            [sys.executable, "-c", _COUNT, str(counts), str(_niceness.get()), *command],
            cwd=ROOT, env=environment, start_new_session=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        )  # fmt: skip
        _running[mark] = process
    assert process.stdout is not None
    # A watcher ends the group at the bound, so that reading below meets its end.
    watcher = subprocess.Popen(
        [sys.executable, "-c", _WATCH, str(process.pid), str(minutes * 60)], start_new_session=True,
    )  # fmt: skip
    lines: list[str] = []
    try:
        with (log or Path(os.devnull)).open("w", encoding="utf-8") as copy:
            for line in process.stdout:
                copy.write(line)
                lines.append(line)
                if not quiet:
                    say(line)
        code = process.wait()
    except KeyboardInterrupt:
        interrupt()
        raise
    finally:
        watcher.kill()
        watcher.wait()
        process.stdout.close()
        if (spent := _spent.get()) is not None and counts.exists():
            spent.append(float(counts.read_text()))
        shutil.rmtree(counts.parent)
        if not _interrupted.is_set():
            end_group(process.pid)
            reap(mark)
            with _lock:
                del _running[mark]
    if quiet and code:
        say("".join(lines[-60:]))
    return code


def say(text: str) -> None:
    """Print text that ends with a newline, now or when the level of this thread ends."""
    kept = _kept.get()
    if kept is not None:
        kept.append(text)
        return
    sys.stdout.write(text)
    sys.stdout.flush()


_WATCH = """
import os, signal, sys, time
group, seconds = int(sys.argv[1]), float(sys.argv[2])
time.sleep(seconds)
print(f"stopped after {seconds / 60:.0f} minutes", flush=True)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        break
    time.sleep(30)
"""


_COUNT = """
import contextlib, ctypes, os, resource, signal, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER, see prctl(2)
if nice := int(sys.argv[2]):
    os.nice(nice)
    # Linux may share the processors among sessions first, and this one has its own: see sched(7).
    with contextlib.suppress(OSError), open("/proc/self/autogroup", "w") as group:
        group.write(str(nice))
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, lambda *_: None)  # the command's own business; exec resets it there
command = os.posix_spawnp(sys.argv[3], sys.argv[3:], os.environ)
while True:
    process, status = os.wait()
    if process == command:
        break
code = os.waitstatus_to_exitcode(status)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
with open(sys.argv[1], "w") as file:
    file.write(str(used.ru_utime + used.ru_stime))
sys.exit(code if code >= 0 else 128 - code)
"""


@contextmanager
def counting() -> Iterator[list[float]]:
    """The processor seconds of each command that this thread runs meanwhile.

    Processes that still run when a command ends are killed then, and do not count.
    """
    spent: list[float] = []
    token = _spent.set(spent)
    try:
        yield spent
    finally:
        _spent.reset(token)


def in_one_piece(work: Callable[[], _Found]) -> _Found:
    """What the work returns; what it says in this thread is printed whole at its end."""
    kept: list[str] = []
    token = _kept.set(kept)
    try:
        return work()
    finally:
        _kept.reset(token)
        say("".join(kept))


def gently(work: Callable[[], _Found]) -> _Found:
    """What the work returns; the commands that it runs take the processors that others leave."""
    token = _niceness.set(_GENTLE)
    try:
        return work()
    finally:
        _niceness.reset(token)


def end_group(group: int) -> None:
    """Kill what is left of a process group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def reap(mark: str) -> None:
    """Kill what carries the mark: servers lead groups of their own."""
    subprocess.run(["bash", str(ROOT / ".ci" / "reap"), mark], check=False)


def interrupt() -> None:
    """End everything that runs, and let nothing more begin."""
    with _lock:
        _interrupted.set()
        running = dict(_running)
    for process in running.values():
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)
    deadline = time.monotonic() + _CLEANING_S
    while any(p.poll() is None for p in running.values()) and time.monotonic() < deadline:
        time.sleep(0.1)
    for mark, process in running.items():
        end_group(process.pid)
        reap(mark)
