"""The unit file on a real systemd: one pipeline's ``shardmerge run`` as a service."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from shardmerge.local.line import Line
from shardmerge.schemas.pipeline.routing import RoutingRule
from tests.line_sql import execute, ids

from .systemd import Systemd

SERVICE = "shardmerge@shop"
ROUTE = RoutingRule(".*", "app", r"t_\d+", "merged", "t")
PATIENCE_S = 240.0


def wait_for(systemd: Systemd, condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"no {what} in {PATIENCE_S} s\n{systemd.text()}"
        time.sleep(0.5)


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Line]:
    """The servers of a line, with two shards; nothing keeps its agents and sink up."""
    line = Line(tmp_path_factory.mktemp("line"), routes=[ROUTE])

    def prepare() -> None:
        for source in ("s1", "s2"):
            execute(line, source, "CREATE DATABASE app")
            execute(line, source, "CREATE TABLE app.t_1 (id INT PRIMARY KEY, a INT)")

    try:
        line.start(prepare=prepare)
        line.wait_ready()
        line.hand_over()
        yield line
    finally:
        line.stop()


@pytest.mark.timeout(900)
def test_the_unit_file_runs_a_pipeline_restarts_it_and_stops_it(line: Line, tmp_path: Path) -> None:
    secret = "RUN_OPTIONS=--web-port 16066\nSHOP_PASSWORD=nobody-reads-this\n"
    with Systemd(tmp_path / "systemd", {"shop": line.pipeline_path}, {"shop": secret}) as systemd:
        systemd.ctl("start", SERVICE)
        execute(line, "s1", "INSERT INTO app.t_1 VALUES (1, 1)")
        wait_for(systemd, lambda: ids(line, "merged.t") == [1], "row through the service")
        pid = int(systemd.property(SERVICE, "MainPID"))
        parts = systemd.processes()
        assert not [part for part in parts if part.split()[1] == "root" and "shardmerge" in part]
        assert not [part for part in parts if "nobody-reads-this" in part]

        systemd.run("kill", f"-{signal.SIGKILL}", str(pid))
        execute(line, "s2", "ALTER TABLE app.t_1 ADD COLUMN b INT")
        execute(line, "s2", "INSERT INTO app.t_1 VALUES (2, 2, 2)")
        wait_for(systemd, lambda: ids(line, "merged.t") == [1, 2], "row after the restart")
        assert systemd.property(SERVICE, "NRestarts") == "1"
        assert int(systemd.property(SERVICE, "MainPID")) not in (0, pid)

        systemd.ctl("stop", SERVICE)
        assert systemd.property(SERVICE, "Result") == "success"
        assert systemd.property(SERVICE, "ExecMainStatus") == "0"
        assert systemd.processes() == []
        execute(line, "s1", "INSERT INTO app.t_1 (id) VALUES (3)")

        systemd.ctl("start", SERVICE)
        wait_for(systemd, lambda: ids(line, "merged.t") == [1, 2, 3], "row of the time between")
        systemd.ctl("stop", SERVICE)
    assert os.listdir(tmp_path)
