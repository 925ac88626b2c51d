"""Parts as real processes: restarted, given up, stopped in order; small programs stand for them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from shardmerge.cli.deployment import supervision
from shardmerge.cli.deployment.supervision import PartSpec, Supervision
from shardmerge.schemas.model.errors import ConfigError, StackError

STAND_IN = """
import signal, subprocess, sys, time
from shardmerge.cli.deployment.owner import end_with
end_with(int(sys.argv[1]))
what, = sys.argv[2:]
if what == "fails":
    print("no binlog"); sys.exit(7)
if what == "parent":
    subprocess.Popen(["sleep", "1000"])
def end(*_):
    print("ends"); sys.exit(0)
signal.signal(signal.SIGTERM, end)
print("runs")
while True:
    time.sleep(0.05)
"""


@pytest.fixture(autouse=True)
def _stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "stand_in.py"
    program.write_text(STAND_IN)
    monkeypatch.setattr(supervision, "PART", (str(program),))


SUPERVISING = """
import sys, threading
from pathlib import Path
from shardmerge.cli.deployment import supervision
supervision.PART = (sys.argv[2],)
parts = [supervision.PartSpec("a", ("parent",)), supervision.PartSpec("b", ("runs",))]
supervision.Supervision(Path(sys.argv[1]), parts, 9).run(threading.Event())
"""


class Supervised:
    """A supervision in a thread of its own."""

    def __init__(
        self, directory: Path, *kinds: str, limit: int = 10, names: Sequence[str] = ()
    ) -> None:
        self.lines: list[tuple[str, str]] = []
        names = names or [f"{number}-{kind}" for number, kind in enumerate(kinds)]
        parts = [PartSpec(name, (kind,)) for name, kind in zip(names, kinds, strict=True)]
        self.all = Supervision(directory, parts, limit, lambda *line: self.lines.append(line))
        self.stop = threading.Event()
        self.error: Exception | None = None
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.all.run(self.stop)
        except StackError as error:
            self.error = error

    def end(self) -> None:
        self.stop.set()
        self.thread.join(60)
        assert not self.thread.is_alive()


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def session(leader: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == leader and fields[0] not in "ZX":
                found.append(int(entry.name))
    return found


def test_parts_are_stopped_in_the_reverse_order_of_their_start(tmp_path: Path) -> None:
    made = Supervised(tmp_path, "runs", "runs", "runs")
    wait_for(lambda: made.lines.count(("2-runs", "runs")) == 1)
    wait_for(lambda: len(made.lines) == 3)
    made.end()
    assert [name for name, line in made.lines if line == "ends"] == ["2-runs", "1-runs", "0-runs"]
    assert made.error is None


def test_a_killed_part_is_started_again_without_what_it_left(tmp_path: Path) -> None:
    made = Supervised(tmp_path, "parent", "runs")
    wait_for(lambda: ("0-parent", "runs") in made.lines)
    killed = made.all.pid("0-parent")
    assert killed is not None
    wait_for(lambda: len(session(killed)) == 2)
    os.kill(killed, signal.SIGKILL)
    wait_for(lambda: made.lines.count(("0-parent", "runs")) == 2)
    assert session(killed) == []
    again = made.all.pid("0-parent")
    assert again is not None
    made.end()
    assert session(again) == []


def test_a_part_that_ends_again_and_again_stops_all_with_what_it_said(tmp_path: Path) -> None:
    made = Supervised(tmp_path, "runs", "fails", limit=2)
    made.thread.join(60)
    assert isinstance(made.error, StackError)
    assert "1-fails ended 2 times in a row" in made.error.message
    assert "exit code 7" in made.error.message
    assert made.error.message.endswith("    no binlog\n    no binlog")
    assert made.all.pid("0-runs") is None


def test_a_directory_is_supervised_once(tmp_path: Path) -> None:
    made = Supervised(tmp_path, "runs")
    with pytest.raises(ConfigError, match="another `shardmerge run` runs"):
        Supervision(tmp_path, [], 1)
    made.end()
    Supervision(tmp_path, [], 1).run(made.stop)


def test_a_part_whose_owner_is_gone_does_not_begin(tmp_path: Path) -> None:
    program = [sys.executable, str(tmp_path / "stand_in.py"), "1", "runs"]
    ended = subprocess.run(program, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "is gone" in ended.stderr


def test_parts_end_when_the_supervising_process_is_killed(tmp_path: Path) -> None:
    program = [
        sys.executable,
        "-c",
        SUPERVISING,
        str(tmp_path / "d"),
        str(tmp_path / "stand_in.py"),
    ]
    with subprocess.Popen(program, stderr=subprocess.DEVNULL) as supervising:
        files = [tmp_path / "d" / "run" / f"{name}.json" for name in ("a", "b")]
        wait_for(lambda: all(file.exists() for file in files))
        pids = [json.loads(file.read_text())["pid"] for file in files]
        wait_for(lambda: len(session(pids[0])) == 2)
        supervising.kill()
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))
    assert len(session(pids[0])) == 1, "the stand-in does not end its child, as Spark's driver does"
    made = Supervised(tmp_path / "d", "runs", names=["a"])
    wait_for(lambda: session(pids[0]) == [])
    made.end()
