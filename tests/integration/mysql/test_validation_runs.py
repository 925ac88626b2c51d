"""A whole comparison on a real server: killed and resumed, and as slow as ``--rate`` says."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from shardmerge.cli.validation.inputs.server_rows import ServerRows
from shardmerge.cli.validation.saved_state import StateFile
from shardmerge.spark_sink.validation.table_validation import TableValidation
from tests.running import wait_for, with_tests

from .compared_line import S1, execute, pipeline, told
from .validating import RATE, Quiet, run_of

ROWS = 2_000
A_RANGE = 50


@pytest.fixture(scope="module")
def port(server_port: Callable[[str], int]) -> int:
    found = server_port("mysql80")
    table = "(id INT PRIMARY KEY, a INT)"
    values = ", ".join(f"({n}, {n % 9})" for n in range(ROWS))
    execute(
        found,
        *(f"DROP DATABASE IF EXISTS {name}" for name in ("app", "merged")),
        *(f"CREATE DATABASE {name}" for name in ("app", "merged")),
        f"CREATE TABLE app.t_1 {table}",
        f"CREATE TABLE merged.t {table}",
        f"INSERT INTO app.t_1 VALUES {values}",
        f"INSERT INTO merged.t VALUES {values}",
        "UPDATE merged.t SET a = 77 WHERE id = 3",
        f"UPDATE merged.t SET a = 77 WHERE id = {ROWS - 3}",
    )
    return found


class Steps(Quiet):
    """Keeps how many rows were compared after each step."""

    def __init__(self) -> None:
        self.rows: list[int] = []

    def progressed(self, validation: TableValidation) -> None:
        self.rows.append(validation.rows)


def compared_rows(path: Path) -> int:
    if not path.exists():
        return 0
    return sum(target["rows"] for target in json.loads(path.read_bytes())["targets"])


def test_a_comparison_that_was_killed_goes_on_where_it_was(port: int, tmp_path: Path) -> None:
    path = tmp_path / "state"
    command = [sys.executable, "-m", "tests.integration.mysql.validating", str(port), str(path)]
    with subprocess.Popen(command, env=with_tests()) as process:
        try:
            wait_for(lambda: compared_rows(path) >= 4 * A_RANGE, "ranges in the file")
        finally:
            process.kill()  # SIGKILL
    left = compared_rows(path)
    assert 4 * A_RANGE <= left < ROWS
    servers, steps = ServerRows(pipeline(port, port)), Steps()
    try:
        run = run_of(port, servers, StateFile(path, "compare", ()), steps, None)
        run.run()
    finally:
        servers.close()
    assert steps.rows[0] > left
    assert (run.validation.rows, run.stopped) == (ROWS, "")
    assert told(run.validation) == [
        ("differs", str(ROWS - 3), str(S1), "a"), ("differs", "3", str(S1), "a"),
    ]  # fmt: skip


class Pace(Quiet):
    """Keeps by how many rows each step was ahead of the rate."""

    def __init__(self, rate: int) -> None:
        self.rate, self.began = rate, time.monotonic()
        self.ahead: list[float] = []

    def progressed(self, validation: TableValidation) -> None:
        self.ahead.append(validation.rows - self.rate * (time.monotonic() - self.began))


def test_no_more_rows_are_read_than_the_rate_allows(port: int) -> None:
    servers = ServerRows(pipeline(port, port))
    pace = Pace(RATE)
    try:
        run = run_of(port, servers, StateFile(None, "compare", ()), pace, RATE)
        pace.began = time.monotonic()
        run.run()
    finally:
        servers.close()
    # At most the budget of the first second, and the range that is read while the budget ends.
    assert max(pace.ahead) <= RATE + A_RANGE
    assert run.validation.rows == ROWS
