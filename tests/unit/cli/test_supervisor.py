from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from shardmerge.cli import supervisor
from shardmerge.cli.supervisor import Program


def poll(condition: Callable[[], object], seconds: float = 30.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    sleeper = Program("sleeper", (sys.executable, "-c", "import time; time.sleep(600)"))
    helper = Program("helper", (sys.executable, "-c", "print('done')"), once=True)
    supervisor.write_programs(tmp_path, [sleeper, helper])
    supervisor.start_supervisor(tmp_path)
    yield tmp_path
    supervisor.stop_supervisor(tmp_path)


def test_a_killed_program_is_started_again(directory: Path) -> None:
    assert poll(lambda: supervisor.read_pid(directory, "sleeper"))
    first = supervisor.read_pid(directory, "sleeper")
    assert first is not None
    os.kill(first, signal.SIGKILL)
    assert poll(lambda: supervisor.read_pid(directory, "sleeper") not in (None, first))


def test_stopping_the_supervisor_stops_its_programs(directory: Path) -> None:
    assert poll(lambda: supervisor.read_pid(directory, "sleeper"))
    pid = supervisor.read_pid(directory, "sleeper")
    assert pid is not None
    supervisor.stop_supervisor(directory)
    assert not supervisor.is_alive(pid)
    assert supervisor.read_pid(directory, supervisor.PID) is None


def test_what_a_program_prints_is_in_its_log(directory: Path) -> None:
    log = directory / "log" / "helper.log"
    assert poll(lambda: log.exists() and log.read_text(encoding="utf-8") == "done\n")


def test_stopping_where_nothing_runs_is_no_error(tmp_path: Path) -> None:
    supervisor.stop_supervisor(tmp_path)
