"""How `make test` runs its levels: what beside what, and what an interruption leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from tests.level_lanes import Lanes
from tests.level_processes import counting, run
from tests.level_results import pytest

ROOT = Path(__file__).resolve().parents[2]
_PRINTING = """
import sys
from tests import levels
from tests.level_processes import run

def level(name):
    def played():
        run([sys.executable, "-c", f"for n in range(3): print('{name}', n, flush=True)"], 1)
        return levels.Result(passed=2, failed=name == "e2e")
    return played

levels.LEVELS.update({name: level(name) for name in levels.LEVELS})
sys.exit(levels.main(["check", "agents", "integration", "e2e"]))
"""
_GENTLE = """
import os, pathlib, sys, time
from tests import levels
from tests.level_processes import run

place = pathlib.Path(sys.argv[1])
nice = "import os, pathlib, sys; pathlib.Path(sys.argv[1]).write_text(str(os.nice(0)))"

def level(name):
    def played():
        run([sys.executable, "-c", nice, str(place / name)], 1)
        deadline = time.monotonic() + 30
        while name == "check" and not (place / "e2e").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        return levels.Result(passed=1, failed=name == "check" and not (place / "e2e").exists())
    return played

levels.LEVELS.update({name: level(name) for name in levels.LEVELS})
sys.exit(levels.main(["check", "agents", "e2e"]))
"""
_WAITING = """
import sys
from tests import levels
from tests.level_processes import run

def level(name):
    return lambda: levels.Result(run([sys.executable, sys.argv[1], f"{sys.argv[2]}/{name}"], 5))

levels.LEVELS.update({name: level(name) for name in levels.LEVELS})
sys.exit(levels.main(["check", "agents", "docs", "integration", "e2e"]))
"""
_TEST_WITH_A_SERVER = """
import os, pathlib, subprocess, sys, time
place = sys.argv[1]
if not place.endswith(".server"):  # it leads a session of its own, as servers of tests do
    subprocess.Popen([sys.executable, __file__, f"{place}.server"], start_new_session=True)
pathlib.Path(f"{place}.new").write_text(str(os.getpid()))
pathlib.Path(f"{place}.new").rename(place)
time.sleep(300)
"""
_ORPHAN = """
import os, pathlib, sys, time
place = pathlib.Path(sys.argv[1])
if os.fork() == 0:
    if os.fork() == 0:  # it has lost its parent when that has ended
        os.setsid()
        while time.process_time() < 0.5:
            pass
        place.with_suffix(".new").write_text(str(os.getpid()))
        place.with_suffix(".new").rename(place)
    os._exit(0)
os.wait()
while not place.exists() or pathlib.Path(f"/proc/{place.read_text()}").exists():
    time.sleep(0.05)
sys.exit(3)
"""


def _start(program: str, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments], env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip


def test_what_runs_beside_is_printed_in_one_piece_and_counts() -> None:
    process = _start(_PRINTING)
    output = process.communicate(timeout=60)[0]
    lines = output.splitlines()
    for name in ("check", "agents"):
        begin = lines.index(f"=== {name}")
        assert lines[begin + 1 : begin + 4] == [f"{name} {n}" for n in range(3)]
    assert lines[-1] == "8 passed, 1 failed"
    assert process.returncode == 1


def test_a_lane_that_is_closed_is_nobodys_until_it_is_opened_again() -> None:
    lanes, inside = Lanes(2), threading.Semaphore(0)

    def enter(until: threading.Event) -> None:
        with lanes.one():
            inside.release()
            until.wait(30)

    def start(end: threading.Event) -> threading.Thread:
        thread = threading.Thread(target=enter, args=(end,), daemon=True)
        thread.start()
        return thread

    ends = [threading.Event() for _ in range(4)]
    first = [start(end) for end in ends[:2]]
    assert inside.acquire(timeout=30)
    assert inside.acquire(timeout=30)
    lanes.narrow()
    ends[0].set()
    first[0].join(30)
    last = start(ends[2])
    assert not inside.acquire(timeout=0.2)
    ends[1].set()
    assert inside.acquire(timeout=30)
    behind = start(ends[3])
    assert not inside.acquire(timeout=0.2)
    lanes.widen()
    assert inside.acquire(timeout=30)
    ends[2].set()
    ends[3].set()
    for thread in (*first, last, behind):
        thread.join(30)


def test_a_gentle_level_takes_what_others_leave_and_nobody_waits_for_it(tmp_path: Path) -> None:
    process = _start(_GENTLE, str(tmp_path))
    output = process.communicate(timeout=60)[0]

    assert output.splitlines()[-1] == "3 passed, 0 failed"  # e2e played while `check` ran
    niceness = {name: int((tmp_path / name).read_text()) for name in ("check", "agents", "e2e")}
    assert niceness["agents"] == niceness["e2e"] == os.nice(0)
    assert niceness["check"] == min(os.nice(0) + 10, 19)


def test_the_processors_that_a_server_took_count_for_its_level(tmp_path: Path) -> None:
    with counting() as spent:
        code = run([sys.executable, "-c", _ORPHAN, str(tmp_path / "done")], 1)

    assert code == 3
    assert spent[0] >= 0.5


def test_an_interrupted_run_leaves_no_process(tmp_path: Path) -> None:
    test = tmp_path / "test.py"
    test.write_text(_TEST_WITH_A_SERVER)
    process = _start(_WAITING, str(test), str(tmp_path))
    names = ("check", "agents", "integration")
    places = [tmp_path / f"{name}{end}" for name in names for end in ("", ".server")]
    deadline = time.monotonic() + 60
    while not all(place.exists() for place in places):
        assert time.monotonic() < deadline, list(tmp_path.iterdir())
        time.sleep(0.05)

    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=90)

    assert process.returncode == 130
    assert not [place for place in places if Path(f"/proc/{place.read_text()}").exists()]
    assert not (tmp_path / "docs").exists()  # what waited in the queue did not begin


def test_what_was_raised_when_no_test_was_left_is_said_in_the_closing_lines(tmp_path: Path) -> None:
    """A socket that the collector finds when pytest ends: its report has no failure."""
    (tmp_path / "test_it.py").write_text("def test_it():\n    pass\n")
    (tmp_path / "conftest.py").write_text(
        "import socket\n"
        "def pytest_sessionfinish():\n"
        "    kept = [socket.socket()]\n"
        "    kept.append(kept)\n"
    )
    result = pytest("leaky", ["-q", "-W", "error", str(tmp_path)], 1)
    assert (result.passed, result.failed) == (1, 0)
    assert "pytest: exit 1: " in result.broken
    assert "Exception ignored in: <socket.socket" in result.broken
